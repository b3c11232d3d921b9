"""Simulated inference servers: engines with continuous batching behind a router.

seconds_per_token(job)            what labels compare, nothing is kept
record_serving(job, sampled)      tables and traces
"""

from injectors.sim.serving.measure import seconds_per_token
from injectors.sim.serving.recording import record_serving

__all__ = ["record_serving", "seconds_per_token"]

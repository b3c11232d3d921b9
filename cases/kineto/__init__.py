"""Reading PyTorch profiler (Kineto) traces: fast, bounded, and loud about what is malformed.

What is legal, what is dropped and what is refused stands in docs/traces.md.
"""

from cases.kineto.events import CATEGORIES, TRACE_EVENTS
from cases.kineto.reader import MAX_TRACE_BYTES, Trace, parse_trace, read_trace

__all__ = ["CATEGORIES", "MAX_TRACE_BYTES", "TRACE_EVENTS", "Trace", "parse_trace", "read_trace"]

"""gpu-idle: reads one rank's trace and names the bottleneck where the GPU idles.

It looks at the ranks of a job one by one and does not compare them ("no cross-rank reasoning
happens", its README), so its finding is placed at the ranks on which it was made.
"""

from __future__ import annotations

from harness.diagnosers.third_party.adapter import Adapter
from harness.diagnosers.third_party.gpu_idle.translate import CAUSES, translate

diagnose = Adapter(
    "gpu_idle",
    version=1,
    causes=tuple(CAUSES.values()),
    translate=translate,
    needs={"signals": ["trace_events"], "kinds": ["training"], "gpus": True},
)

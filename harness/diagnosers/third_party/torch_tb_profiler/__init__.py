"""PyTorch's profiler plugin for TensorBoard: recommendations from one rank's trace."""

from __future__ import annotations

from harness.diagnosers.third_party.adapter import Adapter
from harness.diagnosers.third_party.torch_tb_profiler.translate import CAUSES, translate

diagnose = Adapter(
    "torch_tb_profiler",
    version=1,
    causes=tuple(cause for cause in CAUSES.values() if cause),
    translate=translate,
    needs={"signals": ["trace_events"], "kinds": ["training"]},
)

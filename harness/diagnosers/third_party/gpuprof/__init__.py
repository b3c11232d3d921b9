"""gpuprof: steps, samples of devices and hosts, and top kernels, judged by its 23 rules."""

from __future__ import annotations

from harness.diagnosers.third_party.adapter import Adapter
from harness.diagnosers.third_party.gpuprof.inputs import inputs
from harness.diagnosers.third_party.gpuprof.translate import CAUSES, translate

diagnose = Adapter(
    "gpuprof",
    version=1,
    causes=tuple(cause for cause in CAUSES.values() if cause),
    translate=translate,
    needs={"signals": ["steps"], "kinds": ["training"]},
    inputs=inputs,
)

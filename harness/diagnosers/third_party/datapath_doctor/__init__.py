"""datapath-doctor: samples of the input path by rank and step, judged by its ten rules."""

from __future__ import annotations

from harness.diagnosers.third_party.adapter import Adapter
from harness.diagnosers.third_party.datapath_doctor.inputs import inputs
from harness.diagnosers.third_party.datapath_doctor.translate import CAUSES, SKEW, translate

diagnose = Adapter(
    "datapath_doctor",
    version=1,
    causes=(*(cause for cause in CAUSES.values() if cause), SKEW),
    translate=translate,
    needs={"signals": ["steps"], "kinds": ["training"]},
    inputs=inputs,
)

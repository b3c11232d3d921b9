"""HolisticTraceAnalysis: metrics of several ranks' traces, with a thin layer of limits of ours.

It measures and does not judge, so the limits in `translate` are ours, round numbers that were not
tuned on any label. Its potential stragglers are left out: it always names some.
"""

from __future__ import annotations

from harness.diagnosers.third_party.adapter import Adapter
from harness.diagnosers.third_party.hta.translate import CAUSES, translate

diagnose = Adapter(
    "hta",
    version=1,
    causes=tuple(CAUSES.values()),
    translate=translate,
    needs={"signals": ["trace_events"], "kinds": ["training"], "gpus": True},
)

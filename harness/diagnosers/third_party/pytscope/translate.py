"""What pytscope says, in the words of the taxonomy."""

from __future__ import annotations

import re
from typing import Any

from cases.schema import Diagnosis
from harness.diagnosers.third_party.answers import GRADES, Said, answer

# By code, from the texts of its rules (pytscope/diagnosis/rules*.py, 0.2.1). None: what it names
# there lies in several domains, so that there is no name for it.
CAUSES: dict[str, str | None] = {
    # "Input pipeline is a bottleneck"
    "TIMING.DATALOADER_BOUND": "input_pipeline",
    # "retain_graph=True, unfused elementwise ops, or activation recomputation"
    "TIMING.BACKWARD_HEAVY": "excess_work",
    # "a Python-side per-parameter loop"; "Use a fused/foreach optimizer"
    "TIMING.OPTIMIZER_HEAVY": "foreach_disabled",
    # "input-pipeline stalls, GC pauses, logging/checkpoint hitches, or uneven batch sizes"
    "TIMING.JITTER": None,
    # "thermal throttling, a slower GPU, NUMA placement, or an unbalanced data shard"
    "DIST.STRAGGLER": None,
    # "Compute is imbalanced across ranks"
    "DIST.LOAD_IMBALANCE": "load_imbalance",
    # "not overlapped with compute": bucketing, find_unused_parameters, overlap of the optimizer
    "DIST.EXPOSED_COMM": "communication_schedule",
    # the largest of its budget's lines, which its title names
    "EFFICIENCY.RECOVERABLE data_stall": "input_pipeline",
    # "logging, checkpointing, host syncs, or eval inside the train loop"
    "EFFICIENCY.RECOVERABLE other": None,
}
BUDGET = "EFFICIENCY.RECOVERABLE"
LINE = re.compile(r"\((\w+)\)$")


def translate(raw: Any) -> Diagnosis:
    """Translate its findings; one without a name in the taxonomy makes no answer healthy."""
    if "refused" in raw:
        return answer([], judged=False)
    codes = [(_code(finding), GRADES[finding["severity"]]) for finding in raw["findings"]]
    said = [Said(cause, grade) for code, grade in codes if (cause := CAUSES[code])]
    return answer(said, judged=not codes or bool(said))


def _code(finding: dict[str, Any]) -> str:
    code = str(finding["code"])
    if code != BUDGET:
        return code
    line = LINE.search(finding["title"])
    return f"{code} {line[1]}" if line else code

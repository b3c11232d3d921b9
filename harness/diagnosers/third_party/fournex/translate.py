"""What fournex says, in the words of the taxonomy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cases.schema import Diagnosis
from harness.diagnosers.third_party.answers import Said, answer

# From the table "Detected bottleneck types" of its README (0.3.1). None: it names no cause.
CAUSES: dict[str, str | None] = {
    "input_bound": "input_pipeline",  # "DataLoader wait >= 20% of step time"
    "copy_bound": "host_to_device_copy",  # "H2D transfer >= 15% of step time"
    "sync_bound": "host_device_sync",  # "Sync wait >= 10% of step time"
    "launch_bound": "kernel_launch_bound",
    "memory_pressure": "device_memory",  # "Peak memory ratio >= 90%"
    "shape_instability": "compilation",  # its catalogue: pad, bucket or cache compiled shapes
    "underutilized_gpu": None,  # a symptom by its own list `_SYMPTOM_BOTTLENECKS`
    "insufficient_telemetry": None,  # "No timing or GPU utilization data"
    "inconclusive": None,
}


def translate(raw: Any) -> Diagnosis:
    """Translate the driver's output by rank.

    Its report shows the steady state, which leaves out the first two steps; where a trace has no
    more than these, the whole run is taken. A rank of which it says that nothing was above its
    thresholds is healthy ("No bottleneck detected above threshold"); without steps, or where it
    says `inconclusive` or `insufficient_telemetry`, it is not judged.
    """
    scopes = {int(rank): _shown(said) for rank, said in raw.items() if "refused" not in said}
    judged = {rank: scope for rank, scope in scopes.items() if _concludes(scope)}
    said = [one for rank, scope in judged.items() for one in _said(scope, rank)]
    clear = any(not scope["diagnosis"]["primary_bottleneck"] for scope in judged.values())
    return answer(said, ranks=len(judged), judged=bool(said) or clear)


def _shown(said: dict[str, Any]) -> dict[str, Any]:
    steady: dict[str, Any] = said["steady_state"]
    run: dict[str, Any] = said["run"]
    return steady if steady["step_count"] else run


def _concludes(scope: dict[str, Any]) -> bool:
    label = scope["diagnosis"]["primary_bottleneck"]
    return bool(scope["step_count"]) and label not in ("inconclusive", "insufficient_telemetry")


def _said(scope: dict[str, Any], rank: int) -> Iterator[Said]:
    """Its main bottleneck with its confidence, and further ones with their scores."""
    diagnosis = scope["diagnosis"]
    main = diagnosis["user_facing_bottleneck"]
    if main and (cause := CAUSES[main]):
        yield Said(cause, diagnosis["confidence"]["score"], rank=rank)
    for bottleneck in scope["bottlenecks"]:
        cause = CAUSES[bottleneck["label"]]
        if cause and bottleneck["label"] != main:
            yield Said(cause, min(1.0, bottleneck["score"]), rank=rank)

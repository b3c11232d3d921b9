"""What gpu-idle says, in the words of the taxonomy."""

from __future__ import annotations

from typing import Any

from cases.schema import Diagnosis
from harness.diagnosers.third_party.answers import Said, answer

# From the table "What it detects" of its README (0.1.0):
CAUSES = {
    # "Step time dominated by enumerate(DataLoader) while the GPU idles"
    "dataloader": "input_pipeline",
    # "Kernels far too short to fill the device; launch overhead dominates"
    "smallbatch": "kernel_launch_bound",
    # "A large share of the step is host-to-device copying"; the fix is pin_memory=True
    "h2d_copy": "host_to_device_copy",
}
# "The GPU is idle but no known signature matches - says so plainly": no cause, and not healthy.
UNKNOWN = "unattributed"


def translate(raw: Any) -> Diagnosis:
    """Translate the driver's output: by rank `findings`, or that it was `refused`.

    "`findings` is empty when nothing is wrong" (README). A rank without profiled steps is one
    that it cannot judge.
    """
    judged = {int(rank): said for rank, said in raw.items() if "refused" not in said}
    said = [
        Said(CAUSES[finding["cause"]], finding["confidence"], rank=rank)
        for rank, found in judged.items()
        for finding in found["findings"]
        if finding["cause"] != UNKNOWN
    ]
    unknown = any(f["cause"] == UNKNOWN for found in judged.values() for f in found["findings"])
    return answer(said, ranks=len(judged), judged=bool(judged) and not (unknown and not said))

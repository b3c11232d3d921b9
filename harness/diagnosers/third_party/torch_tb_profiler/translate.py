"""What PyTorch's profiler plugin recommends, in the words of the taxonomy."""

from __future__ import annotations

import re
from typing import Any

from cases.schema import Diagnosis
from harness.diagnosers.third_party.answers import UNGRADED, Said, answer

# By the words of its recommendations (torch_tb_profiler/profiler/data.py, 0.4.3). None: it says
# that something is wrong and names no cause.
CAUSES: dict[str, str | None] = {
    "high time cost on input data loading": "input_pipeline",
    # "Gradient Compression or Gradient Accumulation or increase the batch size"
    "high time cost on communication": "communication_schedule",
    "You could enable": "precision_fallback",  # ... Automatic Mixed Precision to speedup
    "Device memory usage is at the limit": "device_memory",
    "Nccl backend is currently the fastest": "transport",
    "low utilization": None,  # "You could try to increase batch size to improve"
    "It is recommended to": None,  # ... use DistributedDataParallel instead of DataParallel
}
SHARE = re.compile(r"([\d.]+)% of the step time")


def translate(raw: Any) -> Diagnosis:
    """Translate its recommendations by rank.

    It grades none of them. No recommendation means that it finds nothing to improve.
    """
    texts = [(int(rank), text) for rank, found in raw.items() for text in found]
    said = []
    for rank, text in texts:
        cause = CAUSES[next(words for words in CAUSES if words in text)]
        share = SHARE.search(text)
        lost = float(share[1]) / 100 if share else None
        if cause:
            said.append(Said(cause, UNGRADED, rank=rank, lost_fraction=lost))
    return answer(said, ranks=len(raw), judged=bool(raw) and (bool(said) or not texts))

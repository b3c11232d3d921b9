"""Numbers of traces: what runs, how often, how long, and what overlaps."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd

from cases.case import Recording
from harness.diagnosers.features.arrays import Flags, Floats, Groups, Ints, reduced

# name -> (category, or "" for any; regular expression of names)
COUNTED: dict[str, tuple[str, str]] = {
    "products": ("kernel", "gemm|scudnn|implicit|convolve"),
    "wide_products": ("kernel", "sgemm|scudnn|tf32|s1688"),
    "updates": ("kernel", "multi_tensor_apply"),
    "fused_attention": ("kernel", "flash|fmha"),
    "softmax": ("kernel", "softmax|SoftMax"),
    "generated": ("kernel", "^triton_"),
    "operators": ("cpu_op", "."),
    "value_reads": ("cpu_op", "^aten::_local_scalar_dense$"),
    "checks": ("cpu_op", "^aten::isnan$"),
    "matrix_operators": ("cpu_op", "^aten::(mm|addmm|bmm|convolution|linear|_convolution)$"),
    "attention_operators": ("cpu_op", "scaled_dot_product"),
    "copies_of_type": ("cpu_op", "^aten::_to_copy$"),
    "launches": ("cuda_runtime", "Launch"),
    "graph_launches": ("cuda_runtime", "GraphLaunch"),
    "stream_waits": ("cuda_runtime", "StreamSynchronize|DeviceSynchronize"),
    "allocations": ("cuda_runtime", "^cuda(Malloc|Free)"),
    "pageable_copies": ("gpu_memcpy", "HtoD .Pageable"),
    "pinned_copies": ("gpu_memcpy", "HtoD .Pinned"),
}
COLLECTIVE = "^nccl"
TIMES = ("compute_time", "collective_time", "hidden_share", "exposed_time", "idle_share")
NUMBERS = (*COUNTED, "kernels", *TIMES, "launch_call", "copy_time")
KERNELS = ("kernel_most", "kernel_usual", "new_kernels")
UNSEEN = (np.nan, 0.0)  # length and time of a name that a run lacks
WEIGHTY = 0.03  # share of a rank's kernel time from which on a kernel's name is looked at


def trace_numbers(run: Recording) -> dict[str, float]:
    """Return a number for each of `COUNTED`, and shares of time; means over traced ranks."""
    each = [_rank_numbers(run.trace(rank)) for rank in run.trace_ranks]
    names = each[0] if each else {}
    return {name: reduced(np.array([one[name] for one in each]), np.mean) for name in names}


def _rank_numbers(events: pd.DataFrame) -> dict[str, float]:
    name_code, names = _codes(events["name"])
    cat_code, categories = _codes(events["category"])
    codes = {text: code for code, text in enumerate(categories)}
    # How many events there are of each name and category; those without a name come last.
    pairs = np.where(name_code < 0, len(names), name_code) * (len(codes) + 1) + cat_code + 1
    cells = (len(names) + 1) * (len(codes) + 1)
    counts = np.bincount(pairs, minlength=cells).reshape(len(names) + 1, len(codes) + 1)
    out = {}
    for key, (kind, pattern) in COUNTED.items():
        found = counts[matches(names, pattern), codes[kind] + 1].sum() if kind in codes else 0
        out[key] = float(found)
    kernel = cat_code == codes.get("kernel", -2)
    joined = kernel & matches(names, COLLECTIVE)[name_code]
    start = events["start_ns"].to_numpy(np.float64)
    length = events["duration_ns"].to_numpy(np.float64)
    out["kernels"] = float((kernel & ~joined).sum())
    out |= _times(start, length, kernel & ~joined, joined)
    launch = matches(names, "LaunchKernel")[name_code] & (cat_code == codes.get("cuda_runtime", -2))
    out["launch_call"] = reduced(length[launch], np.median)
    out["copy_time"] = float(length[cat_code == codes.get("gpu_memcpy", -2)].sum())
    return out


def _codes(column: pd.Series[Any]) -> tuple[Ints, list[str]]:
    """A column of texts as numbers, -1 where there is none, and the texts."""
    texts = column.astype("category").cat
    return texts.codes.to_numpy().astype(np.int64), [str(text) for text in texts.categories]


def matches(names: list[str], pattern: str) -> Flags:
    """Which names hold the pattern; one more element, False, for a missing name (code -1)."""
    search = re.compile(pattern).search
    return np.array([bool(search(name)) for name in names] + [False])


def _times(start: Floats, length: Floats, computing: Flags, joined: Flags) -> dict[str, float]:
    """Time of computing and collective kernels, and the share of the latter that is hidden."""
    out = {
        "compute_time": float(length[computing].sum()),
        "collective_time": float(length[joined].sum()),
        "hidden_share": np.nan,
        "exposed_time": np.nan,
        "idle_share": np.nan,
    }
    if computing.any():
        covered = Coverage(start[computing], length[computing])
        hidden = covered.within(start[joined], start[joined] + length[joined])
        if out["collective_time"] > 0:
            out["hidden_share"] = float(hidden.sum()) / out["collective_time"]
        out["exposed_time"] = out["collective_time"] - float(hidden.sum())
        busy = computing | joined
        everything = Coverage(start[busy], length[busy])
        out["idle_share"] = 1 - everything.total / everything.span
    return out


class Coverage:
    """How much of a stretch of time is covered by some of many intervals."""

    def __init__(self, start: Floats, length: Floats) -> None:
        order = np.argsort(start, kind="stable")
        begin, end = start[order], np.maximum.accumulate(start[order] + length[order])
        fresh = np.concatenate([[True], begin[1:] > end[:-1]])
        last = np.concatenate([np.flatnonzero(fresh)[1:] - 1, [len(end) - 1]])
        self._begin, self._end = begin[fresh], end[last]
        self._before = np.concatenate([[0.0], np.cumsum(self._end - self._begin)])

    @property
    def total(self) -> float:
        """Covered time in ns."""
        return float(self._before[-1])

    @property
    def span(self) -> float:
        """Time from the first begin to the last end, in ns, at least 1."""
        return max(float(self._end[-1] - self._begin[0]), 1.0)

    def within(self, start: Floats, end: Floats) -> Floats:
        """Covered time between each `start` and `end`."""
        return np.asarray(self._until(end) - self._until(start))

    def _until(self, time: Floats) -> Floats:
        index = np.searchsorted(self._begin, time, side="right")
        at = np.maximum(index - 1, 0)
        inside = np.clip(time - self._begin[at], 0, self._end[at] - self._begin[at])
        return np.asarray(np.where(index > 0, self._before[at] + inside, 0.0))


def kernel_growth(now: Recording, then: Recording) -> dict[str, float]:
    """How lengths of kernels of the same name compare with the reference's.

    `kernel_most` is the greatest growth of a name's 0.2 quantile among names of weight, over
    ranks the least; `kernel_usual` the median over names; `new_kernels` the share of kernel time
    in names that the reference lacks.
    """
    here, there = _lengths(now, "kernel"), _lengths(then, "kernel")
    if not here or not there:
        return dict.fromkeys(KERNELS, np.nan)
    took = np.array([took for _, took in here.values()])
    growth = np.array([_over(low, there.get(name, UNSEEN)[0]) for name, (low, _) in here.items()])
    new = np.array([name not in there for name in here])
    return {
        "kernel_most": reduced(growth[took > WEIGHTY * took.sum()], np.max),
        "kernel_usual": reduced(growth, np.median),
        "new_kernels": float(took[new].sum() / took.sum()),
    }


def operator_growth(now: Recording, then: Recording) -> dict[str, float]:
    """The same of operators: `operator_usual` is the median over names that both runs have."""
    here, there = _lengths(now, "cpu_op"), _lengths(then, "cpu_op")
    both = [(low, there[name][0]) for name, (low, _) in here.items() if name in there]
    growth = [_over(low, before) for low, before in both if before > 0]
    return {"operator_usual": reduced(np.array(growth), np.median)}


def _over(now: float, then: float) -> float:
    return now / then if then else (np.inf if now else np.nan)


def _lengths(run: Recording, category: str) -> dict[str, tuple[float, float]]:
    """Name -> 0.2 quantile of its lengths, over ranks the least, and time of all of them."""
    out: dict[str, tuple[float, float]] = {}
    for rank in run.trace_ranks:
        events = run.trace(rank)
        own = events[(events["category"] == category).to_numpy()]
        code, names = _codes(own["name"])
        length = own["duration_ns"].to_numpy(np.float64)
        groups = Groups(code, len(names))
        lows, sums = groups.quantile(length, 0.2).tolist(), groups.sum(length).tolist()
        for name, low, took in zip(names, lows, sums, strict=True):
            if not np.isnan(took) and not name.startswith("nccl"):
                least, total = out.get(name, (np.inf, 0.0))
                out[name] = (min(low, least), total + took)
    return out

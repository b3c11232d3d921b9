"""Numbers of traces: what runs, how often, how long, and what overlaps."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
import pandas as pd

from cases.case import Recording
from harness.diagnosers.features.arrays import Floats, column, ratio

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
WEIGHTY = 0.03  # share of a rank's kernel time from which on a kernel's name is looked at


def trace_numbers(run: Recording) -> dict[str, float]:
    """Return a number for each of `COUNTED`, and shares of time; means over traced ranks."""
    each = [_rank_numbers(run.trace(rank)) for rank in run.trace_ranks]
    if not each:
        return {}
    frame = pd.DataFrame(each)
    return {str(name): float(frame[name].mean()) for name in frame.columns}


def _rank_numbers(events: pd.DataFrame) -> dict[str, float]:
    name, category = events["name"].astype("category"), events["category"].astype("category")
    names = np.asarray(name.cat.categories, dtype=object)
    name_code, cat_code = name.cat.codes.to_numpy(), category.cat.codes.to_numpy()
    codes = {str(text): code for code, text in enumerate(category.cat.categories)}
    out = {}
    for key, (kind, pattern) in COUNTED.items():
        matching = matches(names, pattern)[name_code]
        out[key] = float((matching & (cat_code == codes.get(kind, -2))).sum())
    kernel = cat_code == codes.get("kernel", -2)
    joined = kernel & matches(names, COLLECTIVE)[name_code]
    start, length = column(events, "start_ns"), column(events, "duration_ns")
    out["kernels"] = float((kernel & ~joined).sum())
    out |= _times(start, length, kernel & ~joined, joined)
    launch = matches(names, "LaunchKernel")[name_code] & (cat_code == codes.get("cuda_runtime", -2))
    out["launch_call"] = float(np.median(length[launch])) if launch.any() else np.nan
    copied = cat_code == codes.get("gpu_memcpy", -2)
    out["copy_time"] = float(length[copied].sum())
    return out


def matches(names: Floats | list[str], pattern: str) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which names hold the pattern; one more element, False, for a missing name (code -1)."""
    search = re.compile(pattern).search
    return np.array([bool(search(str(name))) for name in names] + [False])


def _times(
    start: Floats, length: Floats, computing: np.ndarray, joined: np.ndarray
) -> dict[str, float]:
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
    """How lengths of kernels and operators of the same name compare with the reference's.

    `kernel_most` is the greatest growth of a name's 0.2 quantile among names of weight, over
    ranks the least; `kernel_usual` the median over names; `new_kernels` the share of kernel time
    in names that the reference lacks; `operator_usual` the median growth of operators' medians.
    """
    here, there = _lengths(now, "kernel"), _lengths(then, "kernel")
    out = {"kernel_most": np.nan, "kernel_usual": np.nan, "new_kernels": np.nan}
    if len(here) and len(there):
        both = here.join(there.add_suffix("_then"), how="left")
        total = float(both["took"].sum())
        out["new_kernels"] = float(both["took"][both["low_then"].isna()].sum()) / total
        growth = both["low"] / both["low_then"]
        weighty = growth[both["took"] > WEIGHTY * total].dropna()
        out["kernel_most"] = float(weighty.max()) if len(weighty) else np.nan
        out["kernel_usual"] = float(growth.median())
    ours, theirs = _lengths(now, "cpu_op"), _lengths(then, "cpu_op")
    joint = ours.join(theirs.add_suffix("_then"), how="inner")
    joint = joint[joint["low_then"] > 0]
    out["operator_usual"] = float((joint["low"] / joint["low_then"]).median())
    return out


def _lengths(run: Recording, category: str) -> pd.DataFrame:
    frames = []
    for rank in run.trace_ranks:
        events = run.trace(rank)
        own = events[events["category"] == category]
        own = own[~own["name"].astype(str).str.startswith("nccl")]
        groups = own.groupby("name", observed=True)["duration_ns"]
        frames.append(pd.DataFrame({"low": groups.quantile(0.2), "took": groups.sum()}))
    if not frames:
        return pd.DataFrame({"low": [], "took": []})
    both = pd.concat(frames)
    by_name = both.groupby(level=0)
    return pd.DataFrame({"low": by_name["low"].min(), "took": by_name["took"].sum()}).astype(float)


def compared(now: Mapping[str, float], then: Mapping[str, float]) -> dict[str, float]:
    """Ratios of the same numbers of two runs."""
    return {name: ratio(now[name], then[name]) for name in now if name in then}

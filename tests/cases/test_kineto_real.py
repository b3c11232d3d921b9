"""Real traces, which are not shipped, against numbers computed apart from the reader.

EVALHARNESS_REAL_TRACES names their folder. The figures in KNOWN were measured by others.
"""

import gzip
import json
import os
from collections import Counter
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from cases.kineto import CATEGORIES, read_trace

VARIABLE = "EVALHARNESS_REAL_TRACES"
FOLDER = Path(os.environ.get(VARIABLE, ""))

# (kernels, busy percent of the span of complete events, NCCL kernels, distinct steps)
KNOWN = {
    "hta_ddp_a100_rank3of8": (8568, 79.4, 60, 6),
    "hta_nccl_args_a100_rank0of2": (2700, 22.7, 21, 3),
    "hta_recsys_rank0of128": (1154, 44.5, 10, 2),
    "hta_recsys_rank1of128": (1104, 46.5, 10, 2),
    "hta_recsys_alltoall_a100_rank0of16": (6080, 32.2, 80, 5),
    "hta_unbucketed_allreduce_v100_rank1of2_mem": (19370, 56.3, 2020, 5),
    "hta_cuda_sync_a100": (3, 1.9, 0, 0),
    "hta_amd_mi250_toy": (14, 1.2, 0, 2),
    "param_resnet_2080ti": (9628, 25.4, 0, 0),
    "param_linear_2080ti": (8716, 18.4, 0, 0),
    "tracelens_ddp_mi300x_rank0of8": (2995, 93.6, 17, 3),
    "tracelens_owlv2_h100": (4330, 45.5, 0, 1),
    "tracelens_qwen0.5b_h100": (1465, 91.3, 0, 1),
    "tracelens_sglang_qwen3_mi300x": (527, 49.9, 0, 0),
    "param_dlrm_v100_8ranks/rank0": (245, 45.3, 8, 1),
    "param_dlrm_v100_8ranks/rank1": (310, 61.7, 8, 1),
    "param_dlrm_v100_8ranks/rank2": (246, 32.8, 8, 1),
    "param_dlrm_v100_8ranks/rank3": (315, 55.2, 8, 1),
    "param_dlrm_v100_8ranks/rank4": (251, 42.6, 8, 1),
    "param_dlrm_v100_8ranks/rank5": (245, 40.6, 8, 1),
    "param_dlrm_v100_8ranks/rank6": (246, 33.0, 8, 1),
    "param_dlrm_v100_8ranks/rank7": (246, 21.0, 8, 1),
}


@pytest.fixture(scope="module", params=KNOWN)
def real(request):
    path = FOLDER / f"{request.param}.json.gz"
    if VARIABLE not in os.environ:
        pytest.skip(f"{VARIABLE} is not set")
    if not path.is_file():
        pytest.skip(f"{path} is absent")
    document = json.loads(gzip.decompress(path.read_bytes()), parse_float=Decimal)
    rows = [event for event in document["traceEvents"] if event["ph"] in "Xi"]
    return read_trace(path), rows, document, KNOWN[request.param]


def test_every_event_is_there_with_its_times(real):
    trace, rows, document, _ = real
    assert trace.dropped == {}
    assert sum(trace.counts.values()) + len(trace.events) == len(document["traceEvents"])
    expected = Counter(CATEGORIES.get(row["cat"], row["cat"]) for row in rows if "cat" in row)
    assert trace.events.category.value_counts().to_dict() == expected
    durations = sum(Decimal(row.get("dur", 0)) for row in rows)
    assert trace.events.duration_ns.sum() == durations * 1000
    starts = sorted(int(Decimal(row["ts"]) * 1000) for row in rows)
    assert trace.events.start_ns.tolist() == starts


def test_arguments_are_there(real):
    trace, rows, _, _ = real
    for name, column in (("correlation", "correlation"), ("External id", "external_id")):
        values = [row["args"][name] for row in rows if name in row.get("args", {})]
        assert trace.events[column].sum() == sum(values)
        assert trace.events[column].notna().sum() == len(values)
    collectives = Counter(row.get("args", {}).get("Collective name") for row in rows)
    del collectives[None]
    assert trace.events.collective.value_counts().to_dict() == collectives


def test_header(real):
    trace, _, document, _ = real
    info = document.get("distributedInfo", {})
    assert (trace.rank, trace.world_size) == (info.get("rank"), info.get("world_size"))
    assert trace.base_time_ns == document.get("baseTimeNanoseconds", 0)


def test_figures_that_others_measured(real):
    trace, _, _, (kernels, busy_percent, nccl, steps) = real
    kernel = trace.events[trace.events.category == "kernel"]
    assert len(kernel) == kernels
    assert kernel.name.astype(str).str.contains("nccl", case=False).sum() == nccl
    assert trace.events.step.nunique() == steps
    assert busy_share(trace.events) * 100 == pytest.approx(busy_percent, abs=0.06)


def busy_share(events):
    """Union of kernel intervals over the span of complete events but the profiler's own."""
    kernel = events[events.category == "kernel"]
    start = kernel.start_ns.to_numpy()
    end = start + kernel.duration_ns.to_numpy()
    reach = np.maximum.accumulate(end)
    covered = np.maximum(end - np.maximum(start, np.r_[start[0], reach[:-1]]), 0).sum()
    spans = events[events.category.notna() & (events.category != "trace")]
    spans = spans[spans.category != "cpu_instant_event"]
    ends = (spans.start_ns + spans.duration_ns).max()
    return covered / (ends - spans.start_ns.min())

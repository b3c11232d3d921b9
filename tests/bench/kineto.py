"""How fast and how lean a large Kineto trace is read, against the standard library.

The largest real trace is used where EVALHARNESS_REAL_TRACES names a folder that has it; else
one of like size and shape is made.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from cases.kineto import read_trace
from tests.bench.figure import Figure, median_ratio

LARGEST = "hta_unbucketed_allreduce_v100_rank1of2_mem.json.gz"
TIME_LIMIT = 0.4
MEMORY_LIMIT = 6.0
PEAK = """
import re, sys
from pathlib import Path
from cases.kineto import read_trace
status = Path("/proc/self/status")
peak = lambda: 1024 * int(re.search(r"VmHWM:\\s+(\\d+)", status.read_text())[1])
before = peak()
read_trace(Path(sys.argv[1]))
print(peak() - before)
"""
# VmHWM and not ru_maxrss: a child's ru_maxrss begins at its parent's.


def measure() -> list[Figure]:
    """Time and peak memory of gzip -> DataFrame."""
    with tempfile.TemporaryDirectory() as folder:
        real = Path(os.environ.get("EVALHARNESS_REAL_TRACES", "")) / LARGEST
        path = real if real.is_file() else _made(Path(folder))
        kind = "real" if path == real else "made"
        ratio = median_ratio(
            lambda: read_trace(path), lambda: json.loads(gzip.decompress(path.read_bytes()))
        )
        raw_bytes = len(gzip.decompress(path.read_bytes()))
        peak = subprocess.run(
            [sys.executable, "-c", PEAK, str(path)], check=True, capture_output=True, text=True
        )
    return [
        Figure(f"reading a {kind} trace / gzip + json.loads, time", ratio, TIME_LIMIT),
        Figure(
            f"reading a {kind} trace, growth of memory / raw bytes",
            int(peak.stdout) / raw_bytes,
            MEMORY_LIMIT,
        ),
    ]


def _made(folder: Path, launches: int = 40_000) -> Path:
    """Write a trace of `launches` operators, each with a launch, a kernel and two arrows."""
    base = 1_700_000_000_000_000
    events = [event for i in range(launches) for event in _launch(base + 40 * i, i)]
    path = folder / "trace.json.gz"
    path.write_bytes(gzip.compress(json.dumps({"traceEvents": events}).encode(), 6))
    return path


def _launch(ts: int, i: int) -> list[dict[str, object]]:
    name = f"void at::native::elementwise_kernel<{i % 97}, at::native::FillFunctor<float> >(int)"
    ids = {"External id": i, "correlation": i}
    on_device = {"device": 0, "context": 1, "stream": 7, "grid": [24, 1, 1], "block": [128, 1, 1]}
    host = {"pid": 7001, "tid": 7001}
    arrow = {"cat": "ac2g", "name": "ac2g", "id": i}
    return [
        {"ph": "X", "cat": "cpu_op", "name": f"aten::op_{i % 61}", **host, "ts": ts, "dur": 30,
         "args": {"External id": i, "Ev Idx": i, "Input Dims": [[64, 1024], [1024]]}},
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", **host, "ts": ts + 4,
         "dur": 8, "args": {**ids, "cbid": 211}},
        {"ph": "s", **arrow, **host, "ts": ts + 4},
        {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": ts + 20, "dur": 15,
         "args": {**ids, **on_device}},
        {"ph": "f", **arrow, "pid": 0, "tid": 7, "ts": ts + 20, "bp": "e"},
    ]  # fmt: skip

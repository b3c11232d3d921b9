"""The genuine nvidia-ml-py against a small library that serves its symbols."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pynvml", reason="needs nvidia-ml-py: pip install 'evalharness[record]'")

SOURCE = r"""
#define OK 0
#define NOT_SUPPORTED 3
typedef struct { unsigned gpu, memory; } use_t;
typedef struct { unsigned long long total, free, used; } memory_t;
int nvmlInitWithFlags(unsigned flags) { return OK; }
int nvmlShutdown(void) { return OK; }
const char *nvmlErrorString(int code) { return "not today"; }
int nvmlDeviceGetCount_v2(unsigned *n) { *n = 2; return OK; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **h) { *h = (void *)(long)(i + 1); return OK; }
int nvmlDeviceGetUtilizationRates(void *h, use_t *u) { u->gpu = 97; u->memory = 41; return OK; }
int nvmlDeviceGetMemoryInfo(void *h, memory_t *m) {
  m->total = 80ULL << 30; m->free = 60ULL << 30; m->used = 20ULL << 30; return OK; }
int nvmlDeviceGetPowerUsage(void *h, unsigned *mw) {
  if (h == (void *)2) return NOT_SUPPORTED;
  *mw = 312500; return OK; }
int nvmlDeviceGetEnforcedPowerLimit(void *h, unsigned *mw) { *mw = 700000; return OK; }
int nvmlDeviceGetClockInfo(void *h, int type, unsigned *mhz) {
  *mhz = type == 1 ? 1980 : 2619; return OK; }
int nvmlDeviceGetTemperature(void *h, int sensor, unsigned *c) { *c = 54; return OK; }
int nvmlDeviceGetPcieThroughput(void *h, int counter, unsigned *kib) {
  *kib = counter ? 2000 : 1000; return OK; }
int nvmlDeviceGetCurrPcieLinkGeneration(void *h, unsigned *g) { *g = 5; return OK; }
int nvmlDeviceGetCurrPcieLinkWidth(void *h, unsigned *w) { *w = 16; return OK; }
"""
PROGRAM = """
import json, sys
from pathlib import Path
from injectors.recorder.nvml import NvmlSampler
sampler = NvmlSampler.open(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
print(json.dumps(sampler.sample(5)))
sampler.close()
"""


def sample(*arguments):
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        check=False,
    )


def test_values_errors_and_missing_symbols(tmp_path):
    source, library = tmp_path / "nvml.c", tmp_path / "libnvidia-ml.so.1"
    source.write_text(SOURCE)
    flags = ["-shared", "-fPIC", "-Wl,-soname,libnvidia-ml.so.1"]
    subprocess.run(["gcc", str(source), *flags, "-o", str(library)], check=True)
    done = sample(str(library))
    assert done.returncode == 0, done.stderr
    first, second = json.loads(done.stdout)
    assert first == {
        "rank": 0,
        "time_ns": 5,
        "utilization_percent": 97.0,
        "memory_utilization_percent": 41.0,
        "memory_used_bytes": 20 * 2**30,
        "memory_total_bytes": 80 * 2**30,
        "power_w": 312.5,
        "power_limit_w": 700.0,
        "sm_clock_mhz": 1980,
        "memory_clock_mhz": 2619,
        "temperature_c": 54,
        "event_reasons": None,  # the symbol is missing
        "pcie_tx_bytes_per_s": 1000 * 1024,
        "pcie_rx_bytes_per_s": 2000 * 1024,
        "pcie_generation": 5,
        "pcie_width": 16,
        "nvlink_tx_bytes": None,
        "nvlink_rx_bytes": None,
        "processes": None,
    }
    assert (second["rank"], second["power_w"]) == (1, None)  # the device does not support it


def test_no_driver_is_said_plainly():
    done = sample()
    if done.returncode == 0:
        pytest.skip("this machine has an NVIDIA driver")
    assert "must have an NVIDIA driver to sample GPUs" in done.stderr

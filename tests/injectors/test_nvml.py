"""The genuine nvidia-ml-py against a small library that serves its symbols."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pynvml", reason="needs nvidia-ml-py: pip install 'evalharness[record]'")

SOURCE = Path(__file__).with_name("nvml_stand_in.c")
PROGRAM = """
import json, sys
from pathlib import Path
from injectors.recorder.nvml import NvmlSampler
sampler = NvmlSampler.open(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
print(json.dumps(sampler.sample(5)))
sampler.close()
"""


def sample(*arguments, program=PROGRAM):
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        check=False,
    )


def test_values_errors_and_missing_symbols(tmp_path):
    library = tmp_path / "libnvidia-ml.so.1"
    flags = ["-shared", "-fPIC", "-Wl,-soname,libnvidia-ml.so.1"]
    subprocess.run(["gcc", str(SOURCE), *flags, "-o", str(library)], check=True)
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
        "nvlink_tx_bytes": 36 * 1024,  # the sum over all links, not the first one's
        "nvlink_rx_bytes": 54 * 1024,
        "processes": 3,
    }
    # What the second device does not support is None there alone
    unsupported = ("power_w", "nvlink_tx_bytes", "nvlink_rx_bytes", "processes")
    assert second == {**first, "rank": 1, **dict.fromkeys(unsupported)}


def test_no_driver_is_said_plainly():
    done = sample()
    if done.returncode == 0:
        pytest.skip("this machine has an NVIDIA driver")
    assert "must have an NVIDIA driver to sample GPUs" in done.stderr


def test_a_library_that_cannot_be_loaded_is_said_plainly(tmp_path):
    done = sample(str(tmp_path / "libnvidia-ml.so.1"))
    assert "ScenarioError: must have an NVIDIA driver to sample GPUs" in done.stderr


def test_a_missing_nvidia_ml_py_names_its_extra():
    done = sample(program="import sys; sys.modules['pynvml'] = None\n" + PROGRAM)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith("pip install 'evalharness[record]'")

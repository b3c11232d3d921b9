"""Triton against PyTorch, in a child because importing Triton chooses the interpreter."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="needs evalharness[record]")
pytest.importorskip("triton", reason="needs evalharness[record]")

AGREEMENT = Path(__file__).with_name("triton_agreement.py")
# Half a unit in the last place of each type, with room for float32 sums
TOLERANCE = {"float32": 4e-6, "bfloat16": 2**-6, "float16": 2**-9}
# forward and backward of one call; a layer norm adds two column sums for its parameters
LAUNCHES = {
    ("layer_norm", True): 1 + 3,
    ("layer_norm", False): 8 + 13,
    ("gelu", True): 1 + 1,
    ("gelu", False): 6 + 14,
    ("softmax", True): 1 + 1,
    ("softmax", False): 5 + 4,
}


def agreement(device, **environment):
    done = subprocess.run(
        [sys.executable, AGREEMENT, device],
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module", params=["cpu", "cuda"])
def rows(request):
    if request.param == "cpu":
        return agreement("cpu", TRITON_INTERPRET="1")
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    return agreement("cuda")


def test_every_form_agrees_forward_and_backward(rows):
    assert len(rows) == 3 * 4 * 3 * 2
    wrong = [row for row in rows if max(row["errors"]) > TOLERANCE[row["dtype"]]]
    assert not wrong


def test_results_and_gradients_keep_the_type(rows):
    assert all(row["kept_dtype"] for row in rows)


def test_the_chain_starts_many_kernels_where_the_other_starts_one(rows):
    found = {(row["name"], row["fused"]): row["launches"] for row in rows}
    assert found == LAUNCHES


COMPILE_ALL = """
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from injectors.kernels import triton_kernels
kinds = dict.fromkeys(("n", "rows", "size"), "i32")
kinds |= dict.fromkeys(("eps", "factor", "term"), "fp32")
kinds |= dict.fromkeys(("mean", "rstd", "each"), "*fp32")
kinds |= dict.fromkeys(("BLOCK", "ROWS", "COLUMNS", "STRIDED"), "constexpr")
for kernel in vars(triton_kernels).values():
    if isinstance(kernel, triton.JITFunction):
        types = {name: kinds.get(name, "*bf16") for name in kernel.arg_names}
        blocks = {a: 1024 if a == "BLOCK" else 32 for a in types if a.isupper()}
        for strided in {False, "STRIDED" in types}:
            blocks.update({"STRIDED": strided} if "STRIDED" in types else {})
            source, target = ASTSource(kernel, types, blocks), GPUTarget("cuda", 90, 32)
            assert triton.compile(source, target=target).asm["cubin"]
        print(kernel.__name__)
"""


def test_every_kernel_compiles_to_machine_code_for_a_gpu(tmp_path):
    environment = {**os.environ, "TRITON_CACHE_DIR": str(tmp_path)}
    environment.pop("TRITON_INTERPRET", None)
    done = subprocess.run(
        [sys.executable, "-c", COMPILE_ALL], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]
    names = done.stdout.split()
    assert len(names) == 20
    telltale = ("fused", "inject", "slow", "fault")
    assert not [name for name in names if any(word in name for word in telltale)]


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_every_layout_agrees_with_torch_over_random_shapes(device):
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    interpreted = {"TRITON_INTERPRET": "1"} if device == "cpu" else {}
    done = subprocess.run(
        [sys.executable, AGREEMENT.with_name("triton_properties.py"), device],
        env={**os.environ, "OMP_NUM_THREADS": "1", **interpreted},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) >= 60


def test_layouts_differ_in_what_a_gpu_must_fetch():
    from injectors.kernels.launch import LAYOUTS

    now, other = LAYOUTS
    assert not now.strided
    assert other.strided
    assert other.elements < now.elements
    assert other.row_warps < now.row_warps


def test_a_row_beyond_one_program_is_refused():
    from injectors.kernels.launch import LARGEST_ROW, row_block

    assert row_block(LARGEST_ROW) == LARGEST_ROW
    with pytest.raises(ValueError, match="at most 65536 columns, got 65537"):
        row_block(LARGEST_ROW + 1)

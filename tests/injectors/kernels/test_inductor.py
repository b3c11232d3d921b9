"""Compiled and op by op must give the same numbers, and different traces."""

import subprocess
import sys
from functools import partial

import pytest

torch = pytest.importorskip("torch", reason="needs evalharness[record]")

from injectors import capabilities, kernels  # noqa: E402
from injectors.kernels import inductor  # noqa: E402

functional = torch.nn.functional
SHAPE = (3, 7, 33)
OPERATIONS = {"layer_norm": kernels.layer_norm, "gelu": kernels.gelu, "softmax": kernels.softmax}
REFERENCES = {
    "layer_norm": lambda x, w, b: functional.layer_norm(x, x.shape[-1:], w, b, 1e-5),
    "gelu": lambda x: functional.gelu(x, approximate="tanh"),
    "softmax": lambda x: x.softmax(-1),
}

# torch's own warnings while compiling are not ours to mend
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")


@pytest.fixture(scope="module")
def compiler():
    found = capabilities.cpp_compiler()
    if not found:
        pytest.skip(found.reason)


def leaves(name):
    torch.manual_seed(len(name))
    made = [torch.randn(SHAPE, requires_grad=True)]
    if name == "layer_norm":
        made += [torch.nn.Parameter(torch.randn(SHAPE[-1])) for _ in range(2)]
    return made


def outcome(function, inputs):
    for tensor in inputs:
        tensor.grad = None
    result = function(*inputs)
    (result * torch.linspace(-1, 1, result.numel()).view(result.shape)).sum().backward()
    return [result.detach(), *(tensor.grad for tensor in inputs)]


def assert_close(found, expected):
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", OPERATIONS)
def test_op_by_op_agrees_with_torch(name):
    inputs = leaves(name)
    found = outcome(lambda *args: OPERATIONS[name](*args, fused=False), inputs)
    assert_close(found, outcome(REFERENCES[name], inputs))


@pytest.mark.parametrize("name", OPERATIONS)
def test_compiled_agrees_with_torch_and_runs_fewer_ops(name, compiler):
    inputs = leaves(name)
    expected = outcome(REFERENCES[name], inputs)
    counts = {}
    for fused in (True, False):
        function = partial(OPERATIONS[name], fused=fused)
        assert_close(outcome(function, inputs), expected)
        with torch.profiler.profile() as profile:
            outcome(function, inputs)
        names = [event.name for event in profile.events()]
        assert any("cpp_fused" in name for name in names) == fused
        assert not [name for name in names if "inject" in name or "unfused" in name]
        counts[fused] = sum(name.startswith("aten::") for name in names)
    assert counts[False] > counts[True] + 5


def test_rows_that_are_masked_in_part_have_no_nan():
    mask = torch.full((5, 5), float("-inf")).triu(1)
    scores = torch.randn(2, 5, 5, requires_grad=True)
    found = kernels.masked_softmax(scores, mask, 0.5, fused=False)
    torch.testing.assert_close(found, (scores * 0.5 + mask).softmax(-1))
    (found * found).sum().backward()
    assert scores.grad.isfinite().all()
    assert (found.detach()[:, 0, 1:] == 0).all()


def composites():
    torch.manual_seed(1)
    x, residual = torch.randn(2, 6, 9), torch.randn(2, 6, 9)
    weight, bias = torch.randn(9), torch.randn(9)
    return {
        "bias_gelu": ((x, bias), functional.gelu(x + bias, approximate="tanh")),
        "residual_layer_norm": (
            (x, residual, weight, bias),
            functional.layer_norm(x + residual, (9,), weight, bias, 1e-5),
        ),
        "masked_softmax": ((x, residual, 0.3), (x * 0.3 + residual).softmax(-1)),
    }


@pytest.mark.parametrize("name", composites())
@pytest.mark.parametrize("fused", [True, False])
def test_composites_agree_with_torch(name, fused, request):
    if fused:
        request.getfixturevalue("compiler")
    inputs, expected = composites()[name]
    with torch.no_grad():
        torch.testing.assert_close(getattr(kernels, name)(*inputs, fused=fused), expected)


def test_a_function_is_compiled_once_for_all_callers():
    assert inductor.compiled(inductor.gelu) is inductor.compiled(inductor.gelu)


WARMED = """
import torch
from pathlib import Path
from injectors import kernels
kernels.warm_up({"gelu": [(3, 7, 33)]}, torch.float32, "cpu")
before = torch._dynamo.utils.counters["frames"]["total"]
x = torch.randn(3, 7, 33, requires_grad=True)
kernels.gelu(x, fused=True).sum().backward()
print(torch._dynamo.utils.counters["frames"]["total"] - before)
print(len(Path("/proc/thread-self/children").read_text().split()))
"""


def test_after_warming_up_nothing_is_compiled_and_no_worker_stays(compiler):
    done = subprocess.run([sys.executable, "-c", WARMED], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split() == ["0", "0"]

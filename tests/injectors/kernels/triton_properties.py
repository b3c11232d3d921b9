"""Properties of the Triton operations over random shapes and types.

Run by path with TRITON_INTERPRET=1 on the CPU, without it on CUDA; prints how many examples ran.
"""

import sys

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from injectors.kernels import functions
from injectors.kernels.launch import LAYOUTS

DEVICE = sys.argv[1] if __name__ == "__main__" else "cpu"
# Half a unit in the last place of each type, with room for float32 sums
TOLERANCE = {torch.float32: 4e-6, torch.bfloat16: 2**-6, torch.float16: 2**-9}
EXAMPLES = 0


def cases(maximum):
    return given(
        rows=st.integers(1, 6),
        n=st.integers(1, maximum),
        dtype=st.sampled_from(list(TOLERANCE)),
        version=st.integers(0, len(LAYOUTS) - 1),
        seed=st.integers(0, 99),
    )


def check(function, reference, inputs):
    """Compare result and gradients with PyTorch's, in float64 from the same rounded inputs."""
    global EXAMPLES
    EXAMPLES += 1
    found = outcome(function, inputs)
    expected = outcome(reference, [tensor.double() for tensor in inputs])
    limit = TOLERANCE[inputs[0].dtype]
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.dtype == inputs[0].dtype
        scale = theirs.abs().max().clamp(min=0.25)  # weights go up to 1, and so do roundings
        assert float((ours.double() - theirs).abs().max() / scale) <= limit


def outcome(function, inputs):
    leaves = [tensor.detach().clone().requires_grad_() for tensor in inputs]
    result = function(*leaves)
    weights = torch.linspace(-1, 1, result.numel(), device=DEVICE).to(inputs[0].dtype)
    (result * weights.view(result.shape).to(result.dtype)).sum().backward()
    return [result.detach(), *(leaf.grad for leaf in leaves)]


def draw(seed, dtype, *shapes):
    torch.manual_seed(seed)
    return [(torch.randn(shape, device=DEVICE) * 2 + 1).to(dtype) for shape in shapes]


@cases(200)
@settings(max_examples=25, deadline=None, derandomize=True, database=None)
def gelu(rows, n, dtype, version, seed):
    check(
        lambda x: functions.gelu(x, True, version),
        lambda x: functional.gelu(x, approximate="tanh"),
        draw(seed, dtype, (rows, n)),
    )


@cases(300)
@settings(max_examples=25, deadline=None, derandomize=True, database=None)
def softmax(rows, n, dtype, version, seed):
    check(
        lambda x: functions.softmax(x, True, version),
        lambda x: x.softmax(-1),
        draw(seed, dtype, (rows, n)),
    )


@cases(150)
@settings(max_examples=25, deadline=None, derandomize=True, database=None)
def layer_norm(rows, n, dtype, version, seed):
    n = n + 1  # the deviation of a single value is nothing but rounding
    check(
        lambda x, w, b: functions.layer_norm(x, w, b, 1e-2, True, version),
        lambda x, w, b: functional.layer_norm(x, (n,), w, b, 1e-2),
        draw(seed, dtype, (rows, n), (n,), (n,)),
    )


if __name__ == "__main__":
    gelu()
    softmax()
    layer_norm()
    print(EXAMPLES)

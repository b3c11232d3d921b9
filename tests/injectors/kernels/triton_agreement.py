"""Compare the Triton operations with PyTorch; prints one JSON line a case.

Run by path: with TRITON_INTERPRET=1 on the CPU, without it on CUDA. Errors are the largest
difference from a float64 reference, over the largest magnitude of that reference.
"""

import contextlib
import json
import sys

import torch
from torch.nn import functional

from injectors.kernels import functions, triton_kernels

SHAPES = ((3, 5), (2, 3, 17), (1, 130), (7, 64))
DTYPES = (torch.float32, torch.bfloat16, torch.float16)
EPS = 1e-5
OURS = {
    "layer_norm": lambda fused, x, w, b: functions.layer_norm(x, w, b, EPS, fused),
    "gelu": lambda fused, x: functions.gelu(x, fused),
    "softmax": lambda fused, x: functions.softmax(x, fused),
}
REFERENCE = {
    "layer_norm": lambda x, w, b: functional.layer_norm(x, x.shape[-1:], w, b, EPS),
    "gelu": lambda x: functional.gelu(x, approximate="tanh"),
    "softmax": lambda x: x.softmax(-1),
}


@contextlib.contextmanager
def launches():
    """Count the kernels that are started within a block."""
    kernels, count = type(triton_kernels.row_sum), [0]
    plain = kernels.run

    def counted(self, *args, **kwargs):
        # Triton's own kernels call others (tl.sum) through the same class
        count[0] += getattr(triton_kernels, self.__name__, None) is self
        return plain(self, *args, **kwargs)

    kernels.run = counted
    try:
        yield count
    finally:
        kernels.run = plain


def outcome(function, inputs, weights):
    """Return the result and the gradients of its weighted sum."""
    leaves = [tensor.detach().clone().requires_grad_() for tensor in inputs]
    result = function(*leaves)
    (result * weights.to(result.dtype)).sum().backward()
    return [result.detach(), *(leaf.grad for leaf in leaves)]


def compare(name, shape, dtype, device):
    """Yield one row for each form, with the relative errors of result and gradients."""
    sizes = [shape] + [shape[-1:]] * 2 * (name == "layer_norm")
    # Rounded first, so that the reference sees the same inputs; an offset makes the mean matter
    inputs = [(torch.randn(size, device=device) * 2 + 1).to(dtype) for size in sizes]
    weights = torch.randn(shape, device=device).to(dtype)
    wide = [tensor.double() for tensor in inputs]
    expected = outcome(REFERENCE[name], wide, weights.double())
    for fused in (True, False):
        with launches() as count:
            found = outcome(lambda *leaves, form=fused: OURS[name](form, *leaves), inputs, weights)
        errors = [
            float((ours.double() - theirs).abs().max() / theirs.abs().max().clamp(min=1e-3))
            for ours, theirs in zip(found, expected, strict=True)
        ]
        kept = all(ours.dtype == dtype for ours in found)
        yield {
            "name": name,
            "shape": shape,
            "dtype": str(dtype).removeprefix("torch."),
            "fused": fused,
            "errors": errors,
            "kept_dtype": kept,
            "launches": count[0],
        }


if __name__ == "__main__":
    torch.manual_seed(0)
    for name in OURS:
        for shape in SHAPES:
            for dtype in DTYPES:
                for row in compare(name, shape, dtype, sys.argv[1]):
                    print(json.dumps(row), flush=True)

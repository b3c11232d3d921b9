"""2D convolution by interchangeable algorithms, and a tuner that tries them on new shapes."""

# mypy: disable-error-code="misc"

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import nn
from torch.nn import functional

from injectors.recorder.knobs import Knobs

Algorithm = Callable[[torch.Tensor, torch.Tensor, torch.Tensor | None, int], torch.Tensor]


def library(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, padding: int
) -> torch.Tensor:
    """Convolve by the vendor's library: oneDNN on CPUs, cuDNN on CUDA.

    Args:
        x: Images (batch, channels, height, width).
        weight: Filters (new channels, channels, rows, columns).
        bias: One value a new channel, or None.
        padding: Zeros around each image.
    """
    return functional.conv2d(x, weight, bias, padding=padding)


def native(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, padding: int
) -> torch.Tensor:
    """Convolve by PyTorch's own implementation, with the vendor's library switched off."""
    with vendor_off(x):
        return functional.conv2d(x, weight, bias, padding=padding)


def columns(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, padding: int
) -> torch.Tensor:
    """Convolve as one matrix product over the unfolded images."""
    height, width = (
        side + 2 * padding - kernel + 1
        for side, kernel in zip(x.shape[2:], weight.shape[2:], strict=True)
    )
    patches = functional.unfold(x, (weight.shape[2], weight.shape[3]), padding=padding)
    result = weight.flatten(1) @ patches
    if bias is not None:
        result = result + bias[:, None]
    return result.view(x.shape[0], weight.shape[0], height, width)


ALGORITHMS: tuple[Algorithm, ...] = (library, native, columns)


@contextmanager
def vendor_off(x: torch.Tensor) -> Iterator[None]:
    """Do without the vendor's convolutions on the device of `x` for the length of a block."""
    if x.is_cuda:
        with torch.backends.cudnn.flags(enabled=False):
            yield
        return
    # torch.backends.mkldnn.flags sets TF32 modes as well, and warns where there are none
    before = torch._C._get_mkldnn_enabled()
    torch._C._set_mkldnn_enabled(False)
    try:
        yield
    finally:
        torch._C._set_mkldnn_enabled(before)


class Tuner:
    """Remembers the fastest algorithm for each shape, as cuDNN's benchmark mode does.

    While the knob `tuning_tries` is 0 the library chooses by itself. Otherwise every algorithm
    runs so many times when a shape is seen first; what was found before `tuned_since` counts
    no more.
    """

    def __init__(self, knobs: Knobs) -> None:
        self._knobs = knobs
        self._best: dict[tuple[object, ...], Algorithm] = {}

    def choose(
        self, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, padding: int
    ) -> Algorithm:
        """Return the algorithm to use for these shapes."""
        tries = int(self._knobs["tuning_tries"])
        if not tries:
            return library
        key = (self._knobs["tuned_since"], x.shape, weight.shape, padding)
        if key not in self._best:
            with torch.no_grad():
                seconds = [
                    _seconds(algorithm, tries, x, weight, bias, padding) for algorithm in ALGORITHMS
                ]
            self._best[key] = ALGORITHMS[seconds.index(min(seconds))]
        return self._best[key]


def _seconds(
    algorithm: Algorithm,
    tries: int,
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    padding: int,
) -> float:
    best = float("inf")
    for _ in range(tries):
        _wait_for(x)
        begin = time.perf_counter()
        algorithm(x, weight, bias, padding)
        _wait_for(x)
        best = min(best, time.perf_counter() - begin)
    return best


def _wait_for(x: torch.Tensor) -> None:
    if x.is_cuda:
        torch.cuda.synchronize(x.device)


class Convolution(nn.Conv2d):
    """A 3x3 convolution that keeps the image's size; knobs choose its algorithm at every call.

    Args:
        number: Its place among the network's convolutions; those before `other_version_layers`
            use PyTorch's own implementation.
    """

    def __init__(self, channels: int, wider: int, number: int, knobs: Knobs, tuner: Tuner) -> None:
        super().__init__(channels, wider, 3, padding=1)
        self._number, self._knobs, self._tuner = number, knobs, tuner

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map (batch, channels, height, width) to (batch, wider, height, width)."""
        other = self._number < int(self._knobs["other_version_layers"])
        algorithm = native if other else self._tuner.choose(x, self.weight, self.bias, 1)
        return algorithm(x, self.weight, self.bias, 1)

"""Interchangeable convolutions agree, and the tuner runs all of them once for a shape."""

import time

import pytest

torch = pytest.importorskip("torch", reason="needs evalharness[record]")

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from injectors.kernels import convolution  # noqa: E402
from injectors.kernels.convolution import ALGORITHMS, Convolution, Tuner, library  # noqa: E402
from injectors.recorder.knobs import Knobs  # noqa: E402


@given(
    batch=st.integers(1, 3),
    channels=st.integers(1, 5),
    wider=st.integers(1, 6),
    edges=st.tuples(st.integers(3, 12), st.integers(3, 12)),
    padding=st.integers(0, 2),
    biased=st.booleans(),
)
@settings(max_examples=20, deadline=None)
def test_algorithms_agree_forward_and_backward(batch, channels, wider, edges, padding, biased):
    torch.manual_seed(batch * 100 + channels)
    x = torch.randn(batch, channels, *edges, dtype=torch.float64)
    weight = torch.randn(wider, channels, 3, 3, dtype=torch.float64)
    bias = torch.randn(wider, dtype=torch.float64) if biased else None
    found = []
    for algorithm in ALGORITHMS:
        leaves = [tensor.clone().requires_grad_() for tensor in (x, weight)]
        result = algorithm(*leaves, bias, padding)
        (result * result).sum().backward()
        found.append([result.detach(), *(leaf.grad for leaf in leaves)])
    for other in found[1:]:
        for ours, theirs in zip(other, found[0], strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9)


@pytest.fixture
def calls(monkeypatch):
    """Names of the algorithms in the order in which they are called."""
    made = []

    def watched(algorithm):
        def run(*arguments):
            made.append(algorithm.__name__)
            return algorithm(*arguments)

        return run

    monkeypatch.setattr(convolution, "ALGORITHMS", tuple(map(watched, ALGORITHMS)))
    return made


def test_a_shape_is_tuned_at_first_sight_only(calls):
    knobs, weight = Knobs(), torch.randn(4, 3, 3, 3)
    tuner = Tuner(knobs)
    images = {edge: torch.randn(2, 3, edge, edge) for edge in (8, 9)}
    assert tuner.choose(images[8], weight, None, 1) is library
    assert calls == []
    with knobs.turned(tuning_tries=2, tuned_since=time.monotonic()):
        for edge in (8, 9, 8, 9):
            tuner.choose(images[edge], weight, None, 1)
    assert len(calls) == 2 * len(ALGORITHMS) * 2  # two shapes, two tries each
    with knobs.turned(tuning_tries=1, tuned_since=time.monotonic()):
        tuner.choose(images[8], weight, None, 1)  # what was found before counts no more
    assert len(calls) == 2 * len(ALGORITHMS) * 2 + len(ALGORITHMS)


def test_layer_takes_the_other_version_from_the_first_on():
    knobs = Knobs()
    layers = [Convolution(3, 3, number, knobs, Tuner(knobs)) for number in range(2)]
    x = torch.randn(2, 3, 8, 8)
    with knobs.turned(other_version_layers=1), torch.profiler.profile() as profile:
        layers[1](layers[0](x))
    names = [event.name for event in profile.events()]
    assert names.count("aten::conv2d") == 2
    assert names.count("aten::mkldnn_convolution") == 1
    assert sum("slow_conv2d" in name for name in names) >= 1
    assert not [name for name in names if "inject" in name or "fault" in name]

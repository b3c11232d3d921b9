from __future__ import annotations

import pytest

from injectors.sim.costs import (
    ADD_Q16,
    GEMM_FIXED_NS,
    REDUCTION_FIXED_NS,
    REDUCTION_Q16,
    STREAM_FIXED_NS,
    Costs,
    rate_ns,
)
from injectors.sim.job import ONE, Framework
from injectors.sim.machine import MACHINES

H100, A100 = MACHINES["h100"], MACHINES["a100"]


def test_a_large_product_takes_its_flops_at_72_percent_of_the_peak() -> None:
    # 2 * 8192**3 = 1.0995e12 flops at 0.72 * 989e12 flops/s: 1.544 ms.
    cost = Costs(H100, Framework()).product(2 * 8192**3, 3 * 2 * 8192**2)
    assert cost.compute_ns == pytest.approx(1_544_000, rel=0.001)
    assert cost.total_ns == GEMM_FIXED_NS + cost.compute_ns


def test_a_thin_product_is_bound_by_memory() -> None:
    # One row times 8192 x 8192 bfloat16 weights: 134 MB at 0.85 * 3.35 TB/s take 47.1 us.
    cost = Costs(H100, Framework()).product(2 * 8192**2, 2 * 8192**2)
    assert cost.memory_ns == pytest.approx(47_140, rel=0.001)
    assert cost.total_ns == GEMM_FIXED_NS + cost.memory_ns


@pytest.mark.parametrize(
    ("precision", "slower", "element_bytes"),
    [("bf16", 1, 2), ("tf32", 2.002, 4), ("fp32", 14.76, 4)],
)
def test_precision_changes_the_peak_and_the_bytes(
    precision: str, slower: float, element_bytes: int
) -> None:
    bf16 = Costs(H100, Framework()).product(10**12, 0)
    costs = Costs(H100, Framework(precision=precision))  # type: ignore[arg-type]
    assert costs.product(10**12, 0).compute_ns == pytest.approx(slower * bf16.compute_ns, rel=0.001)
    assert costs.element_bytes == element_bytes


def test_a_family_alone_can_be_slower() -> None:
    slow = Costs(A100, Framework(efficiency_q16={"gemm": ONE // 2}))
    plain = Costs(A100, Framework())
    assert slow.product(10**12, 0).compute_ns == pytest.approx(
        2 * plain.product(10**12, 0).compute_ns, rel=1e-6
    )
    assert slow.product(10**12, 0, "attention") == plain.product(10**12, 0, "attention")
    assert slow.stream(10**9) == plain.stream(10**9)


def test_adding_runs_at_memory_speed_and_reductions_do_not() -> None:
    costs = Costs(A100, Framework())
    # 1 GB at 0.85 * 2.039 TB/s: 577 us.
    assert costs.stream(10**9, ADD_Q16).memory_ns == pytest.approx(577_000, rel=0.001)
    assert costs.stream(0, ADD_Q16).total_ns == STREAM_FIXED_NS
    assert costs.stream(0, REDUCTION_Q16).total_ns == REDUCTION_FIXED_NS


def test_pageable_copies_are_slower_than_pinned_ones() -> None:
    costs = Costs(H100, Framework())
    pinned, pageable = (costs.host_copy(52 * 10**6, pinned) for pinned in (True, False))
    assert pinned.memory_ns == 1_000_000
    assert pageable.memory_ns == pytest.approx(1_000_000 / 0.3, rel=0.001)


def test_cpus_have_neither_copies_nor_fixed_times() -> None:
    costs = Costs(MACHINES["cpu"], Framework())
    assert costs.host_copy(10**6).total_ns == 0
    assert costs.product(40 * 10**6, 0).total_ns == 1_000_000
    assert costs.stream(10**7).total_ns == 1_000_000


def test_a_rate_must_be_positive() -> None:
    with pytest.raises(ValueError, match="must be positive, got 0"):
        rate_ns(1, 0)

"""How much work ranks have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from injectors.sim.job import ONE, Checkpoint, Framework, Gpus, Host, Job, Routing
from injectors.sim.program import Ints, Program
from injectors.sim.work_rows import MICRO_SIGMA_Q16, REMOTE_COPY_Q16, WorkRows

MakeJob = Callable[..., Job]


@pytest.fixture
def rows(make_job: MakeJob) -> Callable[..., Ints]:
    """Return a function that gives (steps, ranks) of a row, over 400 steps."""

    def of(name: str, batches: int = 1, **fields: Any) -> Ints:
        program = Program(4, work_rows=["constant", name], batches=batches)
        found = WorkRows(make_job(**fields), program, np.full(4, ONE))
        return np.stack([found.of(step)[1] for step in range(400)])

    return of


def test_healthy_ranks_and_steps_differ_a_little(rows: Callable[..., Ints]) -> None:
    found = rows("tokens") / ONE
    assert found.mean() == pytest.approx(1, abs=0.004)
    assert found.std(axis=0) == pytest.approx([MICRO_SIGMA_Q16 / ONE] * 4, rel=0.15)
    assert 0 < found.mean(axis=0).std() < 0.01
    # A step of 16 micro-batches has the mean of them.
    assert rows("tokens", batches=16).std(axis=0) / ONE == pytest.approx([0.005] * 4, rel=0.15)


def test_lengths_spread_attention_around_its_mean(rows: Callable[..., Ints]) -> None:
    assert (rows("attention") == rows("tokens")).all()  # packed evenly
    found = rows("attention", framework=Framework(length_spread_q16=ONE // 4)) / ONE
    assert found.mean() == pytest.approx(1, abs=0.02)
    assert found.std() == pytest.approx(0.25, rel=0.05)
    assert (found.argmax(axis=1)[1:] != found.argmax(axis=1)[:-1]).mean() > 0.6
    assert rows("attention", framework=Framework(length_spread_q16=2 * ONE)).min() > 0


def test_experts_and_embedding_rows_have_their_share(rows: Callable[..., Ints]) -> None:
    routing = Routing(expert_share_q16={2: 2 * ONE}, row_share_q16={0: ONE // 2})
    experts, served = rows("experts", routing=routing), rows("rows", routing=routing)
    assert (experts.mean(axis=0) / ONE).round(1).tolist() == [1, 1, 2, 1]
    assert (served.mean(axis=0) / ONE).round(1).tolist() == [0.5, 1, 1, 1]
    assert (rows("experts")[:, [0, 1, 3]] == experts[:, [0, 1, 3]]).all()


def test_copies_feel_links_and_memory(rows: Callable[..., Ints]) -> None:
    host = Host(remote_memory=(1,), memory_traffic_q16={1: 2 * ONE})
    found = rows("pcie", host=host, gpus=Gpus(pcie_q16={0: ONE // 4}))
    assert found[0].tolist() == [4 * ONE, REMOTE_COPY_Q16, 2 * ONE, 2 * ONE]
    assert (found == found[0]).all()


def test_checkpoints_are_copied_in_steps_that_save(rows: Callable[..., Ints]) -> None:
    found = rows("checkpoint", checkpoint=Checkpoint(every=100))
    assert np.flatnonzero(found.any(axis=1)).tolist() == [99, 199, 299, 399]
    assert found[99].tolist() == [ONE] * 4


def test_rows_of_a_served_model_are_known_by_their_last_part(rows: Callable[..., Ints]) -> None:
    assert (rows("graph.gemm") == rows("tokens")).all()


def test_a_row_that_nobody_knows_is_refused(rows: Callable[..., Ints]) -> None:
    with pytest.raises(ValueError, match=r"work rows must be among .* got \['wishes'\]"):
        rows("wishes")

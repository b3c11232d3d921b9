"""A server as a whole: what it does in which order, and that nothing else decides it."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from injectors.sim.job import ONE
from injectors.sim.serving import seconds_per_token
from injectors.sim.serving.measure import step_ends
from injectors.sim.serving.replica import Replica, Step
from injectors.sim.serving.server import Server
from injectors.sim.serving.setup import server
from tests.injectors.sim.serving.jobs import serving_job


def _served(steps: int = 10, **settings: Any) -> tuple[Server, list[tuple[Replica, Step]]]:
    job = serving_job(layers=4, **settings)
    seen: list[tuple[Replica, Step]] = []
    serving = server(job, observe=lambda replica, step: seen.append((replica, step)))
    step_ends(serving, job, steps)
    return serving, seen


def test_both_backends_of_the_engine_serve_alike() -> None:
    pytest.importorskip("numba")
    job = serving_job(ranks=2, layers=2, steps=4, tokens_per_step=200)
    assert seconds_per_token(job, "numba") == seconds_per_token(job, "numpy")


def test_the_same_job_serves_alike_and_another_seed_does_not() -> None:
    one, same, other = (serving_job(layers=2, steps=4, seed=seed) for seed in (1, 1, 2))
    assert seconds_per_token(one) == seconds_per_token(same) != seconds_per_token(other)


def test_steps_of_an_engine_follow_each_other() -> None:
    _, seen = _served(ranks=2, engines=2)
    for number in (0, 1):
        own = [step for replica, step in seen if replica.name == f"engine{number}"]
        assert [step.number for step in own] == list(range(len(own)))
        assert all(after.begin_ns >= before.end_ns for before, after in pairwise(own))
        assert all(step.begin_ns + step.scheduler_ns < step.end_ns for step in own)


def test_every_token_is_counted_and_every_answer_is_as_long_as_asked() -> None:
    serving, seen = _served()
    assert sum(step.plan.answers + step.accepted for _, step in seen) == serving.tokens
    done = [request for request in serving.requests if request.finished_ns >= 0]
    assert done and all(request.generated == request.answer_tokens for request in done)


def test_no_more_requests_are_open_than_there_are_clients() -> None:
    _, seen = _served(max_concurrency=7, max_num_seqs=5)
    levels = [step.level for _, step in seen]
    assert max(level.running for level in levels) == 5
    assert max(level.running + level.waiting for level in levels) == 7
    assert all(0 < level.usage <= 1 for level in levels)


def test_seldom_requests_leave_the_engine_idle() -> None:
    _, seen = _served(steps=8, requests_per_s=0.5, max_concurrency=4, tokens_per_step=100)
    gaps = [after[1].begin_ns - before[1].end_ns for before, after in pairwise(seen)]
    assert max(gaps) > 100_000_000  # until the next request
    assert min(gaps) == 0


def test_a_sticky_router_keeps_tenants_together_unless_their_engine_is_overloaded() -> None:
    serving, _ = _served(
        ranks=4, engines=4, tenants=6, document_share=0.0, max_concurrency=96, generation_tokens=32
    )
    at_home = [
        r.engine == f"engine{r.tenant % 4}" for r in serving.requests if r.tenant is not None
    ]
    assert 0.7 < sum(at_home) / len(at_home) < 1


def test_two_pools_hand_answers_on_after_their_first_token() -> None:
    serving, seen = _served(ranks=2, engines=2, disaggregated=True)
    prefill = [step for replica, step in seen if replica.name == "prefill0"]
    decode = [step for replica, step in seen if replica.name == "decode1"]
    assert sum(step.plan.decode_tokens for step in prefill) == 0
    assert sum(step.plan.prefill_tokens for step in decode) == 0
    sent = serving.paths.done
    for transfer in sent:
        assert transfer.start_ns >= transfer.request.first_token_ns
        # 4 layers of keys and values of 8 heads of 128 elements of 2 bytes
        assert transfer.bytes == transfer.request.prompt_tokens * 4 * 2 * 8 * 128 * 2
    assert len(sent) > 10
    assert all(after.start_ns >= before.end_ns for before, after in pairwise(sent))
    pool = serving.replicas[0].scheduler.pool
    assert pool.in_use < pool.blocks // 4  # blocks come back when their content has left


def test_a_slow_path_delays_what_is_sent_over_it() -> None:
    ns_per_byte = []
    for share in (ONE, ONE // 10):
        job = serving_job(ranks=2, engines=2, disaggregated=True)
        job.network.link_q16 = {(0, 1): share}
        serving = server(job)
        step_ends(serving, job, 3)
        done = serving.paths.done
        ns_per_byte.append(sum(t.end_ns - t.start_ns for t in done) / sum(t.bytes for t in done))
    assert ns_per_byte[1] > 5 * ns_per_byte[0]


def test_drafts_are_right_as_often_as_they_should_be() -> None:
    _, seen = _served(draft_tokens=1, draft_acceptance=0.7, constrained_share=0.0)
    drafted = sum(step.plan.draft_tokens for _, step in seen)
    assert 0.67 < sum(step.accepted for _, step in seen) / drafted < 0.73


def test_other_batches_and_more_drafts_change_no_guess() -> None:
    runs = []
    for changes in ({"draft_tokens": 2}, {"draft_tokens": 5, "max_num_seqs": 3}):
        serving, _ = _served(steps=2, **changes)
        runs.append({request.number: request.runs for request in serving.requests})
    both = runs[0].keys() & runs[1].keys()
    assert len(both) > 40 and all(runs[0][number] == runs[1][number] for number in both)

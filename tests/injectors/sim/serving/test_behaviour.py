"""What is known of inference servers comes out of the simulated ones.

Sources stand in the taxonomy under the causes' names.
"""

from __future__ import annotations

import statistics
from typing import Any, NamedTuple

from injectors.sim.job import ONE, Job
from injectors.sim.serving.recording import run_server
from injectors.sim.serving.request import Request
from tests.injectors.sim.serving.jobs import serving_job, slowdown, turned

LONG_ANSWERS: dict[str, Any] = {
    "prompt_tokens": 128,
    "prefix_share": 0.5,
    "generation_tokens": 384,
    "document_share": 0.0,
}
LONG_PREFIXES: dict[str, Any] = {
    "prompt_tokens": 1024,
    "prefix_share": 0.85,
    "generation_tokens": 64,
    "tenants": 96,
    "document_share": 0.0,
}


class Latency(NamedTuple):
    """In ms: median time to the first token, and the 99th percentile of time for each further."""

    first: float
    each_p99: float


def _latency(job: Job) -> tuple[Latency, list[Request]]:
    found = run_server(job, ())
    done = [r for r in found.server.requests if r.first_token_ns >= 0 and r.finished_ns >= 0]
    first = statistics.median((r.first_token_ns - r.arrival_ns) / 1e6 for r in done)
    each = sorted((r.finished_ns - r.first_token_ns) / 1e6 / (r.answer_tokens - 1) for r in done)
    return Latency(first, each[len(each) * 99 // 100]), done


def test_few_blocks_evict_requests_and_cost_throughput() -> None:
    assert slowdown(turned(kv_blocks=400), seeds=2, **LONG_ANSWERS) > 1.4
    assert slowdown(turned(kv_blocks=1000), seeds=2, **LONG_ANSWERS) < 1.1


def test_eviction_lets_first_tokens_come_early_and_later_ones_late() -> None:
    """As in TensorRT-LLM issue 16827: the median first token is better, the tail far worse."""
    settings = {"steps": 40, "kv_blocks": 700, **LONG_ANSWERS}
    evicting, booking = serving_job(**settings), serving_job(**settings)
    booking.serving.reserve_answers = True
    (now, evicted), (then, kept) = _latency(evicting), _latency(booking)
    assert sum(request.preemptions for request in evicted) > len(evicted) / 2
    assert sum(request.preemptions for request in kept) == 0
    assert now.first < 0.7 * then.first
    assert now.each_p99 > 1.5 * then.each_p99


def test_booking_whole_answers_of_few_blocks_costs_throughput_without_eviction() -> None:
    assert slowdown(turned(kv_blocks=900, reserve_answers=True), seeds=2) > 1.4


def test_whole_prompts_hold_up_the_tokens_of_others() -> None:
    """Sarathi-Serve (OSDI 2024): generation stalls, which chunks take away."""
    longest = []
    for chunked in (True, False):
        job = serving_job(
            kv_blocks=6000, document_share=0.2, document_tokens=6000, max_num_batched_tokens=512
        )
        job.serving.unchunked_q16 = 0 if chunked else ONE
        steps = run_server(job, ()).steps[0]
        longest.append(max(step.end_ns - step.begin_ns for step in steps))
        alone = sum(not step.plan.decode_tokens for step in steps)
        assert alone == 0 if chunked else alone > 3
    assert longest[1] > 3 * longest[0]


def test_drafts_gain_for_one_request_and_gain_less_in_a_batch() -> None:
    """vLLM issues 24322 and 4266."""
    drafts = turned(draft_tokens=4, acceptance_q16=ONE * 8 // 10)
    one = slowdown(drafts, seeds=2, max_concurrency=1, tokens_per_step=60)
    many = slowdown(drafts, seeds=2)
    assert one < 0.5 < many < 0.9 and many > 1.2 * one


def test_drafts_that_are_mostly_wrong_cost_more_the_more_they_are() -> None:
    """vLLM issue 21278."""
    few, many = (slowdown(turned(draft_tokens=k, acceptance_q16=ONE // 5), seeds=2) for k in (3, 8))
    assert 1 < few < many and many > 1.2


def test_scattered_tenants_find_less_and_compute_more() -> None:
    tokens, hits = [], []
    for share in (0, ONE):
        job = serving_job(ranks=4, engines=4, machine="a100", max_concurrency=96, **LONG_PREFIXES)
        job.serving.scattered_q16 = share
        plans = [step.plan for own in run_server(job, ()).steps for step in own]
        decoded = sum(plan.decode_tokens for plan in plans)
        tokens.append(sum(plan.prefill_tokens for plan in plans) / decoded)
        hits.append(sum(plan.hits for plan in plans) / sum(plan.queries for plan in plans))
    assert hits[1] < 0.7 * hits[0] and tokens[1] > 1.5 * tokens[0]


def test_without_memory_tokens_cost_more_the_longer_the_answer() -> None:
    job = serving_job(max_concurrency=1, document_share=0.0, tokens_per_step=100, steps=4)
    job.serving.uncached_q16 = ONE
    steps = run_server(job, ()).steps[0]
    of_one = [s for s in steps if s.plan.parts[0].request is steps[0].plan.parts[0].request]
    first, last = of_one[0], of_one[-1]
    grown = last.plan.prefill_tokens / first.plan.prefill_tokens
    took = [step.end_ns - step.begin_ns - step.scheduler_ns for step in (first, last)]
    assert grown > 1.05 and 1 < took[1] / took[0] < 1.3 * grown
    # A token costs as much as its whole prefix: far more than reading the weights once.
    assert took[0] > 1.5 * _plain_step_ns()


def _plain_step_ns() -> int:
    job = serving_job(max_concurrency=1, document_share=0.0, tokens_per_step=100, steps=2)
    steps = run_server(job, ()).steps[0]
    plain = [s for s in steps if not s.plan.prefill_tokens]
    return min(step.end_ns - step.begin_ns - step.scheduler_ns for step in plain)


def test_seats_for_few_cost_most_of_the_throughput() -> None:
    assert slowdown(turned(max_running=8), seeds=1) > 3


def test_grammars_without_an_index_leave_the_device_idle() -> None:
    job = serving_job(steps=10)
    shares = []
    for unindexed in (0, ONE):
        job.serving.unindexed_q16 = unindexed
        steps = run_server(job, ()).steps[0]
        host = sum(step.scheduler_ns for step in steps)
        shares.append(host / sum(step.end_ns - step.begin_ns for step in steps))
    assert shares[0] < 0.35 and shares[1] > 0.6
    assert slowdown(turned(unindexed_q16=ONE // 2), seeds=2) > 1.5


def test_host_work_for_each_request_grows_with_the_batch_and_not_with_the_model() -> None:
    more = turned(per_request_ns=115_000)
    small, large = (slowdown(more, seeds=1, layers=layers) for layers in (6, 48))
    assert small > large > 1.1
    assert slowdown(more, seeds=1, max_concurrency=4, tokens_per_step=60) < 1.15


def test_compiling_under_requests_stops_the_engine() -> None:
    def compile_now_and_then(job: Job) -> None:
        job.compiler.jit_every, job.compiler.jit_ns = 40, 250_000_000

    assert slowdown(compile_now_and_then, seeds=2) > 1.3
    job = serving_job(steps=20)
    compile_now_and_then(job)
    steps = run_server(job, ()).steps[0]
    assert 3 < sum(step.jit_ns > 0 for step in steps) < len(steps) / 20
    assert all(step.jit_ns == 0 or step.plan.started for step in steps)


def test_causes_of_hosts_and_devices_act_on_servers_too() -> None:
    def hogs(job: Job) -> None:
        job.host.hogs = {0: 500}

    def slow_cores(job: Job) -> None:
        job.host.frequency_q16 = {0: ONE // 2}

    def neighbours(job: Job) -> None:
        job.gpus.neighbours = {0: 2}

    def slow_kernels(job: Job) -> None:
        job.framework.efficiency_q16["gemm"] = ONE // 2

    def launches(job: Job) -> None:
        job.framework.graphs = False

    for cause in (hogs, slow_cores, neighbours, slow_kernels):
        assert slowdown(cause, seeds=1, ranks=2) > 1.05, cause
    # Launching every kernel hurts where kernels are short: a small model with few requests.
    small = {"hidden": 1024, "heads": 8, "intermediate": 2816}
    few = {"max_concurrency": 4, "tokens_per_step": 60}
    assert slowdown(launches, seeds=1, **small, **few) > 1.3
    assert slowdown(launches, seeds=1, **few) < 1.02

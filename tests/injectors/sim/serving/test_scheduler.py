"""What goes into an engine step, by hand."""

from __future__ import annotations

from injectors.sim.serving.blocks import BlockPool
from injectors.sim.serving.plan import Plan
from injectors.sim.serving.request import Request
from injectors.sim.serving.scheduler import Limits, Scheduler


def _request(number: int, prompt: int, answer: int = 8, **fields: object) -> Request:
    settings: dict[str, object] = {
        "prefix_tokens": 0,
        "tenant": None,
        "request_class": "chat",
        "sticky": True,
        "chunked": True,
        "cached": True,
        "gap_ns": 0,
        **fields,
    }
    request = Request(number, prompt, answer, **settings)  # type: ignore[arg-type]
    request.known = prompt
    return request


def _scheduler(blocks: int = 100, tokens: int = 64, **limits: object) -> Scheduler:
    settings: dict[str, object] = {"max_num_seqs": 8, "max_num_batched_tokens": tokens, **limits}
    return Scheduler(BlockPool(blocks, 0), Limits(**settings))  # type: ignore[arg-type]


def _do(scheduler: Scheduler, plan: Plan) -> None:
    """Take the tokens of a step, each request one if it is complete."""
    for request in plan.decoding:
        scheduler.computed(request, request.known)
        request.known += 1
    for part in plan.parts:
        scheduler.computed(part.request, part.request.computed + part.count)
        part.request.known += part.complete


def test_prompts_are_cut_to_what_decoding_leaves() -> None:
    scheduler = _scheduler(tokens=50)
    scheduler.waiting += [_request(0, 40), _request(1, 40)]
    first = scheduler.plan()
    assert (first.prefill_tokens, first.decode_tokens, first.answers) == (50, 0, 1)
    # 10 * 0 + 10 * 11 / 2 pairs of the second prompt's first ten tokens, and 40 * 41 / 2.
    assert first.attention_pairs == 55 + 820
    _do(scheduler, first)
    second = scheduler.plan()
    assert (second.prefill_tokens, second.decode_tokens, second.answers) == (30, 1, 2)
    assert second.context_tokens == 41
    assert second.attention_pairs == 30 * 10 + 30 * 31 // 2


def test_a_whole_prompt_stops_decoding() -> None:
    scheduler = _scheduler(tokens=50)
    scheduler.waiting.append(_request(0, 20))
    _do(scheduler, scheduler.plan())
    scheduler.waiting.append(_request(1, 300, chunked=False))
    plan = scheduler.plan()
    assert (plan.prefill_tokens, plan.decode_tokens) == (300, 0)
    _do(scheduler, plan)
    assert scheduler.plan().decode_tokens == 2


def test_the_last_one_admitted_gives_way_and_computes_all_again() -> None:
    scheduler = _scheduler(blocks=4, prefix_cache=False)
    first, second = _request(0, 32), _request(1, 31)
    scheduler.waiting += [first, second]
    _do(scheduler, scheduler.plan())
    assert scheduler.pool.in_use == 4
    plan = scheduler.plan()  # the first needs a fifth block
    assert plan.preemptions == 1 and plan.decoding == [first]
    assert scheduler.waiting[0] is second and second.preemptions == 1
    assert (second.computed, second.keys, second.known) == (0, [], 32)
    _do(scheduler, plan)
    assert not scheduler.plan().parts  # there is one block, and it needs two
    scheduler.finish(first)
    scheduler.release(first)
    again = scheduler.plan()
    # Of its 32 tokens 31 are computed again, the last one continues the answer.
    assert (again.prefill_tokens, again.decode_tokens, again.started) == (31, 1, 0)


def test_booking_whole_answers_evicts_nobody() -> None:
    scheduler = _scheduler(blocks=4, reserve=True)
    scheduler.waiting += [_request(0, 32, answer=16), _request(1, 31, answer=16)]
    for _ in range(16):
        plan = scheduler.plan()
        assert plan.preemptions == 0 and len(scheduler.running) == 1
        _do(scheduler, plan)


def test_a_known_prefix_is_not_computed_again() -> None:
    scheduler = _scheduler()
    shared = {"tenant": 3, "prefix_tokens": 40}
    scheduler.waiting.append(_request(0, 50, **shared))
    _do(scheduler, scheduler.plan())
    other = _request(1, 50, **shared)
    scheduler.waiting.append(other)
    plan = scheduler.plan()
    # Two of the prefix's blocks are full; the third holds the request's own tokens, too.
    assert (plan.queries, plan.hits, plan.prefill_tokens) == (50, 32, 18)
    assert other.cached_tokens == 32


def test_without_memory_every_token_is_computed_for_every_token() -> None:
    scheduler = _scheduler(tokens=50)
    scheduler.waiting.append(_request(0, 100, cached=False))
    _do(scheduler, scheduler.plan())
    for known in (101, 102):
        plan = scheduler.plan()
        assert (plan.prefill_tokens, plan.decode_tokens) == (known - 1, 1)
        _do(scheduler, plan)


def test_drafts_are_for_answers_without_a_grammar_and_end_with_them() -> None:
    scheduler = _scheduler(draft_tokens=4)
    scheduler.waiting += [_request(0, 20, answer=4), _request(1, 20, constrained=True)]
    _do(scheduler, scheduler.plan())
    plan = scheduler.plan()
    # The first has three tokens to go: one by itself and at most two drafts.
    assert (plan.draft_tokens, plan.draft_passes, plan.decode_tokens) == (2, 2, 4)
    assert (plan.answers, plan.constrained) == (2, 1)


def test_seats_are_limited() -> None:
    scheduler = _scheduler(max_num_seqs=1)
    scheduler.waiting += [_request(0, 20), _request(1, 20)]
    _do(scheduler, scheduler.plan())
    plan = scheduler.plan()
    assert len(plan.decoding) == 1 and not plan.parts and len(scheduler.waiting) == 1

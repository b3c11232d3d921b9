"""Requests follow from their number and the seed alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from injectors.sim.job import ONE, Serving
from injectors.sim.serving.clients import (
    DEALT,
    Clients,
    largest_request,
    prefix_tokens,
    stratified_q16,
)
from injectors.sim.serving.request import Request

SETTINGS = Serving(
    prompt_tokens=512,
    answer_tokens=100,
    prefix_share_q16=ONE // 2,
    long_prompt_q16=ONE // 20,
    long_prompt_tokens=4000,
    structured_q16=ONE // 5,
    tenants=8,
)


def _taken(serving: Serving, seed: int, count: int) -> list[Request]:
    clients = Clients(serving, seed)
    return [clients.take() for _ in range(count)]


def _asked(requests: list[Request]) -> list[tuple[object, ...]]:
    return [
        (r.prompt_tokens, r.answer_tokens, r.tenant, r.request_class, r.gap_ns) for r in requests
    ]


def test_settings_that_leave_requests_out_change_no_request() -> None:
    plain = _taken(SETTINGS, 3, 300)
    broken = replace(
        SETTINGS,
        scattered_q16=ONE // 2,
        unchunked_q16=ONE // 2,
        uncached_q16=ONE // 2,
        unindexed_q16=ONE // 2,
        max_running=1,
    )
    other = _taken(broken, 3, 300)
    assert _asked(plain) == _asked(other)
    for name in ("sticky", "chunked", "cached", "indexed"):
        assert all(getattr(request, name) for request in plain)
        assert 130 <= sum(getattr(request, name) for request in other) <= 170


def test_a_share_takes_the_requests_of_a_smaller_one_too() -> None:
    some, more = (
        {r.number for r in _taken(replace(SETTINGS, uncached_q16=share), 3, 200) if not r.cached}
        for share in (ONE // 10, ONE // 3)
    )
    assert some < more


def test_a_hundred_requests_are_mixed_as_asked() -> None:
    requests = _taken(SETTINGS, 1, 100)
    kinds = [request.request_class for request in requests]
    assert (kinds.count("document"), kinds.count("json")) == (5, 20)
    assert {request.tenant for request in requests[:8]} <= set(range(8))
    assert 99 <= np.mean([request.answer_tokens for request in requests]) <= 101
    chats = [request for request in requests if request.request_class != "document"]
    assert 480 <= np.mean([request.prompt_tokens for request in chats]) <= 545
    assert {request.prefix_tokens for request in chats} == {prefix_tokens(SETTINGS)} == {256}


def test_nobody_asks_for_more_than_the_largest_request() -> None:
    longest = max(request.longest for request in _taken(SETTINGS, 5, 3 * DEALT))
    assert longest <= largest_request(SETTINGS) < 1.3 * longest


def test_of_a_deck_there_is_one_in_each_part_of_the_range() -> None:
    drawn = stratified_q16(7, "name", 0, 60, 20).reshape(3, 20)
    assert (np.sort(drawn * 20 >> 16, axis=1) == np.arange(20)).all()
    assert (stratified_q16(7, "name", 30, 30, 20) == drawn.reshape(-1)[30:]).all()

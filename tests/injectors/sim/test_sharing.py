"""A link shared fairly: nothing is lost or made up, nobody gets more than it wants, all alike."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from injectors.sim.job import ONE, Flows
from injectors.sim.sharing import FairLink, Flow, fair_rates
from injectors.sim.spine import Spine

SECOND = 10**9
WANTED = st.dictionaries(st.text("abcdef", min_size=1, max_size=3), st.none() | st.integers(0, 500))


@st.composite
def flows(draw: st.DrawFn) -> list[Flow]:
    found = []
    for number in range(draw(st.integers(1, 6))):
        begin = draw(st.integers(0, SECOND))
        end = draw(st.none() | st.integers(begin + 1, 2 * SECOND))
        volume = draw(st.none() | st.integers(0, 2_000))
        most = draw(st.none() | st.integers(0, 1_500))
        found.append(Flow(f"flow{number}", begin, end, volume, most))
    return found


@given(st.integers(1, 1_000), WANTED)
def test_rates_are_max_min_fair(capacity: int, wanted: dict[str, int | None]) -> None:
    rates = fair_rates(capacity, wanted)
    limits = {name: capacity if want is None else want for name, want in wanted.items()}
    assert all(0 <= rates[name] <= limits[name] for name in wanted)
    assert sum(rates.values()) == min(capacity, sum(limits.values()))
    # Whoever wants more than it has, has as much as anybody, but for what can't be split.
    most = max(rates.values(), default=0)
    assert all(rates[n] >= most - 1 for n in wanted if rates[n] < limits[n])


def test_a_lone_flow_gets_everything() -> None:
    link = FairLink(1_000)
    link.add(Flow("job", 0))
    link.run(5 * SECOND)
    assert link.moved_bytes("job") == 5_000
    assert link.share_q16("job", SECOND, 3 * SECOND) == ONE


def test_flows_come_and_go() -> None:
    """1000 bytes/s. Alone for 1 s, by two until the other's 1000 bytes are over, alone again."""
    link = FairLink(1_000)
    link.add(Flow("job", 0))
    link.add(Flow("other", SECOND, bytes=1_000))
    link.run(5 * SECOND)
    assert link.finished_ns("other") == 3 * SECOND
    assert link.moved_bytes("job") == 1_000 + 1_000 + 2_000
    assert link.share_q16("job", SECOND, 3 * SECOND) == ONE // 2
    assert link.share_q16("job", 2 * SECOND, 4 * SECOND) == ONE * 3 // 4


def test_a_modest_flow_leaves_the_rest() -> None:
    link = FairLink(1_000)
    for name, most in (("job", None), ("modest", 100), ("greedy", None)):
        link.add(Flow(name, 0, most_bytes_per_s=most))
    link.run(0)
    assert [link.rate(name) for name in ("job", "modest", "greedy")] == [450, 100, 450]


@given(flows(), st.lists(st.integers(0, 3 * SECOND), min_size=1, max_size=5))
def test_nothing_is_lost_or_made_up(flows: list[Flow], stops: list[int]) -> None:
    link = FairLink(1_000)
    for flow in flows:
        link.add(flow)
    for stop in sorted(stops):
        link.run(stop)
        moved = {flow.name: link.moved_bytes(flow.name) for flow in flows}
        assert sum(moved.values()) <= 1_000 * stop // SECOND
        for flow in flows:
            assert flow.bytes is None or moved[flow.name] <= flow.bytes
            last = min(stop, stop if flow.end_ns is None else flow.end_ns)
            most = 1_000 if flow.most_bytes_per_s is None else flow.most_bytes_per_s
            assert moved[flow.name] <= most * max(last - flow.begin_ns, 0) // SECOND
            done = link.finished_ns(flow.name)
            if done is not None and done != flow.end_ns:
                assert moved[flow.name] == flow.bytes


@given(flows(), st.lists(st.integers(1, 3 * SECOND), max_size=5))
def test_stops_on_the_way_change_nothing(flows: list[Flow], stops: list[int]) -> None:
    once, often = FairLink(1_000), FairLink(1_000)
    for link in (once, often):
        for flow in flows:
            link.add(flow)
    for stop in sorted(stops):
        often.run(stop)
    once.run(4 * SECOND)
    often.run(4 * SECOND)
    for flow in flows:
        assert once.moved_bytes(flow.name) == often.moved_bytes(flow.name)
        assert once.finished_ns(flow.name) == often.finished_ns(flow.name)


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1 byte/s, got 0"):
        FairLink(0)
    link = FairLink(10)
    link.add(Flow("a", 0))
    with pytest.raises(ValueError, match="must be unique, got 'a'"):
        link.add(Flow("a", 0))
    link.run(5)
    with pytest.raises(ValueError, match="must begin from 5 on, got 4"):
        link.add(Flow("b", 4))
    with pytest.raises(ValueError, match="must end after 6, got 6"):
        link.add(Flow("b", 6, 6))
    with pytest.raises(ValueError, match="must be times up to 5, got 2 to 6"):
        link.share_q16("a", 2, 6)


def test_background_takes_its_part_of_each_period() -> None:
    spine = Spine(Flows(1, 250_000_000, 1_000_000_000), 10**9, seed=3)
    # For a quarter of the time half of the link: 7/8.
    assert spine.share_q16(0, 20 * SECOND) == ONE * 7 // 8
    short = [spine.share_q16(i * SECOND // 10, (i + 1) * SECOND // 10) for i in range(200, 300)]
    assert min(short) == ONE // 2 and max(short) == ONE
    assert abs(sum(short) / 100 - ONE * 7 / 8) < ONE // 50


def test_more_flows_leave_less_and_none_leave_all() -> None:
    shares = [
        Spine(Flows(count, 500_000_000), 10**9, seed=3).share_q16(0, 10 * SECOND)
        for count in range(4)
    ]
    assert shares[0] == ONE and shares == sorted(shares, reverse=True)


def test_windows_may_overlap_but_time_goes_on() -> None:
    first, second = (Spine(Flows(2, 300_000_000), 10**9, seed=5) for _ in range(2))
    first.share_q16(0, 2 * SECOND)
    assert first.share_q16(SECOND, 3 * SECOND) == second.share_q16(SECOND, 3 * SECOND)

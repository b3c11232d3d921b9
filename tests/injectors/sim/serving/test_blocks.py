"""The pool of blocks, by hand and by what always holds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from injectors.sim.serving.blocks import BlockPool


def test_blocks_that_nobody_uses_are_found_until_they_are_needed() -> None:
    pool = BlockPool(blocks=4, watermark=0)
    mine = pool.take(3)
    assert mine == [0, 0, 0]
    pool.keep(mine, 0, key=7)
    pool.keep(mine, 1, key=8)
    pool.release(mine)
    assert pool.in_use == 0 and pool.find([7, 8, 9]) == 2
    assert pool.take(3) == [0, 0, 0]  # one idle block has to go: the last of the request's first
    assert pool.find([7]) == 1 and pool.find([8]) == 0


def test_a_shared_block_counts_once() -> None:
    pool = BlockPool(blocks=4, watermark=0)
    first = pool.take(2)
    assert first is not None
    pool.keep(first, 0, key=7)
    second = pool.take(1, shared=[7])
    assert second == [7, 0] and pool.in_use == 3
    pool.release(first)
    assert pool.in_use == 2 and pool.find([7]) == 1


def test_the_first_with_a_key_stays_and_the_other_is_its_own() -> None:
    pool = BlockPool(blocks=4, watermark=0)
    first, second = pool.take(1), pool.take(1)
    assert first is not None and second is not None
    pool.keep(first, 0, key=7)
    pool.keep(second, 0, key=7)
    assert (first, second, pool.in_use) == ([7], [0], 2)


def test_nothing_is_lent_that_is_not_there_or_must_stay_free() -> None:
    pool = BlockPool(blocks=4, watermark=1)
    assert pool.take(5) is None and pool.take(4, leave=1) is None
    assert pool.in_use == 0 and pool.take(4) is not None


def test_the_block_idle_for_longest_goes_first() -> None:
    pool = BlockPool(blocks=3, watermark=0)
    pool.warm([1, 2, 3])
    again = pool.take(0, shared=[1])
    assert again is not None
    pool.release(again)  # 1 was used last
    pool.take(1)
    assert [pool.find([key]) for key in (1, 2, 3)] == [1, 0, 1]


@given(st.lists(st.tuples(st.integers(1, 6), st.integers(0, 3), st.booleans()), max_size=60))
def test_lent_blocks_never_exceed_the_pool(events: list[tuple[int, int, bool]]) -> None:
    pool, held = BlockPool(blocks=12, watermark=0), []
    for count, tenant, keep in events:
        keys = [100 * tenant + block + 1 for block in range(count)]
        shared = keys[: pool.find(keys)]
        blocks = pool.take(count - len(shared), shared)
        if blocks is None:
            pool.release(held.pop(0)) if held else None
            continue
        for place, key in enumerate(keys):
            if keep and not blocks[place]:
                pool.keep(blocks, place, key)
        held.append(blocks)
        own = [key for blocks in held for key in blocks]
        assert pool.in_use == own.count(0) + len({key for key in own if key}) <= 12
    for blocks in held:
        pool.release(blocks)
    assert pool.in_use == 0

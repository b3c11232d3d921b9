"""The pool of blocks: what is lent, found again and evicted."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from injectors.workloads.serving.blocks import BlockPool, block_keys


def test_key_depends_on_everything_before_it():
    one, other = block_keys([1, 2, 3, 4], 2), block_keys([9, 2, 3, 4], 2)
    assert one[1] != other[1]
    assert block_keys([1, 2, 3, 4, 5, 6], 2, one) == block_keys([1, 2, 3, 4, 5, 6], 2)


def test_released_block_is_found_by_its_key_until_it_is_needed():
    pool = BlockPool(2)
    keys = block_keys([1, 2, 3, 4], 2)
    blocks = pool.take(2)
    for block, key in zip(blocks, keys, strict=True):
        pool.keep(block, key)
    pool.release(blocks)
    assert pool.in_use == 0
    assert pool.find(keys) == blocks
    (taken,) = pool.take(1)
    assert taken == blocks[1], "of one request's blocks the last goes first"
    assert pool.find(keys) == blocks[:1]


def test_shared_block_is_free_only_when_its_last_user_lets_go():
    pool = BlockPool(3)
    (block,) = pool.take(1)
    pool.keep(block, b"prefix")
    assert pool.take(1, [block])[0] == block
    pool.release([block])
    assert pool.in_use == 2
    assert pool.take(2) is None
    pool.release([block])
    assert pool.in_use == 1


def test_found_blocks_that_wake_up_count_against_the_limit():
    pool = BlockPool(2)
    (block,) = pool.take(1)
    pool.keep(block, b"prefix")
    pool.release([block])
    assert pool.take(2, [block]) is None
    assert pool.take(1, [block]) == [block, 1 - block]


def test_lower_limit_forgets_what_is_idle():
    pool = BlockPool(4)
    blocks = pool.take(4)
    for number, block in enumerate(blocks):
        pool.keep(block, bytes([number]))
    pool.release(blocks)
    pool.restrict(1)
    assert pool.find([b"\0"]) == blocks[:1]
    assert pool.take(2) is None
    assert len(pool.take(1)) == 1
    assert pool.usage == pytest.approx(1.0)


@given(
    st.integers(1, 8),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4), st.integers(1, 8)), max_size=60),
)
def test_no_block_is_lent_twice_and_none_is_lost(blocks, moves):
    pool = BlockPool(blocks)
    held: list[list[int]] = []
    for kind, count, limit in moves:
        if kind == 0 and (lent := pool.take(count)) is not None:
            held.append(lent)
        elif kind == 1 and held:
            pool.release(held.pop(count % len(held)))
        elif kind == 2:
            for number, lent in enumerate(held):
                for place, block in enumerate(lent):
                    pool.keep(block, bytes([number, place]))
        elif kind == 3:
            pool.restrict(limit)
        in_use = [block for lent in held for block in lent]
        assert len(set(in_use)) == len(in_use) == pool.in_use
    for lent in held:
        pool.release(lent)
    pool.restrict(blocks)
    assert sorted(pool.take(blocks)) == list(range(blocks))

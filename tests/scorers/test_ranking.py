from itertools import pairwise, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scorers.ranking import accuracy_at, first_rank, reciprocal_rank


def first_rank_slowly(confidences, right):
    """Average over every order that the confidences allow."""
    count = len(confidences)
    orders = [
        order
        for order in permutations(range(count))
        if all(confidences[a] >= confidences[b] for a, b in pairwise(order))
    ]
    chances = [0.0] * count
    for order in orders:
        hits = [place for place, i in enumerate(order) if i in right]
        if hits:
            chances[hits[0]] += 1 / len(orders)
    return chances


@given(
    st.lists(st.sampled_from([0.1, 0.5, 0.9]), max_size=5).flatmap(
        lambda c: st.tuples(
            st.just(c), st.sets(st.integers(0, len(c) - 1)) if c else st.just(set())
        )
    )
)
def test_first_rank_is_the_mean_over_all_orders(drawn):
    confidences, right = drawn
    assert first_rank(confidences, right) == pytest.approx(first_rank_slowly(confidences, right))


def test_ranks_by_hand():
    assert first_rank([0.2, 0.9, 0.4], {0}) == [0, 0, 1]
    assert first_rank([0.5] * 4, {1}) == [0.25] * 4
    assert first_rank([0.5] * 3, {0, 1}) == pytest.approx([2 / 3, 1 / 3, 0])
    assert first_rank([], set()) == []
    assert reciprocal_rank([0, 0, 1]) == pytest.approx(1 / 3)
    assert reciprocal_rank([]) == 0


def test_accuracy_at_k_by_hand():
    # Two faults at ranks 1 and 4: one of two within the first three.
    assert accuracy_at(3, [[1, 0, 0, 0], [0, 0, 0, 1]]) == 0.5
    # Five tied answers, one right: 3/5 that it is among the first three.
    assert accuracy_at(3, [[0.2] * 5]) == pytest.approx(0.6)
    # Four faults, but three places: three found there are all there can be.
    assert accuracy_at(3, [[1], [1], [1], [0]]) == 1
    assert accuracy_at(3, [[1], [1], [1], [1]]) == 1

"""Which cases go when nothing tells them from their rivals."""

from __future__ import annotations

from injectors.finish import least_to_refuse


def test_nobody_goes_without_a_conflict() -> None:
    assert least_to_refuse({}) == {}


def test_of_two_in_conflict_the_owner_of_the_witness_goes() -> None:
    assert least_to_refuse({"b": ["a"]}) == {"b": "its witness is true on its rival a as well"}


def test_a_case_with_the_signs_of_many_causes_goes_instead_of_all_of_them() -> None:
    refused = least_to_refuse({"a": ["x"], "b": ["x"], "c": ["x", "y"]})
    assert refused == {
        "x": "the witnesses of 3 other cases are true on it as well",
        "c": "its witness is true on its rival y as well",
    }


def test_an_owner_in_many_conflicts_goes_before_its_rivals() -> None:
    assert [*least_to_refuse({"a": ["x", "y"], "y": ["a"]})] == ["a"]


def test_the_choice_does_not_depend_on_the_order() -> None:
    true_on = {"a": ["b"], "b": ["c"], "c": ["d"], "d": ["a"]}
    turned = {owner: true_on[owner] for owner in reversed(true_on)}
    assert least_to_refuse(true_on) == least_to_refuse(turned)

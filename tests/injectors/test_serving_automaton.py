"""Automata against the standard library's regular expressions."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases.errors import ScenarioError
from injectors.workloads.serving.automaton import Automaton

PATTERNS = ("(ab|[0-9])+c", "a*b?c", r"\{(x|y+)\}", "[a-c.]+|d", "((a|b)c)*")


def begins_a_match(pattern: str, text: str) -> bool:
    """Whether some text of up to four further letters completes a match."""
    ends = [""]
    for _ in range(4):
        ends += [end + letter for end in ends for letter in "abc0{}xy.d" if len(end) < 3]
        if any(re.fullmatch(pattern, text + end) for end in ends):
            return True
    return False


@pytest.mark.parametrize("pattern", PATTERNS)
@given(text=st.text("abc0{}xy.d", max_size=4))
def test_survives_exactly_the_beginnings_of_matches(pattern, text):
    automaton = Automaton(pattern)
    assert bool(automaton.read(automaton.start, text.encode())) == begins_a_match(pattern, text)


def test_reading_in_pieces_is_reading_at_once():
    automaton = Automaton("(ab|[0-9])+c")
    pieces = automaton.read(automaton.read(automaton.start, b"a"), b"b7")
    assert pieces == automaton.read(automaton.start, b"ab7")


def test_allowed_tells_of_each_token():
    automaton = Automaton("ab+")
    assert automaton.allowed(automaton.start, [b"a", b"b", b"abb", b"aba"]) == [
        True,
        False,
        True,
        False,
    ]


@pytest.mark.parametrize("pattern", ["(ab", "[ab", "ab)"])
def test_what_is_no_pattern_is_refused(pattern):
    with pytest.raises(ScenarioError, match="pattern"):
        Automaton(pattern)

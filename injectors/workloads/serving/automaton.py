"""Regular expressions over bytes as automata, and the masks of tokens that they allow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cases.errors import ScenarioError

State = frozenset[int]
DEAD: State = frozenset()


@dataclass(frozen=True)
class Fragment:
    """A part of an automaton under construction, by the numbers of its first and last node."""

    first: int
    last: int


class Automaton:
    """A non-deterministic automaton of a pattern: literals, [classes], groups, | * + ?.

    A state is the set of nodes that may be reached; the empty set means that what was read
    can't begin a match. Construction after K. Thompson, Regular expression search algorithm
    (CACM 1968).

    >>> automaton = Automaton("(ab|[0-9])+")
    >>> bool(automaton.read(automaton.start, b"7a")), bool(automaton.read(automaton.start, b"7b"))
    (True, False)
    """

    def __init__(self, pattern: str) -> None:
        self._pattern, self._at = pattern, 0
        self._edges: list[dict[int, set[int]]] = []
        self._free: list[set[int]] = []
        whole = self._alternatives()
        if self._at < len(pattern):
            raise ScenarioError("must be a regular expression", where="pattern", found=pattern)
        self._closures = [self._closure(node) for node in range(len(self._edges))]
        self.start: State = self._closures[whole.first]

    def read(self, state: State, text: bytes) -> State:
        """Return the state after some bytes."""
        for byte in text:
            reached: set[int] = set()
            for node in state:
                for target in self._edges[node].get(byte, ()):
                    reached |= self._closures[target]
            state = frozenset(reached)
            if not state:
                break
        return state

    def allowed(self, state: State, vocabulary: Sequence[bytes]) -> list[bool]:
        """Tell of every token whether it may follow, by reading each of them."""
        return [bool(self.read(state, text)) for text in vocabulary]

    def _node(self) -> int:
        self._edges.append({})
        self._free.append(set())
        return len(self._edges) - 1

    def _closure(self, node: int) -> State:
        seen, todo = {node}, [node]
        while todo:
            new = self._free[todo.pop()] - seen
            seen |= new
            todo += new
        return frozenset(seen)

    def _peek(self) -> str:
        return self._pattern[self._at : self._at + 1]

    def _next(self) -> str:
        self._at += 1
        return self._pattern[self._at - 1 : self._at]

    def _alternatives(self) -> Fragment:
        parts = [self._sequence()]
        while self._peek() == "|":
            self._next()
            parts.append(self._sequence())
        whole = Fragment(self._node(), self._node())
        for part in parts:
            self._free[whole.first].add(part.first)
            self._free[part.last].add(whole.last)
        return whole

    def _sequence(self) -> Fragment:
        first = last = self._node()
        while self._peek() and self._peek() not in "|)":
            part = self._repeated()
            self._free[last].add(part.first)
            last = part.last
        return Fragment(first, last)

    def _repeated(self) -> Fragment:
        part = self._single()
        if not self._peek() or self._peek() not in "*+?":
            return part
        sign = self._next()
        whole = Fragment(self._node(), self._node())
        self._free[whole.first].add(part.first)
        self._free[part.last].add(whole.last)
        if sign in "*?":
            self._free[whole.first].add(whole.last)
        if sign in "*+":
            self._free[part.last].add(part.first)
        return whole

    def _single(self) -> Fragment:
        sign = self._next()
        if sign == "(":
            part = self._alternatives()
            if self._next() != ")":
                raise ScenarioError("must close groups", where="pattern", found=self._pattern)
            return part
        members = self._members() if sign == "[" else (self._next() if sign == "\\" else sign)
        part = Fragment(self._node(), self._node())
        for byte in members.encode():
            self._edges[part.first].setdefault(byte, set()).add(part.last)
        return part

    def _members(self) -> str:
        members = ""
        while (sign := self._next()) != "]":
            if not sign:
                raise ScenarioError("must close classes", where="pattern", found=self._pattern)
            if sign == "-" and members and self._peek() != "]":
                last = self._next()
                members += "".join(map(chr, range(ord(members[-1]) + 1, ord(last) + 1)))
            else:
                members += self._next() if sign == "\\" else sign
        return members

"""Masks of the tokens that a constrained answer may continue with."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from injectors.workloads.serving.automaton import Automaton, State

# JSON lines without end, so that the length of an answer is up to the client.
RECORDS = r'(\{"[a-z]+": ("[a-z0-9 .,]*"|-?[0-9]+(.[0-9]+)?|true|false|null)\} )*'


class Grammar:
    """Masks by state of an automaton.

    The index keeps every mask once it is known; without it, all tokens are read anew each time.
    """

    def __init__(self, pattern: str, texts: Sequence[bytes]) -> None:
        self._automaton, self._texts = Automaton(pattern), texts
        self._index: dict[State, torch.Tensor] = {}
        self.start = self._automaton.start

    def read(self, state: State, token: int) -> State:
        """Return the state after a token."""
        return self._automaton.read(state, self._texts[token])

    def mask(self, state: State, indexed: bool) -> torch.Tensor:
        """Return whether each token may follow, shape (vocabulary,)."""
        if not indexed:
            return torch.tensor(self._automaton.allowed(state, self._texts))
        if state not in self._index:
            self._index[state] = torch.tensor(self._automaton.allowed(state, self._texts))
        return self._index[state]

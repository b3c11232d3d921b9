"""Which drafted tokens are right: a draw for each token of each answer."""

from __future__ import annotations

import numpy as np

from injectors.sim import noise
from injectors.sim.serving.request import Request


def right_runs(seed: int, request: Request, acceptance_q16: int) -> list[int]:
    """Return, for each token of the answer, how many drafts from it on are right.

    Whether a token is guessed depends on the request and the token alone, so that more drafts,
    or other neighbours in the batch, change no guess.
    """
    tokens = np.arange(request.answer_tokens + 1)
    keys = noise.keys(seed, "accept", request.number, tokens)
    right = (noise.uniform_q16(keys) < acceptance_q16).tolist()
    runs = [0] * (len(right) + 1)
    for token in range(len(right) - 1, -1, -1):
        runs[token] = runs[token + 1] + 1 if right[token] else 0
    return runs

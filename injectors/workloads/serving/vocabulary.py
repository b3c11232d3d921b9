"""Tokens as byte strings, and the answers that clients are sent."""

from __future__ import annotations

import codecs
import json
import random
from collections.abc import Sequence

BYTES = 256
CONTEXT_TOKENS = 6  # a candidate's text may depend on this many tokens before it


def byte_tokens(size: int, seed: int) -> list[bytes]:
    """Return the texts of a byte-level vocabulary: all bytes, then `size` - 256 merges.

    >>> texts = byte_tokens(300, seed=0)
    >>> texts[65], len(texts), len(set(texts))
    (b'A', 300, 300)
    """
    draw = random.Random(seed)
    texts = [bytes([value]) for value in range(BYTES)]
    known = set(texts)
    letters = [bytes([value]) for value in b'abcdefghijklmnopqrstuvwxyz0123456789 .,:"{}']
    while len(texts) < size:
        merge = draw.choice(letters) + draw.choice(letters + texts[BYTES:])
        if len(merge) <= 4 and merge not in known:
            known.add(merge)
            texts.append(merge)
    return texts


class Detokeniser:
    """Turns one request's tokens into the pieces of text that are streamed to its client."""

    def __init__(self, texts: Sequence[bytes]) -> None:
        self._texts = texts
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._recent: list[int] = []

    def answer(self, token: int, candidates: Sequence[tuple[int, float]]) -> str:
        """Return one message of the stream: the new piece, and candidates with log probability.

        Each candidate is decoded in its context, as its text may be part of a character.
        """
        context = b"".join(self._texts[recent] for recent in self._recent)
        told = [
            {"text": self._piece(context, self._texts[number]), "logprob": value}
            for number, value in candidates
        ]
        self._recent = [*self._recent, token][-CONTEXT_TOKENS:]
        piece = self._decoder.decode(self._texts[token])
        return json.dumps({"choices": [{"text": piece, "top_logprobs": told}]})

    @staticmethod
    def _piece(context: bytes, text: bytes) -> str:
        before = context.decode("utf-8", "replace")
        return (context + text).decode("utf-8", "replace")[len(before) :]

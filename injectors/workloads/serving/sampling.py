"""The step from logits to tokens, compiled once, or once more for every new number."""

from __future__ import annotations

from collections.abc import Callable

import torch

from injectors.kernels.inductor import NO_LIMIT, limit_graphs

Sharpen = Callable[[torch.Tensor, float, bool], torch.Tensor]


def divided(logits: torch.Tensor, temperature: torch.Tensor | float) -> torch.Tensor:
    """Divide logits, shape (rows, vocabulary), by a temperature above 0."""
    return logits / temperature


def compiled_sharpen(backend: str) -> Sharpen:
    """Return a function that divides logits by a temperature, compiled for exact shapes.

    A temperature in a tensor is data to the compiled code; a Python number is a part of it, so
    that each new one is compiled for.

    Args:
        backend: A backend of torch.compile.
    """
    limit_graphs(NO_LIMIT)
    compiled = torch.compile(divided, backend=backend, dynamic=False)

    def sharpen(logits: torch.Tensor, temperature: float, plain_number: bool) -> torch.Tensor:
        given = temperature if plain_number else torch.tensor(temperature, device=logits.device)
        result: torch.Tensor = compiled(logits, given)
        return result

    return sharpen

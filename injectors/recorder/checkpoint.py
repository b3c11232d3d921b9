"""Checkpoints that rank 0 writes, as far as knobs ask for them."""

from __future__ import annotations

import os
import pickle
import threading
from itertools import chain
from typing import Any

import torch

from injectors.workloads.base import Context, Program

ROW_NUMBERS = 1024  # elements of the further state that are pickled at a time
ROWS_PER_MEGABYTE = 1_000_000 // (4 * ROW_NUMBERS)


class Checkpoints:
    """Writes the program's state, and more of the size that a knob asks for.

    With a knob a thread of the same process writes it: such a save is begun by the first step
    of a period, so that whole periods hold all that it costs, and left out while the one before
    it is being written. Other saves end a period.
    """

    def __init__(self, context: Context, program: Program) -> None:
        self._context, self._program, self._knobs = context, program, context.knobs
        self._path = context.folder / "checkpoint.pt"
        self._more = torch.empty(0, ROW_NUMBERS)
        self._writer: threading.Thread | None = None

    def save_if_due(self, number: int) -> bool:
        """Save after step `number` if it is one to save at; returns whether it was."""
        every = int(self._knobs["checkpoint_every"])
        threaded = bool(self._knobs["checkpoint_thread"])
        if not every or self._context.rank or number % every != (0 if threaded else every - 1):
            return False
        return self._save_aside() if threaded else self._save()

    def _save(self) -> bool:
        state: Any = self._program.state()
        if self._knobs["checkpoint_megabytes"]:
            state = {"model": state, "more": self._further_state()}
        torch.save(state, self._path)
        if self._knobs["checkpoint_durable"]:
            with self._path.open("rb") as file:
                os.fsync(file.fileno())
        return True

    def _save_aside(self) -> bool:
        if self._writer is not None and self._writer.is_alive():
            return False
        state = [value.detach().clone() for value in self._program.state().values()]
        arguments = (state, self._further_state())
        self._writer = threading.Thread(target=self._write, args=arguments, daemon=True)
        self._writer.start()
        return True

    def _write(self, state: list[torch.Tensor], more: torch.Tensor) -> None:
        """Pickle tensors row by row as plain lists, which any reader can load."""
        rows = (more[number] for number in range(len(more)))
        with self._path.open("wb") as file:
            for tensor in chain(state, rows):
                if not self._knobs["checkpoint_thread"]:
                    return
                pickle.dump(tensor.tolist(), file)

    def _further_state(self) -> torch.Tensor:
        """Return rows of the size that the knob asks for; they are made once."""
        rows = round(self._knobs["checkpoint_megabytes"] * ROWS_PER_MEGABYTE)
        if len(self._more) != rows:
            self._more = torch.rand(rows, ROW_NUMBERS)
        return self._more

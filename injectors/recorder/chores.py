"""What a training loop does between steps, as far as knobs ask for it.

Healthy and faulty jobs run the same code; a chore that a knob turns off costs one look at it.
"""

from __future__ import annotations

import json
import time
from http.client import HTTPConnection

from injectors.recorder.checkpoint import Checkpoints
from injectors.recorder.cuda_allocator import MemoryLimit
from injectors.workloads.base import Context, Program, Step

METRICS_LIMIT_S = 60.0


class Chores:
    """The chores of one rank."""

    def __init__(self, context: Context, program: Program) -> None:
        self._context = context
        self._checkpoints = Checkpoints(context, program)
        self._memory = MemoryLimit(context.knobs, context.device)

    def before(self, number: int) -> None:
        """Do what comes before a step; it is in the trial but not in the step's row."""
        self._memory.obey()

    def after(self, number: int, step: Step) -> dict[str, int]:
        """Do what follows a step within its wall time; returns columns of `steps`."""
        begin = time.monotonic_ns()
        saved = self._checkpoints.save_if_due(number)
        done = {"checkpoint_ns": time.monotonic_ns() - begin if saved else 0}
        self._report(number, step)
        return done

    def _report(self, number: int, step: Step) -> None:
        """Let rank 0 post a step's metrics and wait for the answer."""
        every = int(self._context.knobs["metrics_every"])
        if not every or number % every != every - 1 or self._context.rank:
            return
        port = int(self._context.knobs["metrics_port"])
        connection = HTTPConnection("127.0.0.1", port, timeout=METRICS_LIMIT_S)
        try:
            body = json.dumps({"step": number, "tokens": step.tokens})
            connection.request("POST", "/metrics", body, {"Content-Type": "application/json"})
            connection.getresponse().read()
        finally:
            connection.close()

"""A running job: forked ranks, and orders to them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from cases.errors import HarnessError
from injectors.recorder.knobs import Knobs
from injectors.recorder.network import Network, enter_namespace_of, enter_own_namespace
from injectors.recorder.rank import RankPlan, run_forked
from injectors.workloads.base import Context

PATIENCE_S = 120.0
STOP_PATIENCE_S = 5.0


@dataclass
class Job:
    """The ranks of one job; a context manager that always ends them."""

    plan: RankPlan
    ranks: int
    seed: int
    knobs: Knobs
    folder: Path
    cores: list[int]
    pinned: bool
    network: Network | None
    settings: Mapping[str, Any]
    pids: dict[int, int] = field(default_factory=dict)
    _orders: dict[int, Connection] = field(default_factory=dict)

    def __enter__(self) -> Job:
        try:
            for rank in range(self.ranks):
                self._fork(rank)
            if self.network is not None:
                self.answers()  # every rank is in its own namespace
                self.network.join(self.pids)
                self.tell_all("go")
            self.answers()  # every rank has built its program
        except BaseException:
            self.__exit__()
            raise
        return self

    def _fork(self, rank: int) -> None:
        here, there = Pipe()
        pid = os.fork()
        if pid == 0:
            here.close()
            self._child(rank, there)
        there.close()
        self.pids[rank], self._orders[rank] = pid, here

    def _child(self, rank: int, orders: Connection) -> None:
        """Become one rank; never returns."""
        import torch

        try:
            if self.network is not None:
                leader = self.network.leader(rank)
                if leader == rank:
                    enter_own_namespace()
                else:
                    enter_namespace_of(self.pids[leader])
                orders.send("joined")
                orders.recv()
        except BaseException as error:
            os.write(2, f"rank {rank}: {error}\n".encode())
            os._exit(1)
        cuda = torch.cuda.is_available()
        device = (
            torch.device("cuda", rank % torch.cuda.device_count()) if cuda else torch.device("cpu")
        )
        plan = self.plan
        if self.pinned:
            core = self.cores[rank % len(self.cores)]
            plan = RankPlan(plan.workload, plan.backend, plan.store, core)
        os.environ.update(self.settings["environment"])
        context = Context(
            rank,
            self.ranks,
            self.seed,
            device,
            self.knobs,
            self.folder,
            self._worker_cores(),
            self.settings,
        )
        run_forked(plan, context, orders)

    def _worker_cores(self) -> frozenset[int]:
        """Helpers of pinned ranks use the cores that no rank has, or all where none is left."""
        if not self.pinned:
            return frozenset()
        return frozenset(self.cores[self.ranks :] or self.cores)

    def tell_all(self, order: Any) -> None:
        """Send the same order to every rank."""
        for connection in self._orders.values():
            connection.send(order)

    def answers(self) -> dict[int, Any]:
        """Wait for one answer of every rank; a rank that dies meanwhile is an error at once."""
        answers: dict[int, Any] = {}
        while waiting := {r: c for r, c in self._orders.items() if r not in answers}:
            ready = wait(list(waiting.values()), timeout=PATIENCE_S)
            if not ready:
                silent = sorted(waiting)
                raise HarnessError(f"ranks {silent} of the job were silent for {PATIENCE_S:g} s")
            for rank in [rank for rank, connection in waiting.items() if connection in ready]:
                try:
                    answers[rank] = waiting[rank].recv()
                except (EOFError, ConnectionResetError):
                    raise HarnessError(f"rank {rank} of the recorded job died") from None
        return dict(sorted(answers.items()))

    def order(self, do: str, **arguments: Any) -> dict[int, Any]:
        """Let every rank do something and return what each answered."""
        self.tell_all({"do": do, **arguments})
        return self.answers()

    def __exit__(self, *_: object) -> None:
        for connection in self._orders.values():
            try:
                connection.send({"do": "stop"})
            except (BrokenPipeError, ConnectionResetError):
                continue
        for rank, pid in self.pids.items():
            self._reap(rank, pid)
        self.pids, self._orders = {}, {}

    def _reap(self, rank: int, pid: int) -> None:
        """Wait for a rank to end; one that doesn't within seconds is killed."""
        connection = self._orders[rank]
        try:
            while connection.poll(STOP_PATIENCE_S):
                connection.recv()
            os.kill(pid, 9)
        except (EOFError, ConnectionResetError, ProcessLookupError):
            pass
        finally:
            connection.close()
            os.waitpid(pid, 0)

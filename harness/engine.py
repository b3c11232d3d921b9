"""Running one diagnoser on a suite: which cases are still to be asked, in what order, by whom."""

from __future__ import annotations

import queue
import random
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from cases.bundle import Suite
from harness.answering import Needs, read_needs, to_answer, unsupported
from harness.results import Answer
from harness.sandbox.worker import Place, Task, Worker
from scorers import Tree

Report = Callable[[Answer], None]


@dataclass
class Canary:
    """What the canaries of a run got at; `workers` of them were sent."""

    workers: int = 0
    reached: set[str] = field(default_factory=set)

    @property
    def sealed(self) -> bool:
        """Whether canaries were sent and none got at anything."""
        return self.workers > 0 and not self.reached


def shuffled(keys: Mapping[str, str], seed: int) -> list[str]:
    """Return the cases in an order that depends on the seed and tells nothing about them."""
    order = sorted(keys)
    random.Random(f"evalharness {seed}").shuffle(order)
    return order


class Engine:
    """Runs `task` on the cases `keys` (case id -> key), `jobs` at a time.

    Args:
        suite: Where the cases are.
        taxonomy: Names that an answer may blame.
        place: How cases are isolated and limited.
        report: Called with each answer as it comes, from one thread at a time.
    """

    def __init__(self, suite: Suite, taxonomy: Tree, place: Place, report: Report) -> None:
        self._suite, self._taxonomy, self._place = suite, taxonomy, place
        self._report, self._lock = report, threading.Lock()
        self._stop = threading.Event()
        self.canary = Canary()

    def run(self, task: Task, keys: Mapping[str, str], seed: int, jobs: int = 1) -> None:
        """Ask about every case.

        Raises:
            InputError: the diagnoser cannot be imported, or a case is broken.
            HarnessError: the harness failed; the run is invalid.
        """
        waiting: queue.SimpleQueue[str] = queue.SimpleQueue()
        for case_id in shuffled(keys, seed):
            waiting.put(case_id)
        # A sandbox dies with the thread that started it, so each thread has its own.
        with ThreadPoolExecutor(max(1, min(jobs, len(keys)))) as pool:
            futures = [
                pool.submit(self._work, task, keys, waiting)
                for _ in range(max(1, min(jobs, len(keys))))
            ]
            try:
                for future in futures:
                    future.result()
            finally:
                self._stop.set()

    def _work(self, task: Task, keys: Mapping[str, str], waiting: queue.SimpleQueue[str]) -> None:
        try:
            with Worker(task, self._place) as worker:
                needs = read_needs(worker.needs)
                with self._lock:
                    self.canary.workers += 1
                    self.canary.reached |= set(worker.reached or ())
                while not self._stop.is_set():
                    case_id = waiting.get_nowait()
                    answer = self._ask(worker, needs, case_id, keys[case_id])
                    with self._lock:
                        self._report(answer)
        except queue.Empty:
            return
        except BaseException:
            self._stop.set()
            raise

    def _ask(self, worker: Worker, needs: Needs, case_id: str, key: str) -> Answer:
        self._suite.verify_case(case_id)
        lacking = needs.lacking(self._suite.case(case_id).info)
        if lacking:
            return unsupported(case_id, key, lacking)
        run = worker.run(Path(self._suite.case_folder(case_id)))
        return to_answer(case_id, key, run, self._taxonomy)

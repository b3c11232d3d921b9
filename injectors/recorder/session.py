"""One recording session: the process that owns a job, breaks it, times it and records it.

Run as `python -m injectors.recorder.session SCENARIO.json FOLDER` in a network namespace of
its own where ranks are joined by shaped links. It writes `result.json` and one folder a
recorded window; progress goes to standard output, one JSON object a line.
"""

from __future__ import annotations

import gc
import json
import os
import random
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from cases.documents import read_record, write_json
from cases.errors import ScenarioError
from injectors import hogs
from injectors.faults import Injection
from injectors.label_rule import shows
from injectors.measure import BASELINE
from injectors.recorder.job import Job
from injectors.recorder.knobs import Knobs
from injectors.recorder.network import INTERFACE, Network
from injectors.recorder.nvml import NvmlSampler
from injectors.recorder.rank import RankPlan, die_with_parent
from injectors.recorder.sampler import Role, Sampler
from injectors.recorder.windows import write_window
from injectors.scenario import HEALTHY, TWIN, CasePlan, Scenario

DUTY_PERIOD_S = 0.06

WINDOW_TRIES = 6
# Spinning threads would disturb every measurement on shared cores; compile in one process.
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "OMP_WAIT_POLICY": "passive",
    "MKL_NUM_THREADS": "1",
    "KINETO_LOG_LEVEL": "5",
    "TORCHINDUCTOR_COMPILE_THREADS": "1",
    "PYTORCH_NVML_BASED_CUDA_CHECK": "1",
    # Keep freed memory: giving it back and faulting it in again is noise of its own.
    "MALLOC_MMAP_THRESHOLD_": "33554432",
    "MALLOC_TRIM_THRESHOLD_": "4294967296",
}
# Collectives must cross the interfaces that can be shaped.
NETWORK_ENVIRONMENT = {
    "GLOO_SOCKET_IFNAME": INTERFACE,
    "NCCL_SOCKET_IFNAME": INTERFACE,
    "NCCL_IB_DISABLE": "1",
    "NCCL_P2P_DISABLE": "1",
    "NCCL_SHM_DISABLE": "1",
}


class Session:
    """The job that runs on, with everything that faults may reach for (see faults.Run)."""

    def __init__(self, scenario: Scenario, folder: Path, networked: bool) -> None:
        self.scenario, self.folder = scenario, folder
        self.knobs = Knobs()
        self._network = Network() if networked else None
        self.random = random.Random(f"{scenario.digest}")
        self.cores = sorted(os.sched_getaffinity(0))[: scenario.cores]
        os.sched_setaffinity(0, self.cores)
        self._hogs: dict[tuple[Any, ...], hogs.Hog] = {}
        self._resources = ExitStack()
        self._nvml = self._gpu_sampler()

    def _gpu_sampler(self) -> NvmlSampler | None:
        """Return a sampler where there are GPUs to train on and a driver to ask."""
        import torch

        if not torch.cuda.is_available():
            return None
        try:
            sampler = NvmlSampler.open()
        except ScenarioError:  # `gpu` is then among the signals that a case states as absent
            return None
        self._resources.callback(sampler.close)
        return sampler

    @property
    def network(self) -> Network:
        """The ranks' network."""
        if self._network is None:
            raise ScenarioError("ranks must be joined by a network of their own to shape it")
        return self._network

    @contextmanager
    def competitors(
        self, kind: str, count: int, nice: int, core: int | None, duty: float
    ) -> Iterator[None]:
        """Let competing processes run; they are started once and sleep between blocks."""
        key = (kind, count, nice, core)
        if key not in self._hogs:
            cores = set(self.cores) if core is None else {self.cores[core % len(self.cores)]}
            name = hogs.NAMES[self.random.randrange(len(hogs.NAMES))]
            hog = hogs.start(kind, count, nice=nice, cores=cores, names=[name])
            self._resources.callback(hog.stop)
            hog.pause()
            self._hogs[key] = hog
        hog = self._hogs[key]
        hog.resume()
        stop = threading.Event()
        cycle = threading.Thread(target=_cycle, args=(hog, duty, stop), daemon=True)
        if duty < 1:
            cycle.start()
        try:
            yield
        finally:
            stop.set()
            if duty < 1:
                cycle.join()
            hog.pause()

    def start_job(self, seed: int, number: int) -> Job:
        """Fork the ranks of a job."""
        import torch

        backend = "nccl" if torch.cuda.is_available() else "gloo"
        plan = RankPlan(
            workload=self.scenario.build_workload(),
            backend=backend,
            store=self.folder / f"rendezvous-{number}",
            core=None,
            bucket_mb=self.scenario.bucket_mb,
        )
        gc.collect()
        return Job(
            plan,
            self.scenario.ranks,
            seed,
            self.knobs,
            self.folder,
            self.cores,
            self.scenario.pinned,
            self._network,
        )

    def arm(self, name: str) -> AbstractContextManager[None]:
        """Return what makes an arm's condition hold for the length of a block."""
        if name in (BASELINE, HEALTHY):
            return nullcontext()
        injection: Injection = self.scenario.arms[name].injection()
        return injection.inject(self)

    def settle(self) -> int:
        """Return how many steps pass before a change of condition is fully felt."""
        return self.scenario.build_workload().settle_steps

    def measure(self, job: Job) -> list[dict[str, Any]]:
        """Run the blocks of trials: each arm once a block, in random order, then null pairs."""
        plan = self.scenario.trials
        blocks = []
        decoys = [name for name in self.scenario.arms if name not in self.scenario.faults()]
        total = plan.blocks + plan.fresh + (plan.further if decoys else 0)
        for number in range(total):
            whole = number < plan.blocks + plan.fresh
            order = [BASELINE, *(self.scenario.arms if whole else decoys)]
            self.random.shuffle(order)
            block: dict[str, Any] = {"order": order, "seconds": {}}
            for name in order:
                with self.arm(name):
                    values = job.order("trials", settle=self.settle(), steps=plan.steps, count=1)
                block["seconds"][name] = max(values.values())[0]
            share = plan.null_pairs * (number + 1) // total - plan.null_pairs * number // total
            block["null"] = self.null_pairs(job, share)
            blocks.append(block)
            report("trials", number + 1, total)
        return blocks

    def null_pairs(self, job: Job, count: int) -> list[dict[str, float]]:
        """Time the healthy job against itself; keys are in the order of the two trials."""
        if not count:
            return []
        steps = self.scenario.trials.null_steps
        values = job.order("trials", settle=self.settle(), steps=steps, count=2 * count)
        slowest = [max(trial) for trial in zip(*values.values(), strict=True)]
        return [
            dict(zip(self.random.sample(["baseline", "null"], 2), pair, strict=True))
            for pair in zip(slowest[::2], slowest[1::2], strict=True)
        ]

    def record_windows(self, reference: Job, job: Job) -> dict[str, float]:
        """Record the reference run and every case; returns each window's mean step seconds.

        One recording is noisier than the trials that made the label, so each is made again, at
        most WINDOW_TRIES times, until it shows what it should: the twin that it is neither
        slower nor faster than the reference run (both are made again), the other healthy ones
        too, a faulty one that it is slower than the twin.
        """
        (twin, plan), *others = windows(self.scenario)
        faults = self.scenario.faults()
        for _ in range(WINDOW_TRIES):
            seconds = {"reference": self.record(reference, "reference", HEALTHY)}
            seconds[twin] = self.record(job, twin, plan.arm)
            if shows("healthy", seconds[twin] / seconds["reference"]):
                break
        self.random.shuffle(others)
        for number, (name, plan) in enumerate(others):
            report("windows", number + 1, len(others) + 1)
            wanted, against = ("faulty", twin) if plan.arm in faults else ("healthy", "reference")
            for _ in range(WINDOW_TRIES):
                seconds[name] = self.record(job, name, plan.arm)
                if shows(wanted, seconds[name] / seconds[against]):
                    break
        report("windows", len(others) + 1, len(others) + 1)
        return seconds

    def record(self, job: Job, name: str, arm: str) -> float:
        """Record one window under an arm's condition; returns its mean step seconds."""
        scenario = self.scenario
        shutil.rmtree(self.folder / name, ignore_errors=True)
        with self.arm(arm):
            roles = self._roles(job)
            time.sleep(0.05)
            start_ns = time.monotonic_ns()
            sampler = Sampler(
                roles,
                frozenset(hogs.NAMES),
                INTERFACE if self._network else None,
                start_ns,
                nvml=self._nvml,
            )
            with sampler:
                answers = job.order(
                    "window",
                    settle=self.settle(),
                    steps=scenario.steps,
                    profiled=scenario.profiled_steps,
                    start_ns=start_ns,
                )
        return write_window(self.folder / name, answers, sampler.tables())

    def _roles(self, job: Job) -> dict[int, Role]:
        roles = {pid: Role("rank", rank) for rank, pid in job.pids.items()}
        for rank, children in job.order("children").items():
            for worker, pid in enumerate(children):
                roles[pid] = Role("loader_worker", rank, worker)
        return roles

    def close(self) -> None:
        """End the competitors."""
        self._resources.close()


def _cycle(hog: hogs.Hog, duty: float, stop: threading.Event) -> None:
    while not stop.wait(DUTY_PERIOD_S * duty):
        hog.pause()
        if stop.wait(DUTY_PERIOD_S * (1 - duty)):
            break
        hog.resume()


def report(phase: str, done: int, total: int) -> None:
    """Tell the recorder how far the session is."""
    print(json.dumps({"phase": phase, "done": done, "of": total}), flush=True)


def windows(scenario: Scenario) -> list[tuple[str, CasePlan]]:
    """Name the windows to record, the twin's first: each case its own, and a twin in any case."""
    named = [(f"case-{number}", plan) for number, plan in enumerate(scenario.cases)]
    twins = [window for window in named if window[1] == TWIN] or [("twin", TWIN)]
    return [twins[0], *(window for window in named if window != twins[0])]


def main(scenario_path: str, folder: str, networked: str) -> None:
    """Run the session of a scenario."""
    die_with_parent()
    os.environ.update(ENVIRONMENT)
    if networked == "network":
        os.environ.update(NETWORK_ENVIRONMENT)
    import torch

    torch.set_num_threads(1)
    scenario = read_record(Path(scenario_path), Scenario)
    target = Path(folder)
    session = Session(scenario, target, networked == "network")
    scenario.build_workload().prepare(target, scenario.seed)
    result: dict[str, Any] = {}
    try:
        # The reference job stays idle beside the measured one, so that its recording can be
        # made in the same minute as theirs and machine drift is no difference between them.
        reference = session.start_job(scenario.seed + 1_000_003, 0)
        with reference, session.start_job(scenario.seed, 1) as job:
            for each in (reference, job):
                each.order("trials", settle=session.settle(), steps=scenario.trials.steps, count=1)
            result["blocks"] = session.measure(job)
            result["windows"] = session.record_windows(reference, job)
    finally:
        session.close()
    write_json(target / "result.json", result)


if __name__ == "__main__":
    main(*sys.argv[1:])

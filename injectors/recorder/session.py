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
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from cases.documents import read_record, write_json
from cases.errors import ScenarioError
from injectors import hogs
from injectors.label_rule import shows
from injectors.measure import BASELINE
from injectors.recorder import disturbances, metrics_service
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
        interfaces = [scenario.interface(rank) for rank in range(scenario.ranks)]
        self._network = Network(interfaces, scenario.link_mbit_per_s) if networked else None
        self.random = random.Random(f"{scenario.digest}")
        self.cores = sorted(os.sched_getaffinity(0))[: scenario.cores]
        os.sched_setaffinity(0, self.cores)
        self._jobs: dict[str, Job] = {}
        self._hogs: dict[tuple[Any, ...], hogs.Hog] = {}
        self._services: dict[tuple[int, float], metrics_service.MetricsService] = {}
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
            names = hogs.AGENTS if kind == "poll" else hogs.PROGRAM_NAMES
            hog = hogs.start(kind, count, hogs.Place(nice, cores), names=[self._draw(names)])
            self._keep(key, hog)
        hog = self._hogs[key]
        hog.resume()
        on_and_off = disturbances.alternating(hog.resume, duty, hog.pause, DUTY_PERIOD_S)
        try:
            with on_and_off if duty < 1 else nullcontext():
                yield
        finally:
            hog.pause()

    def _keep(self, key: tuple[Any, ...], hog: hogs.Hog) -> None:
        """Let competitors sleep until they are needed, and end them with the session."""
        self._resources.callback(hog.stop)
        hog.pause()
        self._hogs[key] = hog

    def _draw(self, names: Sequence[str]) -> str:
        return names[self.random.randrange(len(names))]

    @contextmanager
    def device_neighbours(self, rank: int, count: int) -> Iterator[None]:
        """Let processes compute on a rank's GPU; they end with the block.

        Even a process that sleeps is seen on the device and holds memory there.
        """
        import torch

        variables = {"DEVICE": str(rank % torch.cuda.device_count())}
        if "CUDA_VISIBLE_DEVICES" in os.environ:
            variables["CUDA_VISIBLE_DEVICES"] = os.environ["CUDA_VISIBLE_DEVICES"]
        place = hogs.Place(cores=set(self.cores), environment=variables)
        hog = hogs.start("device", count, place, names=[self._draw(hogs.PROGRAM_NAMES)])
        try:
            yield
        finally:
            hog.stop()

    def quota(self, rank: int | None, cores: float) -> AbstractContextManager[None]:
        """Hold a rank and its helpers, or the whole job, to so many CPU seconds per second."""
        pids = self.pids.values() if rank is None else [self.pids[rank]]
        return disturbances.quota(pids, cores)

    def suspended(
        self, rank: int, stopped_fraction: float, period_s: float
    ) -> AbstractContextManager[None]:
        """Stop one rank's process for a part of every period."""
        return disturbances.suspended(self.pids[rank], stopped_fraction, period_s)

    @contextmanager
    def traffic(self, source: int, target: int, flows: int) -> Iterator[None]:
        """Let another program send between two ranks' hosts; it sleeps between blocks."""
        key = ("traffic", source, target, flows)
        if key not in self._hogs:
            what = disturbances.Flows(
                self.scenario.interface(source),
                self.scenario.interface(target),
                flows,
                disturbances.PORT + len(self._hogs),
            )
            name = self._draw(hogs.PROGRAM_NAMES)
            senders, receiver = disturbances.traffic(self.network, what, set(self.cores), name)
            self._resources.callback(receiver.stop)
            self._keep(key, senders)
        self._hogs[key].resume()
        try:
            yield
        finally:
            self._hogs[key].pause()

    def metrics_port(self, response_s: float) -> int:
        """Return the port, on rank 0's loopback, of a metrics service; it is started once."""
        pid = self.pids[0]
        key = (pid, response_s)
        if key not in self._services:
            service = metrics_service.start(response_s, pid if self._network else None)
            self._resources.callback(service.stop)
            self._services[key] = service
        return self._services[key].port

    def start_job(self, seed: int, number: int, settings: Mapping[str, Any] | None = None) -> Job:
        """Fork the ranks of a job; `settings` are what differs in it from a healthy one."""
        import torch

        backend = "nccl" if torch.cuda.is_available() else "gloo"
        plan = RankPlan(
            workload=self.scenario.build_workload((settings or {}).get("workload")),
            backend=backend,
            store=self.folder / f"rendezvous-{number}",
            core=None,
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
            {**self.scenario.settings(), **(settings or {})},
        )

    @contextmanager
    def jobs(self) -> Iterator[None]:
        """Start the job that is measured, after one more for each arm that needs its own."""
        with ExitStack() as stack:
            for number, name in enumerate(self.scenario.arms):
                if settings := self.scenario.settings_of(name):
                    job = self.start_job(self.scenario.seed, number + 2, settings)
                    self._jobs[name] = stack.enter_context(job)
            self._healthy = stack.enter_context(self.start_job(self.scenario.seed, 1))
            for job in (*self._jobs.values(), self._healthy):
                job.order("trials", settle=self.settle(), steps=self.scenario.trials.steps, count=1)
            yield

    @property
    def pids(self) -> dict[int, int]:
        """Process of each rank of the job that is broken now."""
        return self._current.pids

    @contextmanager
    def arm(self, name: str) -> Iterator[Job]:
        """Let an arm's condition hold for the length of a block, in the job that it yields."""
        self._current = self._jobs.get(name, self._healthy)
        if name in (BASELINE, HEALTHY):
            yield self._current
            return
        with ExitStack() as stack:
            for injection in self.scenario.injections(name):
                stack.enter_context(injection.inject(self))
            yield self._current

    def settle(self) -> int:
        """Return how many steps pass before a change of condition is fully felt."""
        return self.scenario.build_workload().settle_steps

    def measure(self) -> list[dict[str, Any]]:
        """Run the blocks of trials: each arm once a block, in random order, then null pairs."""
        plan = self.scenario.trials
        blocks = []
        decoys = [name for name in self.scenario.arms if name not in self.scenario.faulty()]
        total = plan.blocks + plan.fresh + (plan.further if decoys else 0)
        for number in range(total):
            whole = number < plan.blocks + plan.fresh
            block = self.block([BASELINE, *(self.scenario.arms if whole else decoys)])
            share = plan.null_pairs * (number + 1) // total - plan.null_pairs * number // total
            block["null"] = self.null_pairs(share)
            blocks.append(block)
            report("trials", number + 1, total)
        return blocks

    def block(self, arms: Sequence[str]) -> dict[str, Any]:
        """Time one trial of every arm, in random order."""
        steps = self.scenario.trials.steps
        order = self.random.sample(arms, len(arms))
        block: dict[str, Any] = {"order": order, "seconds": {}}
        for name in order:
            with self.arm(name) as job:
                values = job.order("trials", settle=self.settle(), steps=steps, count=1)
            block["seconds"][name] = max(values.values())[0]
        return block

    def null_pairs(self, count: int) -> list[dict[str, float]]:
        """Time the healthy job against itself; keys are in the order of the two trials."""
        if not count:
            return []
        steps = self.scenario.trials.null_steps
        values = self._healthy.order("trials", settle=self.settle(), steps=steps, count=2 * count)
        slowest = [max(trial) for trial in zip(*values.values(), strict=True)]
        return [
            dict(zip(self.random.sample(["baseline", "null"], 2), pair, strict=True))
            for pair in zip(slowest[::2], slowest[1::2], strict=True)
        ]

    def record_windows(self, reference: Job) -> dict[str, float]:
        """Record the reference run and every case; returns each window's mean step seconds.

        One recording is noisier than the trials that made the label, so each is made again, at
        most WINDOW_TRIES times, until it shows what it should: the twin that it is neither
        slower nor faster than the reference run (both are made again), the other healthy ones
        too, a faulty one that it is slower than the twin.
        """
        (twin, plan), *others = windows(self.scenario)
        faults = self.scenario.faulty()
        for _ in range(WINDOW_TRIES):
            seconds = {"reference": self.record_window(reference, "reference")}
            seconds[twin] = self.record(twin, plan.arm)
            if shows("healthy", seconds[twin] / seconds["reference"]):
                break
        self.random.shuffle(others)
        for number, (name, plan) in enumerate(others):
            report("windows", number + 1, len(others) + 1)
            wanted, against = ("faulty", twin) if plan.arm in faults else ("healthy", "reference")
            for _ in range(WINDOW_TRIES):
                seconds[name] = self.record(name, plan.arm)
                if shows(wanted, seconds[name] / seconds[against]):
                    break
        report("windows", len(others) + 1, len(others) + 1)
        return seconds

    def record(self, name: str, arm: str) -> float:
        """Record one window under an arm's condition; returns its mean step seconds."""
        with self.arm(arm) as job:
            return self.record_window(job, name)

    def record_window(self, job: Job, name: str) -> float:
        """Record one window of a job; returns its mean step seconds."""
        scenario = self.scenario
        shutil.rmtree(self.folder / name, ignore_errors=True)
        sampler = self.sampler(job)
        time.sleep(0.05)
        with sampler:
            answers = job.order(
                "window",
                settle=self.settle(),
                steps=scenario.steps,
                profiled=scenario.profiled_steps,
                stacks=scenario.stacks,
                start_ns=sampler.start_ns,
            )
        return write_window(self.folder / name, answers, sampler.tables())

    def sampler(self, job: Job) -> Sampler:
        """Return what samples the host, a job's processes and its devices, from now on."""
        return Sampler(
            self._roles(job),
            frozenset(hogs.NAMES),
            INTERFACE if self._network else None,
            time.monotonic_ns(),
            nvml=self._nvml,
        )

    def _roles(self, job: Job) -> dict[int, Role]:
        host = {rank: f"host{self.scenario.host(rank)}" for rank in job.pids}
        roles = {pid: Role("rank", rank, host=host[rank]) for rank, pid in job.pids.items()}
        for rank, children in job.order("children").items():
            for worker, pid in enumerate(children):
                roles[pid] = Role("loader_worker", rank, worker, host[rank])
        return roles

    def close(self) -> None:
        """End the competitors."""
        self._resources.close()


def report(phase: str, done: int, total: int) -> None:
    """Tell the recorder how far the session is."""
    print(json.dumps({"phase": phase, "done": done, "of": total}), flush=True)


def windows(scenario: Scenario) -> list[tuple[str, CasePlan]]:
    """Name the windows to record, the twin's first: each case its own, and a twin in any case."""
    named = [(f"case-{number}", plan) for number, plan in enumerate(scenario.cases)]
    twins = [window for window in named if window[1] == TWIN] or [("twin", TWIN)]
    return [twins[0], *(window for window in named if window != twins[0])]


def open_session(scenario_path: str, folder: str, networked: str) -> Session:
    """Make this process the session of a scenario, with the files that its job reads."""
    die_with_parent()
    os.environ.update(ENVIRONMENT)
    if networked == "network":
        os.environ.update(NETWORK_ENVIRONMENT)
    import torch

    torch.set_num_threads(1)
    scenario = read_record(Path(scenario_path), Scenario)
    session = Session(scenario, Path(folder), networked == "network")
    scenario.build_workload().prepare(session.folder, scenario.seed)
    return session


def main(scenario_path: str, folder: str, networked: str) -> None:
    """Run the session of a scenario."""
    session = open_session(scenario_path, folder, networked)
    scenario = session.scenario
    result: dict[str, Any] = {}
    try:
        # The reference job stays idle beside the measured one, so that its recording can be
        # made in the same minute as theirs and machine drift is no difference between them.
        reference = session.start_job(scenario.seed + 1_000_003, 0)
        with reference, session.jobs():
            reference.order("trials", settle=session.settle(), steps=1, count=1)
            result["blocks"] = session.measure()
            result["windows"] = session.record_windows(reference)
    finally:
        session.close()
    write_json(session.folder / "result.json", result)


if __name__ == "__main__":
    main(*sys.argv[1:])

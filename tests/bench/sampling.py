"""What a job's steps cost more while the host, its processes and its GPUs are sampled."""

from __future__ import annotations

import math
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from cases.documents import write_record
from injectors.matrix import session_environment
from injectors.recorder.job import Job
from injectors.recorder.nvml import NvmlSampler
from injectors.recorder.session import Session, open_session
from injectors.scenario import HEALTHY, CasePlan, Scenario
from tests.bench.figure import Figure

PAIRS, STEPS = 80, 60  # a trial of half a second holds three or four samples
LIMIT = 1.02
STAND_IN = Path(__file__).parents[1] / "injectors" / "nvml_stand_in.c"
JOB = Scenario(
    name="sampled",
    workload="image_classifier",
    parameters={"channels": 8, "batch_size": 8, "workers": 2},
    pinned=True,
    arms={},
    cases=(CasePlan(arm=HEALTHY),),
)


def measure() -> Iterator[Figure]:
    """Ratio of step times, in a process that is set up as recording sessions are."""
    compiler = shutil.which("gcc") is not None
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", __name__, folder, "with" if compiler else "without"]
        done = subprocess.run(
            command, env=session_environment(), capture_output=True, text=True, check=False
        )
    if done.returncode:
        raise RuntimeError(f"the sampled job must run, got: {done.stderr[-500:]}")
    what = "host, processes, NVML stand-in" if compiler else "host, processes"
    yield Figure(f"step, sampled ({what}) / not sampled", float(done.stdout), LIMIT)


def main(folder: str, nvml: str) -> None:
    """Print the ratio."""
    scenario = Path(folder) / "scenario.json"
    write_record(scenario, JOB)
    library = built(Path(folder)) if nvml == "with" else None
    session = open_session(str(scenario), folder, "shared")
    try:
        with session.jobs(), session.arm(HEALTHY) as job:
            print(ratio(session, job, library))
    finally:
        session.close()


def ratio(session: Session, job: Job, library: Path | None) -> float:
    """Geometric mean over pairs of adjacent trials, in random order."""
    logs = []
    for number in range(PAIRS):
        seconds = {
            sampled: trial(session, job, sampled, library)
            for sampled in random.Random(number).sample([False, True], 2)
        }
        logs.append(math.log(seconds[True] / seconds[False]))
    return math.exp(statistics.mean(logs))


def trial(session: Session, job: Job, sampled: bool, library: Path | None) -> float:
    """Mean seconds of a step in one trial."""
    with ExitStack() as stack:
        if sampled:
            sampler = session.sampler(job)
            if library:
                sampler.nvml = NvmlSampler.open(library)
                stack.callback(sampler.nvml.close)
            stack.enter_context(sampler)
        values = job.order("trials", settle=session.settle(), steps=STEPS, count=1)
    (value,) = values[0]
    return float(value)


def built(folder: Path) -> Path:
    """Compile the stand-in for NVIDIA's library."""
    library = folder / "libnvidia-ml.so.1"
    flags = ["-shared", "-fPIC", "-Wl,-soname,libnvidia-ml.so.1"]
    subprocess.run(["gcc", str(STAND_IN), *flags, "-o", str(library)], check=True)
    return library


if __name__ == "__main__":
    main(*sys.argv[1:])

"""What the command line costs before it does anything."""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.bench.figure import Figure, seconds

ROUNDS = 9


def measure() -> Iterator[Figure]:
    """Median seconds of `evalharness --help`, and of the demo on the shipped suite."""
    command = str(Path(sys.executable).with_name("evalharness"))
    yield Figure("evalharness --help (s)", median_s([command, "--help"], ROUNDS), 0.4)
    yield Figure(
        "make demo, installed (s)", median_s([sys.executable, "-m", "harness.demo"], 1), 60
    )


def median_s(command: list[str], rounds: int) -> float:
    """Median wall time of a whole process."""

    def run() -> None:
        subprocess.run(command, check=True, capture_output=True)

    return statistics.median(seconds(run) for _ in range(rounds))

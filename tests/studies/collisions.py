"""The study behind docs/simulator.md: are undecidable cases undecidable?

    python -m tests.studies.collisions [PATTERN ...] [--groups 100] [--seed 0]

Prints a row of the table for each pair of causes.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path

from harness.audit.collisions import Collision, collisions
from injectors.scenario import Withheld
from injectors.sim.collisions import Seen, observe
from injectors.sim.matrix import Matrix, read

# Jobs in which a pattern's causes can act, small ones of the kinds that the suites have.
JOBS: dict[Withheld, tuple[str, ...]] = {
    "all_but_progress": ("ddp-a100-16", "vision-h100-16"),
    "step_walls_only": ("ddp-a100-16", "vision-h100-16"),
    "single_rank_trace": ("ddp-a100-16", "vision-h100-16"),
    "collectives_without_token_counts": ("moe-h100-16",),
    "version_drop_without_counters": ("ddp-h200-24",),
    "coarse_sampling": ("ddp-a100-16", "ddp-a100-one"),
    "coarse_microbatch_timers": ("fsdp-h100-long-16",),
    "unaligned_clocks": ("ddp-a100-16", "vision-h100-16"),
    "congestion_mark_only": ("ddp-h200-24",),
    "unlogged_preemptions": ("serving-h100-2",),
    "no_baseline_single_gpu": ("ddp-a100-one",),
    "everything_changed_together": ("ddp-a100-16", "recommender-a100-16"),
}


def study_matrix() -> Matrix:
    """The suites' causes and strengths in the study's jobs."""
    small = read(Path(__file__).with_name("collisions.yaml"))
    return read().model_copy(update={"configurations": small.configurations})


def seen(matrix: Matrix, pattern: Withheld, groups: int, seed: int) -> Iterator[Seen]:
    """Simulate so many groups of a pattern, its jobs by turns."""
    for number, job in enumerate(islice(cycle(JOBS[pattern]), groups)):
        yield from observe(matrix, pattern, job, number // len(JOBS[pattern]), seed)


def study(pattern: Withheld, groups: int, seed: int = 0) -> list[Collision]:
    """Tell the candidates of one pattern apart."""
    return collisions(list(seen(study_matrix(), pattern, groups, seed)))


def row(pattern: str, found: Collision) -> str:
    """One row of the table in docs/simulator.md."""
    forest = f"{found.forest:.2f} ({found.forest_high:.2f})"
    linear = f"{found.linear:.2f} ({found.linear_high:.2f})"
    pair = f"{found.first}, {found.second}"
    return f"| {pattern} | {pair} | {found.groups} | {forest} | {linear} |"


def main() -> None:
    """Print the table of the patterns that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("patterns", nargs="*", default=[*JOBS])
    parser.add_argument("--groups", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tells", action="store_true", help="Name the most telling feature, too.")
    asked = parser.parse_args()
    if strangers := sorted({*asked.patterns} - {*JOBS}):
        parser.error(f"patterns must be of {sorted(JOBS)}, found {strangers}")
    for pattern in asked.patterns:
        for found in study(pattern, asked.groups, asked.seed):
            tell = f"  {found.tell[1]:.2f} {found.tell[0]}" if asked.tells else ""
            print(row(pattern, found) + tell, flush=True)


if __name__ == "__main__":
    main()

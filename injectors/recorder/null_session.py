"""A session in which nothing is broken: the healthy job timed against itself, label after label.

Run as `python -m injectors.recorder.null_session SCENARIO.json FOLDER network|shared OUT FIRST
COUNT`. It appends one line a label to OUT, so that what was measured outlives an interruption.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

from injectors.measure import BASELINE
from injectors.null_study import ADJACENT_PAIRS, NullLabel
from injectors.recorder.session import Session, open_session, report
from injectors.scenario import HEALTHY


def measure(session: Session) -> NullLabel:
    """Time the pairs of one label, as a session does, and adjacent pairs after them."""
    plan = session.scenario.trials
    blocks = [session.block([BASELINE, HEALTHY])["seconds"] for _ in range(plan.blocks)]
    adjacent = session.null_pairs(ADJACENT_PAIRS)
    return NullLabel(
        stratum=session.scenario.name,
        steps=plan.steps,
        baseline_us=tuple(microseconds(block[BASELINE]) for block in blocks),
        treated_us=tuple(microseconds(block[HEALTHY]) for block in blocks),
        null_steps=plan.null_steps,
        null_pairs=plan.null_pairs,
        adjacent_baseline_us=tuple(microseconds(pair["baseline"]) for pair in adjacent),
        adjacent_treated_us=tuple(microseconds(pair["null"]) for pair in adjacent),
    )


def microseconds(seconds: float) -> int:
    """Round to what is kept."""
    return round(seconds * 1e6)


def main(scenario: str, folder: str, networked: str, out: str, first: str, count: str) -> None:
    """Measure COUNT labels, FIRST of which the file already has."""
    session = open_session(scenario, folder, networked)
    session.random = random.Random(f"{session.scenario.digest}/{first}")
    try:
        with session.jobs(), Path(out).open("a", encoding="utf-8") as file:
            for number in range(int(count)):
                file.write(measure(session).model_dump_json() + "\n")
                file.flush()
                report("null labels", int(first) + number + 1, int(first) + int(count))
    finally:
        session.close()


if __name__ == "__main__":
    main(*sys.argv[1:])

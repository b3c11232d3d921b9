"""How long case results take to be scored with every interval, and two of them to be compared."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from functools import lru_cache

import numpy as np

from cases.schema import Diagnosis, Fault, Finding, Interval, Locus, RankPlace, Topology, Verdict
from cases.taxonomy import Taxonomy
from scorers import Label, Response, Scores, compare, score
from tests.bench.figure import Figure, seconds

SIZES = (1_000, 10_000, 100_000)
GROUPS = 1_000
COMPARED = 10_000
SCORE_LIMIT_S, COMPARE_LIMIT_S, MEMORY_LIMIT_MB = 10.0, 5.0, 1000.0
TOPOLOGY = Topology(ranks=tuple(RankPlace(rank=r, host=f"host{r // 4}") for r in range(8)))
VERDICTS: tuple[Verdict, ...] = ("faulty", "healthy", "undecidable")


def measure() -> list[Figure]:
    """Wall time and peak memory of scoring up to 100,000 cases, and of one comparison.

    Each size is scored in a process of its own, for the peak of one would hide the others'.
    The memory is that of the whole process, interpreter, labels and answers included.
    """
    found = {size: _in_a_process(size) for size in SIZES}
    figures = [
        Figure(f"scoring {size} cases in at most {GROUPS} groups, seconds", spent, SCORE_LIMIT_S)
        for size, (spent, _) in found.items()
    ]
    peak = found[SIZES[-1]][1]
    figures.append(Figure(f"peak of scoring {SIZES[-1]} cases, MB", peak, MEMORY_LIMIT_MB))
    one, other = scored(COMPARED, 0), scored(COMPARED, 1)
    spent = seconds(lambda: compare(one, other, margin=0.02))
    figures.append(Figure(f"comparing two on {COMPARED} cases, seconds", spent, COMPARE_LIMIT_S))
    return figures


def _in_a_process(size: int) -> tuple[float, float]:
    """Return wall seconds of scoring and peak memory in MB of the process that did it."""
    call = f"from tests.bench.scoring import report; report({size})"
    done = subprocess.run([sys.executable, "-c", call], check=True, capture_output=True, text=True)
    spent, peak = json.loads(done.stdout)
    return spent, peak


def report(size: int) -> None:
    """Score `size` cases and print [wall seconds, peak memory in MB]."""
    labels, responses = made_up(size, 0)
    taxonomy = Taxonomy.load()
    first = {label.case_id: responses[label.case_id] for label in labels[:100]}
    score(labels[:100], first, taxonomy)  # imports and caches
    spent = seconds(lambda: score(labels, responses, taxonomy, train_median_lost_fraction=0.2))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    print(json.dumps([spent, peak]))


def scored(size: int, seed: int) -> Scores:
    """Return the scores of made-up answers; the labels are the same for every seed."""
    labels, responses = made_up(size, seed)
    return score(labels, responses, Taxonomy.load())


def made_up(size: int, seed: int) -> tuple[list[Label], dict[str, Response]]:
    """Return labels, 60 % of them faulty, and answers with three findings each."""
    causes = tuple(Taxonomy.load().causes)
    rng = np.random.default_rng(0)
    labels = [_label(i, causes, rng) for i in range(size)]
    rng = np.random.default_rng(seed + 1)
    return labels, {label.case_id: _response(label, causes, rng) for label in labels}


def _label(i: int, causes: tuple[str, ...], rng: np.random.Generator) -> Label:
    verdict = VERDICTS[int(rng.choice(3, p=[0.6, 0.3, 0.1]))]
    count = 1 + int(rng.random() < 0.2) if verdict == "faulty" else 0
    return Label(
        case_id=f"case{i:06d}",
        group=f"group{i % GROUPS}",
        split="dev",
        verdict=verdict,
        faults=tuple(_fault(causes, rng) for _ in range(count)),
        decoys=(),
        candidates=causes[:2] if verdict == "undecidable" else (),
        missing_signals=("network",) if verdict == "undecidable" else (),
        topology=TOPOLOGY,
    )


def _fault(causes: tuple[str, ...], rng: np.random.Generator) -> Fault:
    lost = round(float(rng.uniform(0.05, 0.6)), 3)
    return Fault(
        cause=str(rng.choice(causes)),
        locus=_place(int(rng.integers(8))),
        lost_fraction=Interval(value=lost, low=lost / 2, high=min(2 * lost, 1.0)),
    )


def _response(label: Label, causes: tuple[str, ...], rng: np.random.Generator) -> Response:
    """Three findings: the first fault half of the time, else anything."""
    findings = tuple(_finding(label, causes, rng) for _ in range(3))
    diagnosis = Diagnosis(
        verdict="faulty", findings=findings, confidence=round(float(rng.random()), 2)
    )
    return Response(label.case_id, "ok", diagnosis, 1.0)


def _finding(label: Label, causes: tuple[str, ...], rng: np.random.Generator) -> Finding:
    known = bool(label.faults) and rng.random() < 0.5
    return Finding(
        cause=label.faults[0].cause if known else str(rng.choice(causes)),
        locus=_place(int(rng.integers(8))),
        confidence=round(float(rng.random()), 2),
    )


@lru_cache(maxsize=8)
def _place(rank: int) -> Locus:
    """Return one record for each place: they are frozen, so that equal ones may be shared."""
    return Locus(scope="rank", ranks=(rank,))

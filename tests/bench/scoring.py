"""How long ten thousand cases take to be scored with every interval."""

from __future__ import annotations

import numpy as np

from cases.schema import Diagnosis, Fault, Finding, Interval, Locus, RankPlace, Topology, Verdict
from cases.taxonomy import Taxonomy
from scorers import Label, Response, score
from tests.bench.figure import Figure, seconds

CASES, GROUPS = 10_000, 1_000
LIMIT_S = 10.0
TOPOLOGY = Topology(ranks=tuple(RankPlace(rank=r, host=f"host{r // 4}") for r in range(8)))


def measure() -> list[Figure]:
    """Wall time of scoring 10,000 cases in 1,000 groups."""
    taxonomy = Taxonomy.load()
    causes = tuple(taxonomy.causes)
    rng = np.random.default_rng(0)
    labels = [_label(i, causes, rng) for i in range(CASES)]
    responses = {label.case_id: _response(label, causes, rng) for label in labels}
    score(labels[:100], {x.case_id: responses[x.case_id] for x in labels[:100]}, taxonomy)
    spent = seconds(lambda: score(labels, responses, taxonomy, train_median_lost_fraction=0.2))
    return [Figure(f"scoring {CASES} cases in {GROUPS} groups, seconds", spent, LIMIT_S)]


def _label(i: int, causes: tuple[str, ...], rng: np.random.Generator) -> Label:
    verdicts: tuple[Verdict, ...] = ("faulty", "healthy", "undecidable")
    verdict = verdicts[int(rng.choice(3, p=[0.6, 0.3, 0.1]))]
    count = 1 + int(rng.random() < 0.2) if verdict == "faulty" else 0
    return Label(
        case_id=f"case{i:05d}",
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
    return Fault(
        cause=str(rng.choice(causes)),
        locus=_place(rng),
        lost_fraction=Interval(value=0.2, low=0.1, high=0.3),
    )


def _response(label: Label, causes: tuple[str, ...], rng: np.random.Generator) -> Response:
    """Three findings: the first fault half of the time, else anything."""
    findings = tuple(
        Finding(
            cause=label.faults[0].cause
            if label.faults and rng.random() < 0.5
            else str(rng.choice(causes)),
            locus=_place(rng),
            confidence=round(float(rng.random()), 2),
        )
        for _ in range(3)
    )
    return Response(label.case_id, "ok", Diagnosis(verdict="faulty", findings=findings), 1.0)


def _place(rng: np.random.Generator) -> Locus:
    return Locus(scope="rank", ranks=(int(rng.integers(8)),))

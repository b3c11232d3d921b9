"""What a forest learns from: a case's features, and of its label what it is to find out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from cases.bundle import Suite
from cases.schema import Locus, Topology
from harness.diagnosers.features import Facts
from harness.diagnosers.forest import NEEDS
from harness.diagnosers.forest.observe import Observed, observe
from scorers import Label

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Sample:
    """One case: what can be seen of it, and what is true.

    Attributes:
        seen: What a forest sees of it.
        label: What is true.
    """

    seen: Observed
    label: Label


def read_samples(
    suite: Suite, labels: Sequence[Label], progress: Progress = lambda case: None
) -> list[Sample]:
    """Measure all cases that a forest can take."""
    samples = []
    for label in labels:
        if label.kind in NEEDS["kinds"]:
            case = suite.case(label.case_id)
            samples.append(Sample(_slim(observe(case), suite), label))
        progress(label.case_id)
    return samples


def _slim(seen: Observed, suite: Suite) -> Observed:
    """The same without what was read and worked out: a case and its facts keep all of it."""
    return replace(seen, facts=Facts(suite.case(seen.facts.case.info.id)))


def ranks_of(locus: Locus, topology: Topology) -> set[int]:
    """Ranks that a place holds; those at the ends of a link; none for the whole job."""
    ranks = set(locus.ranks)
    for place in topology.ranks:
        if place.host in locus.hosts or place.gpu in locus.gpus or place.stage in locus.stages:
            ranks.add(place.rank)
    for link in topology.links:
        ranks |= set(link.ranks) if link.name in locus.links else set()
    return ranks | {int(name.split("/")[0].removeprefix("rank")) for name in locus.workers}

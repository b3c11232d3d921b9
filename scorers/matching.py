"""Which finding answers which fault: causes compared, places judged, one best assignment."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from cases.schema import Fault, Finding, Topology
from scorers.inputs import Tree
from scorers.lineage import Lineage, Relation
from scorers.locus import Kind, Names, covers_half, is_right, kind_of, named

Placing = Literal["right", "none", "wrong"]


class Pair(NamedTuple):
    """How one root finding relates to one fault whose cause it names."""

    relation: Relation
    placing: Placing

    @property
    def located(self) -> bool:
        """Whether the place is right."""
        return self.placing == "right"


# (index of the finding, index of the fault) -> how they relate
Pairs = dict[tuple[int, int], Pair]


def pair_up(
    findings: Sequence[Finding],
    faults: Sequence[Fault],
    topology: Topology,
    taxonomy: Tree,
) -> Pairs:
    """Relate every root finding to every fault whose cause, or an ancestor of it, it names."""
    tree = Lineage.of(taxonomy)
    pairs: Pairs = {}
    for j, fault in enumerate(faults):
        right, place = tree.relations(fault), None
        for i, finding in enumerate(findings):
            how = right.get(finding.cause)
            if how and finding.role == "root":
                place = place or _true_place(fault, topology)
                pairs[i, j] = Pair(how, _placing(finding, place, findings, faults, topology))
    return pairs


class TruePlace(NamedTuple):
    """Where a fault is, in the terms of the rule that judges it."""

    cause: str
    kind: Kind
    names: Names


def _true_place(fault: Fault, topology: Topology) -> TruePlace:
    kind = kind_of(fault.locus)
    return TruePlace(fault.cause, kind, named(fault.locus, kind, topology))


def _placing(
    finding: Finding,
    place: TruePlace,
    findings: Sequence[Finding],
    faults: Sequence[Fault],
    topology: Topology,
) -> Placing:
    """Judge a finding's place by itself, then united with the others of its cause."""
    if finding.locus is None:
        return "none"
    cause, kind, true = place
    own = named(finding.locus, kind, topology)
    if is_right(own, true, kind, topology):
        return "right"
    if not own & true:
        return "wrong"  # whatever it is united with
    named_all = _united_findings(finding.cause, findings, kind, topology)
    true_all = _united_faults(cause, faults, kind, topology)
    united = is_right(named_all, true_all, kind, topology)
    return "right" if united and covers_half(named_all, true) else "wrong"


def _united_findings(
    cause: str, findings: Sequence[Finding], kind: Kind, topology: Topology
) -> Names:
    same = (f.locus for f in findings if f.cause == cause and f.role == "root" and f.locus)
    return frozenset().union(*(named(locus, kind, topology) for locus in same))


def _united_faults(cause: str, faults: Sequence[Fault], kind: Kind, topology: Topology) -> Names:
    same = (f.locus for f in faults if f.cause == cause and kind_of(f.locus) == kind)
    return frozenset().union(*(named(locus, kind, topology) for locus in same))


@dataclass(frozen=True, order=True)
class Worth:
    """What an assignment is judged by, in this order."""

    located: int = 0
    causes: int = 0
    confidence: float = 0.0
    matches: int = 0


def assign(findings: Sequence[Finding], faults: Sequence[Fault], pairs: Pairs) -> dict[str, str]:
    """Match blamed causes one to one with true causes; returns blamed -> true.

    Findings of one cause are one claim, faults of one cause one target. The result maximises
    located faults, then faults whose cause is named, then summed confidence; among equals the
    first in alphabetical order wins, so the order of findings never matters. Exact search: an
    answer has at most five roots.
    """
    options: dict[str, set[str]] = {}
    for i, j in pairs:
        options.setdefault(findings[i].cause, set()).add(faults[j].cause)
    wanted = [cause for true in options.values() for cause in true]
    if len(wanted) == len(options) == len(set(wanted)):
        # Nearly always: each claim can be one cause only, and no other can.
        return {blamed: cause for blamed, (cause,) in options.items()}
    claims = [(blamed, sorted(true)) for blamed, true in sorted(options.items())]
    best: tuple[Worth, dict[str, str]] = (Worth(), {})
    for chosen in _assignments(claims):
        worth = _worth(chosen, findings, faults, pairs)
        if worth > best[0]:
            best = worth, chosen
    return best[1]


def _assignments(claims: list[tuple[str, list[str]]]) -> list[dict[str, str]]:
    """List every one-to-one choice, those that assign the first claims first."""
    if not claims:
        return [{}]
    (blamed, options), rest = claims[0], _assignments(claims[1:])
    taken = [
        {blamed: true, **other} for true in options for other in rest if true not in other.values()
    ]
    return taken + rest


def _worth(
    chosen: dict[str, str], findings: Sequence[Finding], faults: Sequence[Fault], pairs: Pairs
) -> Worth:
    """Count each fault once, by the best of the findings that are assigned to its cause."""
    used = {
        (i, j): pair
        for (i, j), pair in pairs.items()
        if chosen.get(findings[i].cause) == faults[j].cause
    }
    located = {j for (_, j), pair in used.items() if pair.located}
    causes = {j for (_, j), pair in used.items() if pair.relation == "cause"}
    # fsum is exact, so the order of the findings cannot decide a tie.
    confidence = math.fsum(findings[i].confidence for i in {i for i, _ in used})
    return Worth(len(located), len(causes), confidence, len(chosen))

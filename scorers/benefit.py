"""Net benefit: what finding faults is worth when a false finding costs w times as much.

After decision curves (Vickers and Elkin, 2006): whoever weighs a false finding w times a found
fault should act on findings with a confidence of at least w/(1+w), and on no other.
"""

from __future__ import annotations

from collections.abc import Sequence

from cases.schema import Finding
from scorers.inputs import Label
from scorers.lineage import Lineage
from scorers.settling import Judgement, settle

WEIGHTS = (0.5, 1, 2, 5)
COLUMNS = tuple(f"net_benefit_w{weight:g}" for weight in WEIGHTS)
# The least confidence that each weight acts on, w / (1 + w).
THRESHOLDS = tuple(weight / (1 + weight) for weight in WEIGHTS)


def benefits(
    label: Label, findings: Sequence[Finding], whole: Judgement, tree: Lineage
) -> list[float]:
    """Return the case's net benefit for each of WEIGHTS.

    `whole` is the judgement of all findings. They are judged anew without those that a
    weight drops, for the rest may stand differently without them.
    """
    confidences = [finding.confidence for finding in findings]
    values: list[float] = []
    kept, (found, misled) = range(len(findings)), _worth(whole)
    for weight, threshold in zip(WEIGHTS, THRESHOLDS, strict=True):
        surer = [i for i in kept if confidences[i] >= threshold]
        if len(surer) < len(kept):
            kept = surer
            found, misled = _worth_of(kept, label, findings, whole, tree)
        values.append(found - weight * misled)
    return values


def _worth(judgement: Judgement) -> tuple[float, bool]:
    """Return the share of faults found, 0 in a case without, and whether a finding is false."""
    faults = len(judgement.buckets)
    share = judgement.buckets.count("found") / faults if faults else 0.0
    return share, judgement.misled


def _worth_of(
    kept: Sequence[int],
    label: Label,
    findings: Sequence[Finding],
    whole: Judgement,
    tree: Lineage,
) -> tuple[float, bool]:
    """Return the worth of the findings that are kept, judged anew where that can differ."""
    related = whole.related.intersection(kept)
    if related and len(related) < len(whole.related):
        return _worth(settle([findings[i] for i in kept], label, tree))
    # What is related to a fault was kept as a whole or not at all: the rest stands as it did.
    found = _worth(whole)[0] if related else 0.0
    return found, any(whole.statuses[i] == "false" for i in kept)

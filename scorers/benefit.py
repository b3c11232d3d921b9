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
NAMES = tuple(f"w{weight:g}" for weight in WEIGHTS)
COLUMNS = tuple(
    f"{what}_{name}" for what in ("net_benefit", "acted_found", "acted_misled") for name in NAMES
)
# The least confidence that each weight acts on, w / (1 + w).
THRESHOLDS = tuple(weight / (1 + weight) for weight in WEIGHTS)


def benefits(
    label: Label, findings: Sequence[Finding], whole: Judgement, tree: Lineage
) -> list[float]:
    """Return the values of COLUMNS: for each of WEIGHTS net benefit, share found, and misled.

    `whole` is the judgement of all findings. They are judged anew without those that a
    weight drops, for the rest may stand differently without them.
    """
    confidences = [finding.confidence for finding in findings]
    shares: list[float] = []
    false: list[float] = []
    kept, (found, misled) = list(range(len(findings))), _worth(whole)
    for threshold in THRESHOLDS:
        surer = [i for i in kept if confidences[i] >= threshold]
        if len(surer) < len(kept):
            kept = surer
            found, misled = _worth_of(kept, label, findings, whole, tree)
        shares.append(found)
        false.append(float(misled))
    worth = [f - w * m for f, w, m in zip(shares, WEIGHTS, false, strict=True)]
    return [*worth, *shares, *false]


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

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
    surest_false, least, most = _reach(findings, whole)
    shares: list[float] = []
    false: list[float] = []
    kept, judgement = list(findings), whole
    for threshold in THRESHOLDS:
        if least < threshold <= most:
            surer = [finding for finding in kept if finding.confidence >= threshold]
            if len(surer) < len(kept):
                kept, judgement = surer, settle(surer, label, tree)
            found, misled = _share_found(judgement), judgement.misled
        else:
            # What names a fault was kept as a whole or not at all: the rest stands as it did.
            found = _share_found(whole) if threshold <= most else 0.0
            misled = surest_false >= threshold
        shares.append(found)
        false.append(float(misled))
    worth = [f - w * m for f, w, m in zip(shares, WEIGHTS, false, strict=True)]
    return [*worth, *shares, *false]


def _reach(findings: Sequence[Finding], whole: Judgement) -> tuple[float, float, float]:
    """Return the greatest confidence of a false finding, and the range of the related ones'."""
    surest_false, least, most = -1.0, 2.0, -1.0
    for i, finding in enumerate(findings):
        confidence = finding.confidence
        if confidence > surest_false and whole.statuses[i] == "false":
            surest_false = confidence
        if i in whole.related:
            least, most = min(least, confidence), max(most, confidence)
    return surest_false, least, most


def _share_found(judgement: Judgement) -> float:
    """Return the share of the case's faults that are found, 0 in a case without."""
    faults = len(judgement.buckets)
    return judgement.buckets.count("found") / faults if faults else 0.0

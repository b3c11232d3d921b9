"""Net benefit: what finding faults is worth when a false finding costs w times as much.

After decision curves (Vickers and Elkin, 2006): whoever weighs a false finding w times a found
fault should act on findings with a confidence of at least w/(1+w), and on no other.
"""

from __future__ import annotations

from collections.abc import Sequence

from cases.schema import Finding
from scorers.inputs import Label, Tree
from scorers.judging import Judgement, judge

WEIGHTS = (0.5, 1, 2, 5)


def benefits(
    label: Label, findings: Sequence[Finding], whole: Judgement, taxonomy: Tree
) -> dict[str, float]:
    """Return the case's net benefit for every weight: `net_benefit_w<weight>`.

    `whole` is the judgement of all findings. They are judged anew without those that a
    weight drops, for the rest may stand differently without them.
    """
    row: dict[str, float] = {}
    known = {len(findings): whole}
    for weight in WEIGHTS:
        kept = [f for f in findings if f.confidence >= weight / (1 + weight)]
        if len(kept) not in known:
            known[len(kept)] = judge(kept, label, taxonomy)
        row[f"net_benefit_w{weight:g}"] = net_benefit(weight, label, known[len(kept)])
    return row


def net_benefit(weight: float, label: Label, judgement: Judgement) -> float:
    """Return found/faults - weight if a finding is false; without faults only the latter."""
    found = sum(bucket == "found" for bucket in judgement.buckets)
    share = found / len(judgement.buckets) if label.verdict == "faulty" else 0.0
    return share - weight * judgement.misled

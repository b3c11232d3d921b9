"""On which cases of a suite a fault's witness must be false."""

from __future__ import annotations

from collections.abc import Mapping

from cases.taxonomy import Taxonomy
from cases.truth import Truth

BELOW_THRESHOLD = "below_threshold"  # what an injection is called as a decoy that costs too little


def rivals(truth: Truth, truths: Mapping[str, Truth], taxonomy: Taxonomy) -> list[str]:
    """Ids of the cases on which the witness of `truth` must not be true, its twin apart.

    These are the faulty cases whose causes are confused with its cause, and the decoys that
    look like it; cases whose causes it may be called by (`acceptable`) are none. Nor is a case
    in which its cause is at work as well and only costs too little: there the signals do show it,
    and another cause makes the case slow.
    """
    causes = {fault.cause for fault in truth.faults}
    allowed = causes.union(*(fault.acceptable for fault in truth.faults))
    confusable = {name for cause in causes for name in taxonomy.confusable(cause)} - allowed
    found = []
    for other_id, other in truths.items():
        there = {fault.cause for fault in other.faults}
        decoys = (d for d in other.decoys if other.verdict != "faulty" or d.name != BELOW_THRESHOLD)
        alike = {name for decoy in decoys for name in decoy.looks_like}
        rival = other.verdict == "faulty" and there & confusable and not there & allowed
        if rival or alike & causes:
            found.append(other_id)
    return sorted(found)

"""Whether a piece of evidence supports its finding: true here, and not where nothing is wrong."""

from __future__ import annotations

from cases.schema import Evidence

# The most that a claimed value may be off and still be true, whatever tolerance it claims.
MAX_TOLERANCE = 0.05


def is_true(claim: Evidence, found: float | None) -> bool:
    """Tell whether a query that gave `found` bears out what was claimed of it.

    `found` may be off by the lesser of the claim's tolerance and 5 % of the claimed value; a
    query that gives no number (None, or one that is not finite) bears out nothing.

    >>> claim = Evidence(sql="SELECT max(run_delay_ns) FROM processes", value=100.0, tolerance=0.2)
    >>> is_true(claim, 104.0), is_true(claim, 106.0), is_true(claim, None)
    (True, False, False)
    """
    if found is None:
        return False
    reach = min(claim.tolerance, MAX_TOLERANCE) * abs(claim.value)
    return abs(found - claim.value) <= reach


def is_supported(claim: Evidence, here: float | None, on_twin: float | None) -> bool:
    """Tell whether a claim is true here and not on the healthy twin.

    What is true of the healthy twin as well (a constant, the number of ranks) says nothing
    about a fault. A healthy case is its own twin: nothing supports a finding there.

    Args:
        claim: What is claimed.
        here: What the query gives on the case, None if no number.
        on_twin: What the same query gives on its healthy twin, None if no number.
    """
    return is_true(claim, here) and not is_true(claim, on_twin)

"""Whether confidence in the whole answer tells when to keep silent: AUGRC.

Area under the generalised risk-coverage curve (Traub et al., 2024): the share of all cases
that are answered and wrong, averaged over how many answers are kept, the surest first. 0 is
best; an answer that is always wrong has 1/2, one that is wrong at random half its error rate.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from scorers.intervals import LEVEL, Array, Codes, deleted_bounds, too_few
from scorers.metric import Metric
from scorers.rate_metrics import codes

RIGHT_BUCKETS = ("found", "quiet")
# With 6 and 12 groups that are alike within, a 95 % interval held the truth in 89 to 92 % of draws.
MIN_GROUPS = 20


def augrc(cases: pd.DataFrame, level: float = LEVEL) -> Metric:
    """Compute `augrc` over all cases; a case without an answer is kept last and never wrong.

    An answer is right if its case is found or quiet. Cases of equal confidence stand in the
    order that chance gives them.

    Args:
        cases: The table of cases, its column `group` categorical.
        level: Coverage of the interval.
    """
    if cases.empty:
        return Metric.undefined("augrc", "no case")
    answered = cases["answered"].to_numpy(bool)
    wrong = answered & ~cases["bucket"].isin(RIGHT_BUCKETS).to_numpy(bool)
    sureness = np.where(answered, cases["confidence"].to_numpy(np.float64), -1.0)
    groups = np.unique(codes(cases), return_inverse=True)[1]
    area, without = areas(np.unique(sureness, return_inverse=True)[1], wrong, groups)
    sizes = np.bincount(groups).astype(np.float64)
    # Three things come from the groups: who is wrong, who is surer, how the two go together.
    bounds = too_few(len(sizes), MIN_GROUPS) or deleted_bounds(
        area, without - area, sizes[:, None], level, spent=3
    ).within(0.0, 0.5)
    return Metric.bounded("augrc", area, bounds, len(cases), len(sizes))


def areas(ranks: Codes, wrong: npt.NDArray[np.bool_], groups: Codes) -> tuple[float, Array]:
    """Return the area over all cases, and without each group, shape (G,).

    The area is the share of pairs of which the first is wrong and the second less sure, those
    equally sure (each case with itself as well) counting half.

    Args:
        ranks: How sure each case is, as a number that only its order matters of, shape (n,).
        wrong: Whether it is answered and wrong, shape (n,).
        groups: Number of its group, 0 to G-1, shape (n,).
    """
    behind = _behind(ranks)
    total = float((wrong * behind).sum())
    # Ranks that groups have for themselves: no case of one group stands between another's.
    sizes = np.bincount(groups)
    own = _behind(groups * (int(ranks.max()) + 1) + ranks) - (np.cumsum(sizes) - sizes)[groups]
    lost = wrong * behind + _wrong_before(ranks, wrong) - wrong * own
    rest = (len(ranks) - sizes).astype(np.float64)
    left = total - np.bincount(groups, weights=lost)
    without = np.divide(left, rest**2, out=np.full(len(sizes), np.nan), where=rest > 0)
    return total / len(ranks) ** 2, without


def risk_coverage(cases: pd.DataFrame) -> pd.DataFrame:
    """Return the curve itself: coverage, and the share of all cases answered and wrong.

    A row for each confidence at which more answers are kept, from none to all of them.
    """
    answered = cases.loc[cases["answered"].to_numpy(bool)]
    kept = answered.assign(wrong=~answered["bucket"].isin(RIGHT_BUCKETS), n=1)
    steps = kept.groupby("confidence")[["n", "wrong"]].sum().sort_index(ascending=False)
    curve = steps.cumsum() / max(len(cases), 1)
    return pd.DataFrame(
        {
            "confidence": [np.nan, *curve.index],
            "coverage": [0.0, *curve["n"]],
            "generalised_risk": [0.0, *curve["wrong"]],
        }
    )


def _behind(ranks: Codes) -> Array:
    """Return for each case the number of cases less sure, equal ones and itself by half."""
    ordered = np.sort(ranks)
    less = np.searchsorted(ordered, ranks, side="left")
    upto = np.searchsorted(ordered, ranks, side="right")
    result: Array = (less + upto) / 2
    return result


def _wrong_before(ranks: Codes, wrong: npt.NDArray[np.bool_]) -> Array:
    """Return for each case the number of wrong cases that are surer, equal ones by half."""
    order = np.argsort(ranks, kind="stable")
    total = np.concatenate([[0.0], np.cumsum(wrong[order])])
    less = total[np.searchsorted(ranks[order], ranks, side="left")]
    upto = total[np.searchsorted(ranks[order], ranks, side="right")]
    result: Array = total[-1] - (less + upto) / 2
    return result

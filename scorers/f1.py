"""F1 from recall and precision, its bounds from theirs."""

from __future__ import annotations

from scorers.intervals import Bounds
from scorers.metric import Metric


def f1(name: str, precision: Metric, recall: Metric) -> Metric:
    """Return 2PR/(P+R), 0 where nothing is right.

    It grows with both, and both hang on the same answers: the bounds are those of an answer
    whose precision and recall are at their lower (upper) bounds together. An answer without a
    finding says nothing about its precision, which may then be anything.
    """
    if recall.value is None:
        return Metric.undefined(name, recall.note or "no faulty case")
    value = _mean(precision.value or 0.0, recall.value)
    return Metric.bounded(name, value, _bounds(precision, recall), recall.n, recall.groups)


def _bounds(precision: Metric, recall: Metric) -> Bounds:
    if recall.low is None or recall.high is None:
        return Bounds(None, None, recall.note)
    if precision.value is None:
        return Bounds(0.0, _mean(1.0, recall.high))
    if precision.low is None or precision.high is None:
        return Bounds(None, None, precision.note)
    return Bounds(_mean(precision.low, recall.low), _mean(precision.high, recall.high))


def _mean(precision: float, recall: float) -> float:
    total = precision + recall
    return 2 * precision * recall / total if total else 0.0

"""Limits on metrics."""

from __future__ import annotations

from dataclasses import dataclass

from harness.gate_family import Settled
from harness.gate_figures import Figures, Selection
from harness.policy import Part, Threshold
from harness.ruling import Ruling, Verdict, show
from scorers import Metric


@dataclass(frozen=True)
class Limit:
    """One threshold, held against one result.

    Attributes:
        threshold: What the policy says.
        split: The policy's split.
        figures: Metrics of the result.
    """

    threshold: Threshold
    split: Part
    figures: Figures

    @property
    def statistical(self) -> bool:
        """A limit on the estimate is kept or not; only one on a bound can err."""
        return self.threshold.by == "bound"

    @property
    def name(self) -> str:
        """The rule in one line."""
        rule = self.threshold
        sign = "<=" if rule.max is not None else ">="
        named = {"cause": rule.cause, "domain": rule.domain, "severity": rule.severity}
        named["split"] = rule.split if rule.split != self.split else None
        where = "".join(f", {key} {value}" for key, value in named.items() if value is not None)
        return f"{rule.metric} {sign} {rule.limit:g} ({rule.by}){where}"

    def broken(self, error: float) -> bool:
        """Whether the bound nearer to the limit is beyond it."""
        best = self._bounds(error)[0]
        return best is not None and best > self._limit

    def ruling(self, settled: Settled) -> Ruling:
        """Stop or pass what is shown to be beyond or within the limit."""
        if not self.statistical:
            return self._by_estimate()
        metric = self._metric(settled.alpha)
        best, worst = self._bounds(settled.error)[0], self._bounds(settled.alpha)[1]
        if metric.value is None or best is None or worst is None:
            absent = "no value" if metric.value is None else "no interval"
            return Ruling(
                self.name, "inconclusive", show(metric.value, None, None), metric.note or absent
            )
        verdict: Verdict = "inconclusive"
        if settled.stopped:
            verdict = "stop"
        elif worst <= self._limit:
            verdict = "pass"
        low, high = sorted((self._sign * best, self._sign * worst))
        return Ruling(
            self.name, verdict, show(metric.value, low, high), self._why(verdict, settled)
        )

    def _by_estimate(self) -> Ruling:
        value = self._metric(0.025).value
        if value is None:
            note = self._metric(0.025).note or "no value"
            return Ruling(self.name, "inconclusive", "none", note)
        kept = self._sign * value <= self._limit
        verdict: Verdict = "pass" if kept else "stop"
        why = "within the limit" if kept else "beyond the limit"
        return Ruling(self.name, verdict, show(value, None, None), why)

    def _why(self, verdict: Verdict, settled: Settled) -> str:
        if verdict == "stop":
            return f"beyond the limit (one-sided error {settled.error:.2%})"
        if verdict == "pass":
            return f"within the limit (one-sided error {settled.alpha:.2%})"
        return "the interval holds the limit"

    @property
    def _sign(self) -> int:
        """A floor is a ceiling on the negated metric."""
        return 1 if self.threshold.max is not None else -1

    @property
    def _limit(self) -> float:
        return self._sign * self.threshold.limit

    def _metric(self, error: float) -> Metric:
        selection = Selection.of(self.threshold, self.split)
        return self.figures.metric(self.threshold.metric, selection, 1 - 2 * error)

    def _bounds(self, error: float) -> tuple[float | None, float | None]:
        """Return the bounds, the better one first, both as of a metric that should be low."""
        metric = self._metric(error)
        if metric.low is None or metric.high is None:
            return None, None
        low, high = sorted((self._sign * metric.low, self._sign * metric.high))
        return low, high

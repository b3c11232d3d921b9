"""What each signal buys a diagnoser: it is withheld, and then left alone, in case and reference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from cases.tables import SIGNALS
from harness.degrade.asking import Asking, silence
from harness.degrade.copies import CaseCopy
from harness.degrade.effects import EFFECTS, by_cause
from scorers import Metric, Scores

Effects = dict[str, Metric]


@dataclass(frozen=True)
class Bought:
    """What one signal buys.

    Attributes:
        signal: A table, or `trace_events`.
        cases: Cases that have it.
        withheld: By how much all signals are better than all but this one, by EFFECTS.
        alone: By how much this one alone is better than nothing.
        causes: `withheld` of the recall of each cause.
        causes_alone: `alone` of the recall of each cause.
    """

    signal: str
    cases: int
    withheld: Effects
    alone: Effects
    causes: Effects
    causes_alone: Effects


@dataclass(frozen=True)
class Ablation:
    """All signals of a suite as one diagnoser uses them, those first that buy most.

    `with_all` is what it scores with all of them, which is EFFECTS against silence.
    """

    diagnoser: str
    suite: str
    suite_digest: str
    cases: int
    groups: int
    faults: dict[str, int]
    with_all: Effects
    causes_with_all: Effects
    signals: tuple[Bought, ...]
    ranked_by: str
    isolation: dict[str, Any]

    def document(self) -> dict[str, Any]:
        """Return it as a versioned JSON document."""
        return {"format": "evalharness.ablation/1.0", **asdict(self)}


def without(copy: CaseCopy, signals: Sequence[str]) -> CaseCopy:
    """Withhold signals from a case and from its reference run."""
    if not set(signals) & set(copy.present):
        return copy
    reference = copy.reference.without(signals) if copy.reference else None
    return copy.with_runs(copy.run.without(signals), reference)


def alone(copy: CaseCopy, signal: str) -> CaseCopy:
    """Withhold all signals but one."""
    return without(copy, [name for name in copy.present if name != signal])


def ablate(asking: Asking, signals: Sequence[str] = (), ranked_by: str = "recall") -> Ablation:
    """Withhold each signal, leave each alone, and see what becomes of the answers.

    Args:
        asking: The diagnoser and its cases.
        signals: Only these; all that any case has by default.
        ranked_by: One of EFFECTS; where two signals buy as much, what they buy alone decides.
    """
    recorded = {name for copy in asking.originals.values() for name in copy.present}
    chosen = [name for name in SIGNALS if name in recorded and (not signals or name in signals)]
    whole = asking.scores(asking.as_recorded)
    nothing = asking.scores({case_id: silence(case_id) for case_id in asking.case_ids})
    bought = [_bought(asking, signal, whole, nothing) for signal in chosen]
    suite = asking.labelled.suite.info
    return Ablation(
        diagnoser=asking.spec.name,
        suite=suite.name,
        suite_digest=suite.digest,
        cases=len(whole.cases),
        groups=int(whole.cases["group"].nunique()),
        faults={str(k): int(n) for k, n in whole.faults.groupby("cause").size().items()},
        with_all=_effects(whole, nothing),
        causes_with_all=by_cause(whole, nothing),
        signals=ranked(bought, ranked_by),
        ranked_by=ranked_by,
        isolation=asking.isolation([f"{how}-{s}" for s in chosen for how in ("without", "alone")]),
    )


def ranked(bought: Sequence[Bought], by: str) -> tuple[Bought, ...]:
    """Sort by what is lost without a signal, then by what it gives alone, the greatest first.

    Args:
        bought: One for each signal.
        by: One of EFFECTS.
    """

    def key(one: Bought) -> tuple[float, float]:
        return -(one.withheld[by].value or 0.0), -(one.alone[by].value or 0.0)

    return tuple(sorted(bought, key=key))


def _bought(asking: Asking, signal: str, whole: Scores, nothing: Scores) -> Bought:
    carry = [k for k, copy in asking.originals.items() if signal in copy.present]
    left = asking.about(f"without-{signal}", partial(without, signals=[signal])).responses
    only = asking.about(f"alone-{signal}", partial(alone, signal=signal)).responses
    lacking, single = asking.scores(left), asking.scores(only)
    return Bought(
        signal,
        len(carry),
        _effects(whole, lacking),
        _effects(single, nothing),
        by_cause(whole, lacking),
        by_cause(single, nothing),
    )


def _effects(first: Scores, second: Scores) -> Effects:
    return {name: effect(first, second) for name, effect in EFFECTS.items()}

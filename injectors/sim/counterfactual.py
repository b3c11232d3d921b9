"""Labels of simulated cases: what the same seeds cost with and without each injection.

The zones are those of the label rule for real runs (see injectors.label_rule), here on
r = T(all) / T(none) of the same seed. With one seed r is exact. Serving diverges once batches
differ, so there 20 seeds are run and the bounds are those of Student's t on their mean.

Of several injections, with T(S) the mean step of all seeds under the set S:

- one that makes the job slower beside all others, T(all) / T(all without it) passing the rule, is
  a fault of the label;
- if none does, but the job is slow, those that are enough alone form a redundancy group: any one
  of them is a right answer;
- all others are harmless beside the rest, and become decoys.

Each fault's cost is its Shapley value of v(S) = T(S) - T(none) over the label's faults, as a
fraction of T(all) (Shapley, 1953).

Labels are digested, so nothing here calls the mathematics library: sums are exact, quotients and
square roots are correctly rounded everywhere, and the quantiles are constants.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

from cases.schema import Fault, Interval
from cases.truth import Counterfactual, set_name
from injectors.label_rule import FAULTY_ABOVE, HEALTHY_BELOW

RULE: Literal["simulated: same seeds with and without"] = "simulated: same seeds with and without"
SEEDS = 20  # where one seed is not exact
# Student's t with 19 degrees of freedom: one-sided 95 % and 99 %, two-sided 95 %.
T_95, T_99, T_TWO_SIDED_95 = 1.729132812, 2.539483191, 2.093024054
DIGITS = 9

Seconds = Mapping[str, Sequence[float]]
Zone = Literal["faulty", "healthy", "grey"]


@dataclass(frozen=True)
class Compared:
    """A mean ratio of step times with the bounds that decide."""

    ratio: float
    low_99: float
    high_95: float

    @property
    def zone(self) -> Zone:
        """Where the rule puts it."""
        if self.low_99 > FAULTY_ABOVE:
            return "faulty"
        return "healthy" if self.high_95 < HEALTHY_BELOW else "grey"

    def __str__(self) -> str:
        return f"ratio {self.ratio:.4f} (99 % low {self.low_99:.4f}, 95 % high {self.high_95:.4f})"


def compare(treated: Sequence[float], baseline: Sequence[float]) -> Compared:
    """Compare step times of the same seeds; one seed, or exactly 20.

    >>> compare([1.2], [1.0]).zone
    'faulty'
    """
    if len(treated) != len(baseline) or len(treated) not in (1, SEEDS):
        raise ValueError(f"must have the same 1 or {SEEDS} seeds, got {len(treated)}")
    mean, error = _mean_and_error([a / b for a, b in zip(treated, baseline, strict=True)])
    bounds = (mean, mean - T_99 * error, mean + T_95 * error)
    return Compared(*(round(value, DIGITS) for value in bounds))


def _mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    n = len(values)
    mean = math.fsum(values) / n
    if n == 1:
        return mean, 0.0
    variance = math.fsum((value - mean) * (value - mean) for value in values) / (n - 1)
    return mean, math.sqrt(variance / n)


@dataclass(frozen=True)
class Outcome:
    """What a set of injections turned out to be.

    Attributes:
        joint: All injections against none.
        faults: Numbers of those that are labelled.
        redundant: Whether the labelled ones are a redundancy group.
        decoys: Numbers of those that cost too little.
    """

    joint: Compared
    faults: tuple[int, ...]
    redundant: bool
    decoys: tuple[int, ...]


def judge(seconds: Seconds, count: int) -> Outcome | str:
    """Decide `count` injections, or say with numbers why nothing can be said of them."""
    everything = tuple(range(count))
    joint = compare(seconds[set_name(everything)], seconds["none"])
    if joint.zone == "grey":
        return f"neither healthy nor faulty: {joint}"
    if joint.zone == "healthy":
        return Outcome(joint, (), False, everything)
    added = {i: _against(seconds, everything, {*everything} - {i}) for i in everything}
    needed = tuple(i for i in everything if added[i].zone == "faulty")
    enough = tuple(i for i in everything if _against(seconds, {i}, ()).zone == "faulty")
    faults, redundant = (needed, False) if needed else (enough, True)
    if not faults or (redundant and len(faults) < 2):
        return f"slow only together, and by more than one of them: {joint}"
    unclear = [i for i in everything if i not in faults and added[i].zone == "grey"]
    if unclear:
        words = "; ".join(f"injection {i} adds {added[i]}" for i in unclear)
        return f"neither fault nor harmless: {words}"
    return Outcome(joint, faults, redundant, tuple(i for i in everything if i not in faults))


def _against(seconds: Seconds, treated: Iterable[int], baseline: Iterable[int]) -> Compared:
    return compare(seconds[set_name(treated)], seconds[set_name(baseline)])


def costs(seconds: Seconds, count: int, faults: Sequence[int]) -> tuple[Interval, ...]:
    """Share the cost of `faults` among them, the other injections being there throughout.

    Returns:
        For each of `faults` the fraction of T(all) that it costs; with several seeds the interval
        is Student's t, two-sided 95 %, on the share of each seed.
    """
    rest = set(range(count)) - set(faults)
    shares = []
    for fault in faults:
        values = [
            _shapley({name: column[i] for name, column in seconds.items()}, fault, faults, rest)
            for i in range(len(seconds["none"]))
        ]
        mean, error = _mean_and_error(values)
        half = T_TWO_SIDED_95 * error
        value, low, high = (round(x, DIGITS) for x in (mean, mean - half, mean + half))
        shares.append(Interval(value=value, low=low, high=high))
    return tuple(shares)


def _shapley(
    seconds: Mapping[str, float], fault: int, faults: Sequence[int], rest: set[int]
) -> float:
    others = [other for other in faults if other != fault]
    total = 0.0
    for size in range(len(others) + 1):
        weight = math.factorial(size) * math.factorial(len(others) - size)
        for chosen in combinations(others, size):
            without = {*chosen, *rest}
            gained = seconds[set_name({*without, fault})] - seconds[set_name(without)]
            total += weight / math.factorial(len(faults)) * gained
    return total / seconds[set_name({*faults, *rest})]


def record(
    seeds: Sequence[int],
    injections: Sequence[str],
    seconds: Seconds,
    shipped_ratio: float,
    ablated: Seconds | None = None,
) -> Counterfactual:
    """Write down why a label holds; the injections must have been judged faulty or healthy."""
    found = judge(seconds, len(injections))
    if isinstance(found, str):
        raise ValueError(found)
    faulty = bool(found.faults)
    ratio = found.joint
    return Counterfactual(
        rule=RULE,
        seeds=tuple(seeds),
        injections=tuple(injections),
        seconds={name: tuple(values) for name, values in seconds.items()},
        threshold=FAULTY_ABOVE if faulty else HEALTHY_BELOW,
        ratio=Interval(value=ratio.ratio, low=ratio.low_99, high=ratio.high_95),
        shipped_ratio=round(shipped_ratio, DIGITS),
        decision="faulty" if faulty else "healthy",
        ablated={name: tuple(values) for name, values in (ablated or {}).items()},
    )


def problems(recorded: Counterfactual, faults: Sequence[Fault]) -> Iterator[str]:
    """Decide and cost a simulated label again from its step times; yields what does not hold."""
    found = judge(recorded.seconds, len(recorded.injections))
    if isinstance(found, str):
        yield found
        return
    decision = "faulty" if found.faults else "healthy"
    if decision != recorded.decision:
        yield f"the seeds say {decision} ({found.joint}), the label says {recorded.decision}"
    stated = (recorded.ratio.value, recorded.ratio.low, recorded.ratio.high)
    if stated != (found.joint.ratio, found.joint.low_99, found.joint.high_95):
        yield f"the seeds give {found.joint}, the label states {recorded.ratio}"
    named = tuple(recorded.injections[i] for i in found.faults)
    if named != tuple(fault.cause for fault in faults):
        yield f"the seeds make {list(named)} faults, the label names {[f.cause for f in faults]}"
        return
    again = costs(recorded.seconds, len(recorded.injections), found.faults)
    for fault, cost in zip(faults, again, strict=True):
        if fault.lost_fraction != cost:
            yield f"the seeds give {fault.cause} {cost}, the label states {fault.lost_fraction}"
        if bool(fault.redundancy_group) != found.redundant:
            yield f"{fault.cause} must be in a redundancy group if and only if none is needed"
    for cause, seconds in recorded.ablated.items():
        gain = compare(recorded.seconds["none"], seconds)
        if gain.zone != "healthy":
            yield f"the job may be faster without what {cause} costs: {gain}"

"""What else a leaderboard tells of a run: how it answered, what that took, what it knows best."""

from __future__ import annotations

from collections.abc import Callable

from harness.tracked import TrackedRun

FEW = 3  # causes that are named as best and worst
LEVELS = ("domain", "mechanism", "cause")
KNOWN, TRUSTED = 0.5, 0.5  # recall from which a cause is known; precision below which it is not

Column = Callable[[TrackedRun], str]


def _rate(metric: str) -> Column:
    def shown(run: TrackedRun) -> str:
        value = run.metrics.get(metric)
        return "" if value is None else f"{value:.2f}"

    return shown


def _amount(metric: str, digits: int = 3) -> Column:
    def shown(run: TrackedRun) -> str:
        value = run.metrics.get(metric)
        return "" if value is None else f"{value:,.{digits}g}" if value < 1000 else f"{value:,.0f}"

    return shown


def _megabytes(run: TrackedRun) -> str:
    value = run.metrics.get("timing/peak_memory_bytes_median")
    return "" if value is None else f"{value / 1e6:,.0f}"


def _tokens(run: TrackedRun) -> str:
    used = [run.metrics.get(f"cost/tokens/{kind}_tokens") for kind in ("prompt", "completion")]
    known = [value for value in used if value is not None]
    return f"{sum(known):,.0f}" if known else ""


# How cases were answered: rates of all cases, then two figures of those it says it can judge.
ANSWERS: dict[str, Column] = {
    "answered": _rate("coverage"),
    "abstained": _rate("abstention_rate"),
    "unsupported": _rate("unsupported_rate"),
    "failed": _rate("failed_rate"),
    "misled where supported": _rate("misled_rate_applicable"),
    "recall of causes where supported": _rate("recall_cause_applicable"),
    "isolation": lambda run: run.tags.get("isolation", ""),
    "s a case": _amount("timing/seconds_median"),
    "MB": _megabytes,
    "tokens": _tokens,
    "cost": _amount("cost/cost"),
}


def facts(run: TrackedRun) -> tuple[str, str]:
    """Say in two lines, from the run's figures alone, what a diagnoser does and what it knows."""
    found = run.metrics
    said, silent = found.get("coverage", 0.0), found.get("abstention_rate", 0.0)
    closed, failed = found.get("unsupported_rate", 0.0), found.get("failed_rate", 0.0)
    if closed >= 1.0:
        return "Supports none of these cases.", "They lack what it reads, or are of another kind."
    first = (
        f"Answers {said:.0%} of the cases, abstains on {silent:.0%}, does not support"
        f" {closed:.0%}, fails on {failed:.0%}."
    )
    best = _causes(run, "recall", lambda value: value >= KNOWN, reverse=True)
    worst = _causes(run, "precision", lambda value: value < TRUSTED, reverse=False)
    told = any(name.startswith("recall_of_") and "_of_other_" not in name for name in found)
    none = "finds no cause in half of its cases" if told else "no cause has cases enough to be told"
    knows = f"finds {best}" if best else none
    doubt = f"; mostly wrong where it says {worst}" if worst else ""
    second = f"{_depth(run)}{knows}{doubt}."
    return first, second[0].upper() + second[1:]


def _depth(run: TrackedRun) -> str:
    """Say how deep its answers are right: of which share of faults it names which level."""
    shares = {level: run.metrics.get(f"recall_{level}") for level in LEVELS}
    known = [f"{level} of {value:.0%}" for level, value in shares.items() if value is not None]
    return f"Right about the {', the '.join(known)} of faults; " if known else ""


def _causes(run: TrackedRun, metric: str, keep: Callable[[float], bool], *, reverse: bool) -> str:
    """Name the few causes with the highest or lowest values of a metric, with these."""
    head = f"{metric}_of_"
    values = {
        name.removeprefix(head): value
        for name, value in run.metrics.items()
        if name.startswith(head)
        and not name.startswith(f"{head}other_")
        and keep(value)
        and not name.endswith(("_low", "_high", "_applicable"))
    }
    ordered = sorted(
        values, key=lambda cause: (-values[cause] if reverse else values[cause], cause)
    )
    return ", ".join(f"{cause} ({metric} {values[cause]:.2f})" for cause in ordered[:FEW])

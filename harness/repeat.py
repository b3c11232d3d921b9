"""A suite recorded again, on another day or machine: which of its labels come out the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from cases.bundle import Suite
from cases.errors import BundleError
from cases.schema import Interval
from harness.aligned import aligned
from harness.judge import Stated, Truth, load_truths
from injectors.matrix import finished, journal_path

LEAST = 0.9


@dataclass(frozen=True)
class Repeated:
    """One shipped label beside what the same scenario gave again.

    Attributes:
        same: The verdict and causes are the same, and all intervals overlap.
        shipped: The label in words.
        again: The new label in words, or why there is none.
    """

    case_id: str
    group: str
    same: bool
    shipped: str
    again: str


def repeated(suite_folder: Path, again: Path, labels: Path | None = None) -> list[Repeated]:
    """Compare the labels of the scenarios that were recorded again, in the order of ids.

    Args:
        suite_folder: The shipped suite.
        again: What `record --out` was given; ids follow from the scenarios, so they agree.
        labels: Labels of the shipped suite, if they do not lie beside it.

    Raises:
        BundleError: No shipped case's scenario was recorded there.
    """
    name = Suite.open(suite_folder).info.name
    journal = journal_path(again, name)
    lines = {line.scenario: line for line in finished(journal).values()}
    made = any(line.made for line in lines.values())
    new = load_truths(again / "corpus" / name) if made else {}
    shipped = load_truths(suite_folder, labels)
    found = [
        _compare(truth, new.get(case_id), lines[truth.group].refused)
        for case_id, truth in shipped.items()
        if truth.group in lines
    ]
    if not found:
        raise BundleError(f"must list scenarios of the suite {name}", where=journal)
    return found


def share(found: Sequence[Repeated]) -> float:
    """Share of the labels that came out the same."""
    return sum(item.same for item in found) / len(found)


def repeat_text(found: Sequence[Repeated]) -> str:
    """Tell the share, and list what differs."""
    same = sum(item.same for item in found)
    told = (
        f"{same} of {len(found)} labels of {len({item.group for item in found})} groups were"
        f" accepted again with overlapping intervals ({share(found):.0%},"
        f" at least {LEAST:.0%} are asked for)"
    )
    rows = [(i.case_id, i.group, i.shipped, i.again) for i in found if not i.same]
    return f"{told}\n\n{aligned(['case', 'group', 'shipped', 'again'], rows)}" if rows else told


def _compare(shipped: Truth, again: Truth | None, refused: dict[str, str]) -> Repeated:
    if again is None:
        case = shipped.recipe.get("case", {})
        key = f"{shipped.group}/{case.get('arm')}/{case.get('withhold')}"
        told, same = refused.get(key, "not made: the scenario has changed"), False
    else:
        told = _words(again)
        same = _names(shipped) == _names(again) and all(
            _overlap(one, other)
            for one, other in zip(_intervals(shipped), _intervals(again), strict=True)
        )
    return Repeated(shipped.id, shipped.group, same, _words(shipped), told)


def _names(truth: Truth) -> tuple[str, ...]:
    return (truth.verdict, *(fault.cause for fault in truth.faults))


def _intervals(truth: Truth) -> list[Interval]:
    """What each fault costs; of a healthy job, its ratio to itself."""
    costs = [fault.lost_fraction for fault in truth.faults]
    return costs if costs or isinstance(truth.validation, Stated) else [truth.validation.ratio]


def _overlap(one: Interval, other: Interval) -> bool:
    return one.low <= other.high and other.low <= one.high


def _words(truth: Truth) -> str:
    return ", ".join(_parts(truth))


def _parts(truth: Truth) -> Iterator[str]:
    if not truth.faults and not isinstance(truth.validation, Stated):
        ratio = truth.validation.ratio
        yield f"healthy {ratio.value:.3f} [{ratio.low:.3f}, {ratio.high:.3f}]"
    for fault in truth.faults:
        lost = fault.lost_fraction
        yield f"{fault.cause} {lost.value:.2f} [{lost.low:.2f}, {lost.high:.2f}]"

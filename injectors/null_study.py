"""The A/A study: how often the label rule errs, measured on a job against itself.

Measured: in jobs that run on, `blocks` pairs of trials of the healthy job against the healthy
job, each pair in random order, are one null label; none shares a trial with another. Between
labels single steps are timed in adjacent pairs, as for a healthy twin.

Computed from that: a true ratio r is put in by multiplying the treated side of every measured
pair by r. The faulty rule is applied to the null labels as they are; the healthy rule, which
takes more pairs, to stretches of consecutive measured pairs that begin at random places and may
overlap. Multiplying assumes that whatever slows a job scales its noise with it.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import PositiveInt
from scipy import stats

from cases.documents import parse_json, parse_record
from cases.errors import ScenarioError
from cases.schema import Name, Record
from injectors.label_rule import decide_from

Floats = NDArray[np.float64]
# 0 false acceptances among 299 bound their rate at 1 % (95 % confidence): 0.99^299 < 0.05. Twice
# as many, so that labels joined by two are 299 as well.
LABELS = 2 * 299
ADJACENT_PAIRS = 6
STRETCHES = 1000
FAULTY_RATIOS = (1.0, 1.05, 1.1, 1.2)
HEALTHY_RATIOS = (1.0, 1.05, 1.1)
DECOY_PAIRS = 84
RECORD_BEGIN = b'{"format":"evalharness.'


class NullLabel(Record):
    """One line of the study: a label's pairs, then adjacent pairs; microseconds a step."""

    format: str = "evalharness.null_label/1.0"
    stratum: Name
    steps: PositiveInt
    baseline_us: tuple[PositiveInt, ...]
    treated_us: tuple[PositiveInt, ...]
    null_steps: PositiveInt
    null_pairs: PositiveInt
    adjacent_baseline_us: tuple[PositiveInt, ...]
    adjacent_treated_us: tuple[PositiveInt, ...]


@dataclass(frozen=True)
class Stratum:
    """The labels of one stratum; d = ln(treated / baseline).

    Attributes:
        d: Of the labels' pairs, shape (labels, pairs).
        adjacent: Of the adjacent pairs, in the order of measuring.
    """

    name: str
    steps: int
    step_us: float
    null_pairs: int
    d: Floats
    adjacent: Floats


def read_labels(path: Path) -> list[NullLabel]:
    """Read the study's file; none where it does not exist, a torn last line is left out."""
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    whole = [line for line in lines if line.endswith("\n")]
    return [
        parse_record(parse_json(line, where=f"{path}:{n}"), NullLabel, where=f"{path}:{n}")
        for n, line in enumerate(whole, start=1)
    ]


def cut_torn_line(path: Path) -> None:
    """Cut off a last line of a record that an interruption left without its end.

    Raises ScenarioError, and cuts nothing, where that line is no begin of a record: the file is
    then somebody else's.
    """
    if not path.exists():
        return
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    torn = content[whole:]
    if not RECORD_BEGIN.startswith(torn[: len(RECORD_BEGIN)]):
        raise ScenarioError("must be a file that this command wrote", where=path, found=torn[:40])
    os.truncate(path, whole)


def strata(labels: Iterable[NullLabel]) -> list[Stratum]:
    """Gather the labels by stratum, in order of appearance."""
    by_name: dict[str, list[NullLabel]] = {}
    for label in labels:
        by_name.setdefault(label.stratum, []).append(label)
    return [
        Stratum(
            name,
            own[0].steps,
            float(np.median([label.baseline_us for label in own])),
            own[0].null_pairs,
            np.log([np.divide(x.treated_us, x.baseline_us) for x in own]),
            np.concatenate(
                [np.log(np.divide(x.adjacent_treated_us, x.adjacent_baseline_us)) for x in own]
            ),
        )
        for name, own in by_name.items()
    ]


def called(d: Iterable[Floats], ratio: float, verdict: str) -> list[bool]:
    """Apply the rule to each label's pairs at a true ratio: is the verdict this one?"""
    return [decide_from(pairs + math.log(ratio)).verdict == verdict for pairs in d]


def stretches(d: Floats, pairs: int, seed: int = 0) -> list[Floats]:
    """Cut STRETCHES runs of consecutive pairs from random places; the end joins the beginning."""
    starts = np.random.default_rng(seed).integers(len(d), size=STRETCHES)
    return [np.take(d, np.arange(start, start + pairs), mode="wrap") for start in starts]


def upper_bound(errors: int, trials: int) -> float:
    """One-sided 95 % upper bound of a rate (Clopper and Pearson, 1934).

    >>> round(upper_bound(0, 299), 4)
    0.01
    """
    return float(stats.beta.ppf(0.95, errors + 1, trials - errors)) if errors < trials else 1.0


def joined(d: Floats, count: int) -> Floats:
    """Make one label of each `count` labels that follow each other, shape (labels, pairs).

    >>> joined(np.array([[1.0], [2.0], [3.0], [4.0], [5.0]]), 2).tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    labels = len(d) // count
    return d[: labels * count].reshape(labels, -1)


def faulty_table(found: Sequence[Stratum]) -> str:
    """How often the faulty rule accepts, by true ratio, as a Markdown table.

    A second row of each stratum joins labels by two: as many pairs as a shipped label has.
    """
    head = ["stratum", "null labels", "step", "sd of d", "accepted at ratio 1.00"]
    rows = [[*head, *(f"{ratio:.2f}" for ratio in FAULTY_RATIOS[1:])]]
    for s, d in [(one, pairs) for one in found for pairs in (one.d, joined(one.d, 2))]:
        wrong, *shares = (called(d, ratio, "faulty") for ratio in FAULTY_RATIOS)
        bound = upper_bound(sum(wrong), len(wrong))
        rows.append(
            [
                s.name,
                f"{len(d)} of {d.shape[1]} pairs of {s.steps} steps",
                f"{s.step_us / 1000:.1f} ms",
                f"{d.std(ddof=1):.3f}",
                f"{sum(wrong)} (at most {bound:.1%})",
                *(f"{np.mean(share):.1%}" for share in shares),
            ]
        )
    return _markdown(rows)


def healthy_table(found: Sequence[Stratum]) -> str:
    """How often the healthy rule accepts, by true ratio, as a Markdown table."""
    head = ["stratum", "rule for", "pairs", "sd of d", "accepted at ratio 1.00"]
    rows = [[*head, *(f"{ratio:.2f}" for ratio in HEALTHY_RATIOS[1:])]]
    for s in found:
        for what, d, pairs in (
            ("twins", s.adjacent, s.null_pairs),
            ("decoys", s.d.ravel(), DECOY_PAIRS),
        ):
            cut = stretches(d, pairs)
            shares = (np.mean(called(cut, ratio, "healthy")) for ratio in HEALTHY_RATIOS)
            spread = f"{d.std(ddof=1):.3f}"
            rows.append(
                [s.name, what, f"{pairs} of {len(d)}", spread, *(f"{x:.1%}" for x in shares)]
            )
    return _markdown(rows)


def _markdown(rows: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]])


def missing(names: Sequence[str], labels: Sequence[NullLabel], wanted: int) -> dict[str, int]:
    """Count how many labels of each stratum are still to be measured."""
    have = [label.stratum for label in labels]
    return {name: wanted - have.count(name) for name in names if have.count(name) < wanted}

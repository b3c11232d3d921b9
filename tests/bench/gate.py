"""How often the gate stops for nothing, and what it sees: `python -m tests.bench.gate`.

Two diagnosers are made up that answer groups of four cases (half faulty, 35 % healthy, 15 %
undecidable) and disagree on a given share of them. Whether they disagree on a case, whether they
are right where they agree, and who is right where they don't, each hang on the group: two cases
of a group share what decides with a chance of 0.3. Where nothing is wrong, it is as often the
one that is right as the other. Being right instead of wrong is worth 1 in each kind of case, so
that a drop of net benefit is one of the share that is answered rightly.

The policy has three rules: net benefit against the baseline (margin 0.02), and limits on
`misled_rate` and `recall_cause` that lie exactly where the diagnosers truly are, the worst case
of a limit that is kept.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pandas as pd
from scipy import stats

from cases.documents import parse_record
from cases.schema import JOB, Diagnosis, Fault, Finding, Interval, RankPlace, Topology
from cases.taxonomy import Taxonomy
from harness.gate import rulings
from harness.policy import Policy
from scorers import Label, Response, score
from scorers.intervals import Array, Codes
from scorers.tables import Tables

CAUSE, VERDICTS, MIX = "slow_link", ("faulty", "healthy", "undecidable"), (0.5, 0.35, 0.15)
GROUP, CORRELATION, RIGHT = 4, 0.3, 0.6
DISAGREE, SIZES, DROPS = (0.05, 0.15, 0.30), (60, 100, 200, 300, 500, 1000), (0.05, 0.10)
MARGIN, ALPHA, CONFIDENCE = 0.02, 0.05, 0.99


@dataclass(frozen=True)
class Pair:
    """Made-up outcomes of two diagnosers on the same cases."""

    result: Tables
    baseline: pd.DataFrame


def draw(cases: int, disagree: float, drop: float, rng: np.random.Generator) -> Pair:
    """Draw the outcomes of a result and a baseline that it truly falls short of by `drop`."""
    groups: Codes = np.repeat(np.arange(-(-cases // GROUP)), GROUP)[:cases]
    verdicts = rng.choice(len(VERDICTS), p=MIX, size=cases)
    agreed = _alike(groups, rng) < RIGHT
    differ = _alike(groups, rng) < disagree
    # The share of disagreements that the result wins, so that it loses `drop` on the whole.
    wins = _alike(groups, rng) < (1 - drop / disagree) / 2
    ours, theirs = np.where(differ, wins, agreed), np.where(differ, ~wins, agreed)
    return Pair(_tables(verdicts, ours, groups), _tables(verdicts, theirs, groups).cases)


def _alike(groups: Codes, rng: np.random.Generator) -> Array:
    """Return uniform numbers of which two of a group are the same with a chance of CORRELATION."""
    shared = rng.random(int(groups.max()) + 1)[groups]
    own = rng.random(len(groups))
    result: Array = np.where(rng.random(len(groups)) < CORRELATION**0.5, shared, own)
    return result


def policy(disagree: float = 0.0, *, limits: bool = True) -> Policy:
    """Return the policy for diagnosers that are right as often as `draw` without a drop says."""
    right = (1 - disagree) * RIGHT + disagree / 2
    thresholds = [
        {"metric": "misled_rate", "max": (1 - MIX[0]) * (1 - right)},
        {"metric": "recall_cause", "min": right},
    ]
    document = {
        "format": "evalharness.policy/1.1",
        "alpha": ALPHA,
        "thresholds": thresholds if limits else [],
        "baseline": {"margin": MARGIN},
    }
    return parse_record(document, Policy, where="bench")


def stops(cases: int, disagree: float, drop: float, runs: int, *, limits: bool = True) -> int:
    """Count how many of `runs` draws the gate stops."""
    rng = np.random.default_rng([cases, round(1000 * disagree), round(1000 * drop)])
    rules, count = policy(disagree, limits=limits), 0
    for _ in range(runs):
        pair = draw(cases, disagree, drop, rng)
        found = rulings(rules, pair.result, pair.baseline)
        count += any(ruling.verdict == "stop" for ruling in found)
    return count


def at_least(count: int, runs: int) -> float:
    """Return the lower bound of a rate (Clopper and Pearson, 1934), one-sided at CONFIDENCE."""
    return float(stats.beta.ppf(1 - CONFIDENCE, count, runs - count + 1)) if count else 0.0


@lru_cache(maxsize=1)
def _bank() -> Tables:
    """Return one case of each verdict answered wrongly (rows 0-2) and rightly (3-5)."""
    labels, responses = [], {}
    for right in (False, True):
        for verdict in VERDICTS:
            case_id = f"{'right' if right else 'wrong'}{VERDICTS.index(verdict)}"
            labels.append(_label(case_id, verdict))
            responses[case_id] = Response(case_id, "ok", _answer(verdict, right), 1.0)
    scores = score(labels, responses, Taxonomy.load())
    order = [label.case_id for label in labels]
    return Tables(
        scores.cases.set_index("case_id").loc[order].reset_index(), scores.faults, scores.findings
    )


def _label(case_id: str, verdict: str) -> Label:
    fault = Fault(cause=CAUSE, locus=JOB, lost_fraction=Interval(value=0.2, low=0.1, high=0.3))
    undecidable = verdict == "undecidable"
    return Label(
        case_id=case_id,
        group="g",
        split="dev",
        verdict=verdict,  # type: ignore[arg-type]
        faults=(fault,) if verdict == "faulty" else (),
        decoys=(),
        candidates=(CAUSE, "lossy_link") if undecidable else (),
        missing_signals=("network",) if undecidable else (),
        topology=Topology(ranks=(RankPlace(rank=0, host="host0"),)),
    )


def _answer(verdict: str, right: bool) -> Diagnosis:
    if verdict == "undecidable" and right:
        return Diagnosis(verdict="abstain", missing_signals=("network",))
    if (verdict == "faulty") == right:
        finding = Finding(cause=CAUSE, locus=JOB, confidence=0.9)
        return Diagnosis(verdict="faulty", findings=(finding,))
    return Diagnosis(verdict="healthy")


def _tables(verdicts: Codes, right: Array, groups: Codes) -> Tables:
    """Repeat the bank's rows: the case, its faults and its findings."""
    bank, kinds = _bank(), verdicts + len(VERDICTS) * right.astype(np.intp)
    names = np.array([f"case{number:05d}" for number in range(len(kinds))])
    own = {"case_id": names, "group": np.char.add("g", groups.astype(str))}
    cases = bank.cases.take(kinds).reset_index(drop=True).assign(**own)
    others = (_repeated(frame, cases, kinds) for frame in (bank.faults, bank.findings))
    return Tables(cases, *others)


def _repeated(frame: pd.DataFrame, cases: pd.DataFrame, kinds: Codes) -> pd.DataFrame:
    """Give each case the rows (one at most) that its kind has in a table of the bank."""
    row = {case_id: number for number, case_id in enumerate(frame["case_id"])}
    places = np.array([row.get(case_id, -1) for case_id in _bank().cases["case_id"]])[kinds]
    kept = cases.loc[places >= 0, ["case_id", "group"]].reset_index(drop=True)
    return frame.take(places[places >= 0]).reset_index(drop=True).assign(**dict(kept))


def main() -> None:
    """Print the two tables of docs/gate.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nulls", type=int, default=1000, help="draws without a drop")
    parser.add_argument("--drops", type=int, default=400, help="draws with one")
    parser.add_argument("--cases", type=int, nargs="*", default=SIZES)
    chosen = parser.parse_args()
    heads: dict[str, Callable[[float, int], str]] = {
        "| cases | " + " | ".join(f"disagree {d:.0%}" for d in DISAGREE) + " |": (
            lambda d, n: _rate(stops(n, d, 0.0, chosen.nulls), chosen.nulls)
        ),
    }
    for head, cell in heads.items():
        print(head, "|---" * (len(DISAGREE) + 1) + "|", sep="\n")
        for cases in chosen.cases:
            row = " | ".join(cell(d, cases) for d in DISAGREE)
            print(f"| {cases} | {row} |", flush=True)
    print("\n| cases | disagree | drop 5 points | drop 10 points |", "|---|---|---|---|", sep="\n")
    for cases in chosen.cases:
        for disagree in DISAGREE[1:]:
            found = (stops(cases, disagree, d, chosen.drops, limits=False) for d in DROPS)
            row = " | ".join(f"{count / chosen.drops:.2f}" for count in found)
            print(f"| {cases} | {disagree:.0%} | {row} |", flush=True)


def _rate(count: int, runs: int) -> str:
    return f"{count / runs:.3f} (at least {at_least(count, runs):.3f})"


if __name__ == "__main__":
    main()

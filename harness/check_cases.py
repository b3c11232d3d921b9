"""Checks that need a case's signals: places, windows, growth, what was withheld, and witnesses."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow.compute as pc

from cases.case import Case, Recording
from cases.errors import InputError
from cases.layout import REFERENCE
from cases.schema import Locus
from cases.tables import TABLES
from cases.witness import holds
from harness.checklist import Checklist
from harness.judge import Counterfactual, Stated, Truth, duration_ns
from harness.step_time import mean_step_ns

# Long recordings are shipped as means over stretches of steps, cut anew.
SHIPPED_TOLERANCE = 0.02


def check_case(checklist: Checklist, case: Case, truth: Truth) -> None:
    """Check one case's signals against its label."""
    loci = [fault.locus for fault in truth.faults] + [decoy.locus for decoy in truth.decoys]
    checklist.add("locus", truth.id, [p for locus in loci for p in _locus_problems(case, locus)])
    end = duration_ns(case)
    late = [w for f in truth.faults for w in f.windows if end is not None and w.end_ns > end]
    checklist.add("windows", truth.id, [f"{w} ends after the last step, {end} ns" for w in late])
    checklist.add("growth", truth.id, _growth_problems(case))
    if case.info.question == "audit" and truth.verdict == "healthy":
        problems = [] if looked_for_headroom(truth) else ["no headroom was looked for"]
        checklist.add("headroom", truth.id, problems)
    if truth.verdict == "undecidable":
        checklist.add("withheld", truth.id, _withheld_problems(case, truth))


def looked_for_headroom(truth: Truth) -> bool:
    """Whether something was taken away from a healthy job to see if it then is faster."""
    validation = truth.validation
    if isinstance(validation, Counterfactual):
        return bool(validation.ablated)
    return not isinstance(validation, Stated) and bool(validation.ablations)


def _locus_problems(case: Case, locus: Locus) -> Iterator[str]:
    topology = case.info.topology
    known: dict[str, set[object]] = {
        "ranks": {place.rank for place in topology.ranks},
        "hosts": {place.host for place in topology.ranks},
        "stages": {place.stage for place in topology.ranks},
        "gpus": {place.gpu for place in topology.ranks},
        "links": {link.name for link in topology.links},
    }
    for name, there in known.items():
        strangers = sorted(set(getattr(locus, name)) - there)
        if strangers:
            yield f"{name} {strangers} are not in the topology"


def _growth_problems(case: Case) -> Iterator[str]:
    runs: dict[str, Recording] = {"": case}
    if case.reference:
        runs[f"{REFERENCE}."] = case.reference
    for prefix, run in runs.items():
        for name in run.table_paths:
            for column in TABLES[name].growth:
                least = pc.min(run.arrow(name)[column]).as_py()
                if least is not None and least < 0:
                    yield f"{prefix}{name}.{column} is {least} at the least"


def _withheld_problems(case: Case, truth: Truth) -> Iterator[str]:
    """A missing signal is a table, or one column that holds nothing."""
    for signal in truth.missing_signals:
        table, _, column = signal.partition(".")
        if not case.has(table):
            continue
        values = case.trace_events if table == "trace_events" else getattr(case, table)
        if not column or values[column].notna().any():
            yield f"{signal} is there"
    if len(truth.candidates) < 2:
        yield f"at least two causes must remain, found {list(truth.candidates)}"


def shipped_problems(case: Case, twin: Case | None, truth: Truth) -> Iterator[str]:
    """Compare the shipped recording with its twin, or a healthy one with its reference run."""
    if isinstance(truth.validation, Stated):
        return
    baseline = case.reference if truth.validation.decision == "healthy" else twin
    mine, before = mean_step_ns(case), mean_step_ns(baseline) if baseline else None
    if mine and before:
        found, stated = mine / before, truth.validation.shipped_ratio
        if abs(found / stated - 1) > SHIPPED_TOLERANCE:
            yield f"the recordings give a ratio of {found:.3f}, the label states {stated:.3f}"


def witness_problems(case: Case, sql: str, expected: bool, promised: bool) -> Iterator[str]:
    """Say what is wrong with a witness on one case, where it must be `expected`.

    A query that can't be asked there is not true; it is a problem where the label promised
    an answer.
    """
    try:
        found = holds(case, sql)
    except InputError as error:
        if promised:
            yield str(error)
    else:
        if found != expected:
            yield f"the query is {str(found).lower()}"

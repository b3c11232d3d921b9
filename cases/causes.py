"""The records of `taxonomy.yaml`: causes, how to tell them apart, decoys and evidence gaps."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from cases.kineto.events import TRACE_EVENTS
from cases.schema import CauseName, Record
from cases.tables import TABLES, TRACE_SIGNAL

COLUMNS = {name: table.columns for name, table in {**TABLES, TRACE_SIGNAL: TRACE_EVENTS}.items()}
FACTS = ("config", "environment")


def check_signal(signal: str) -> str:
    """Return `signal` if it names a column, or a fact of the configuration or environment.

    Raises:
        ValueError: it is neither `table.column` nor `config.<key>` nor `environment.<key>`.

    >>> check_signal("loader.read_ns")
    'loader.read_ns'
    """
    table, _, name = signal.partition(".")
    known = bool(re.fullmatch(r"\w+", name)) if table in FACTS else name in COLUMNS.get(table, ())
    if not known:
        raise ValueError("must be a table.column, config.<key> or environment.<key>")
    return signal


Signal = Annotated[str, AfterValidator(check_signal)]
Sentence = Annotated[str, Field(min_length=10)]
Names = Annotated[tuple[CauseName, ...], Field(min_length=1)]
Signals = Annotated[tuple[Signal, ...], Field(min_length=1)]
Mark = Literal["paper", "abstract", "second_hand", "issue", "inference", "measured"]


class Source(Record):
    """Where a fact comes from and how far to trust it.

    `mark`: read in the paper, in its abstract only, in somebody's notes (second_hand), in an
    issue or pull request or project's page, own inference, or own measurement. `status` is for
    reports: confirmed by a fix, plausible, or open. `magnitude` is what this source measured.
    """

    work: str
    mark: Mark
    status: Literal["confirmed", "plausible", "open"] | None = None
    magnitude: str | None = None


Sources = Annotated[tuple[Source, ...], Field(min_length=1)]


class Confusion(Record):
    """Another cause with similar symptoms, and the sentence that tells the two apart.

    `subject` is the cause at which the sentence is written and of which it speaks first; the
    file leaves it out.
    """

    cause: CauseName
    discriminator: Sentence
    subject: CauseName | None = None


class Cause(Record):
    """A leaf: one mechanism that makes a job slow.

    `injectable_on` lists the machines on which it can be made to happen for real: with CPUs
    only, one GPU, several GPUs; empty means in the simulator only. `needs_root` tells that
    injecting it needs privileges there.
    """

    title: str
    mechanism: Sentence
    symptoms: Annotated[tuple[str, ...], Field(min_length=1)]
    decisive_signals: Signals
    confused_with: tuple[Confusion, ...] = ()
    sources: Sources
    injectable_on: tuple[Literal["cpu", "cuda", "multi_gpu"], ...]
    needs_root: bool = False


class Mechanism(Record):
    """An inner node below a domain: causes that act in a similar way."""

    title: str
    causes: Annotated[dict[CauseName, Cause], Field(min_length=1)]


class Domain(Record):
    """A node below the root: the part of the system that is to blame."""

    title: str
    mechanisms: Annotated[dict[CauseName, Mechanism], Field(min_length=1)]


class TieBreak(Record):
    """Which of several defensible causes is the right name, and the signals that decide."""

    causes: Annotated[tuple[CauseName, ...], Field(min_length=2)]
    rule: Sentence
    signals: Signals


class HarmlessSign(Record):
    """A decoy: what it looks like and why the job is healthy all the same."""

    looks_like: Names
    seems: Sentence
    healthy_because: Sentence
    sources: Sources


class EvidenceGap(Record):
    """What a recording lacks so that its candidates cannot be told apart."""

    withheld: Signals
    candidates: Annotated[tuple[CauseName, ...], Field(min_length=2)]
    why: Sentence
    sources: Sources


class TaxonomyFile(Record):
    """taxonomy.yaml as it is written."""

    format: str = "evalharness.taxonomy/1.0"
    version: Annotated[str, Field(pattern=r"^\d{4}\.\d{2}$")]
    domains: dict[CauseName, Domain]
    tie_breaks: tuple[TieBreak, ...] = ()
    decoys: dict[CauseName, HarmlessSign] = Field(default_factory=dict)
    insufficient: dict[CauseName, EvidenceGap] = Field(default_factory=dict)

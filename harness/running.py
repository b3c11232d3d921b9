"""One run from start to results folder: resume, run, record, judge."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import metadata
from pathlib import Path
from typing import Any

from cases.bundle import Suite
from cases.documents import canonical_json, read_json, write_json
from cases.errors import HarnessError
from cases.taxonomy import Taxonomy
from harness import judge
from harness.diagnosers import ORACLE
from harness.engine import Canary, Engine
from harness.floors import train_prior
from harness.llm.running import connected
from harness.oracle import right_answer
from harness.results import (
    ANSWERS,
    FAILED,
    RUN,
    Answer,
    answer_key,
    append_answer,
    latest,
    read_answers,
    run_key,
)
from harness.sandbox.digests import named_digest
from harness.sandbox.level import Level
from harness.sandbox.limits import Limits
from harness.sandbox.public_code import public_digest
from harness.sandbox.view import check_shown
from harness.sandbox.worker import Place
from harness.specs import DiagnoserSpec
from scorers import SCORING_VERSION, Label

# What can change an answer without a line of the diagnoser changing.
DISTRIBUTIONS = ("duckdb", "numpy", "pandas", "pyarrow", "pydantic", "scikit-learn", "scipy")
Progress = Callable[[Answer, bool], None]


@dataclass(frozen=True)
class RunOptions:
    """How a run is made.

    Attributes:
        out: Where results folders go.
        level, level_note: Isolation, and why it is not better.
        limits: What a case may cost.
        code: Folder with the public code.
        jobs: Cases at a time.
        seed: Of the order of cases and of drawing floors.
        network: Whether diagnosers may use the network; recorded, and never sealed.
        retry_failed: Ask again about cases that failed; recorded, and never ranked.
        labels: Folder of the labels, None for the one beside the corpus.
        hidden: Further folders that no diagnoser may reach: those that cases were copied from.
    """

    out: Path
    code: Path
    level: Level
    level_note: str = ""
    limits: Limits = field(default_factory=Limits)
    jobs: int = 1
    seed: int = 0
    network: bool = False
    retry_failed: bool = False
    labels: Path | None = None
    hidden: tuple[Path, ...] = ()


def versions() -> dict[str, str]:
    """Return the versions that a result depends on."""
    return {
        "evalharness": metadata.version("evalharness"),
        "python": platform.python_version(),
        **{name: metadata.version(name) for name in DISTRIBUTIONS},
    }


def results_folder(out: Path, suite: Suite, name: str) -> Path:
    """Return where a diagnoser's results on a suite lie."""
    return out / suite.info.name / name


def run_diagnoser(
    spec: DiagnoserSpec,
    suite: Suite,
    labels: Sequence[Label],
    options: RunOptions,
    progress: Progress = lambda answer, reused: None,
    folder: Path | None = None,
) -> Path:
    """Ask a diagnoser about every case of a suite that has no answer yet.

    Args:
        progress: Called for every answer, with whether it was there already.
        folder: Where its results go; by default where the options say.

    Returns:
        The results folder, with run.json and all answers; not yet judged.

    Raises:
        InputError: the diagnoser cannot be imported, or a case is broken.
        HarnessError: the harness failed; the run is invalid.
    """
    folder = folder or results_folder(options.out, suite, spec.name)
    folder.mkdir(parents=True, exist_ok=True)
    digest = code_digest(spec)
    common = _common(spec, digest, options)
    key = run_key(common)
    keys = {case: answer_key(key, content) for case, content in suite.info.cases.items()}
    earlier = _earlier(folder / RUN, key)
    known = latest(read_answers(folder / ANSWERS), keys)
    retried = [case for case, answer in known.items() if answer.outcome in FAILED]
    retried = retried if options.retry_failed else []
    kept = {case: answer for case, answer in known.items() if case not in retried}
    for answer in kept.values():
        progress(answer, True)

    todo = {case: keys[case] for case in keys if case not in kept}
    # Nothing to ask still leaves the isolation to be proven, unless it was for these answers.
    canary = Canary()
    if todo or earlier is None:
        settings = train_prior(labels, options.seed) if spec.settings else spec.task.settings
        task = replace(spec.task, settings=settings)
        with connected(spec.model, task, folder, suite) as model:

            def report(answer: Answer) -> None:
                model.check(answer)
                append_answer(folder / ANSWERS, answer)
                progress(answer, False)

            engine = Engine(suite, Taxonomy.load(), _place(folder, suite, options, spec), report)
            engine.run(model.task, todo, options.seed, options.jobs)
        canary = engine.canary
    document = {
        "format": "evalharness.run/1.0",
        "diagnoser": spec.name,
        "spec": spec.text,
        "key": key,
        "digests": {"suite": suite.info.digest, "code": digest, "taxonomy": Taxonomy.load().digest},
        "limits": options.limits.document(),
        "isolation": _isolation(options, canary, earlier if kept else None),
        "seed": options.seed,
        "jobs": options.jobs,
        "retried": sorted({*retried, *((earlier or {}).get("retried", []))}),
        "scoring_version": SCORING_VERSION,
        "versions": versions(),
    }
    if spec.model:
        document["model"] = spec.model.decisive()
    write_json(folder / RUN, document)
    return folder


def run_oracle(suite: Suite, labels: Sequence[Label], out: Path) -> Path:
    """Write the results folder of the oracle, which answers from the labels."""
    folder = results_folder(out, suite, ORACLE)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ANSWERS).unlink(missing_ok=True)
    key = run_key({"spec": ORACLE, "suite": suite.info.digest})
    for label in labels:
        answer_of = answer_key(key, suite.info.cases[label.case_id])
        diagnosis = right_answer(label)
        answer = Answer(case=label.case_id, key=answer_of, outcome="ok", diagnosis=diagnosis)
        append_answer(folder / ANSWERS, answer)
    document = {
        "format": "evalharness.run/1.0",
        "diagnoser": ORACLE,
        "spec": ORACLE,
        "key": key,
        "digests": {"suite": suite.info.digest, "code": public_digest()},
        "isolation": {"level": ORACLE, "sealed": False, "note": "it answers from the labels"},
        "scoring_version": SCORING_VERSION,
        "versions": versions(),
    }
    write_json(folder / RUN, document)
    return folder


def code_digest(spec: DiagnoserSpec) -> str:
    """Digest of all code that an answer depends on: the diagnoser's, ours, and libraries'."""
    return named_digest(canonical_json([spec.digest, public_digest(), versions()]))


def _common(spec: DiagnoserSpec, digest: str, options: RunOptions) -> dict[str, Any]:
    return {
        "spec": spec.text,
        "code": digest,
        "limits": options.limits.document(),
        "isolation": options.level,
        "network": options.network,
        "seed": options.seed,
    }


def _earlier(path: Path, key: str) -> dict[str, Any] | None:
    """Return the last run.json if it belongs to the same key."""
    document = read_json(path) if path.is_file() else None
    return document if isinstance(document, dict) and document.get("key") == key else None


def _place(folder: Path, suite: Suite, options: RunOptions, spec: DiagnoserSpec) -> Place:
    """Say what must stay out of reach, and see that the diagnoser's own files are not in it."""
    secrets = {
        "labels": [judge.labels_folder(suite.folder, options.labels)],
        "other cases": [suite.folder, *options.hidden],
        "earlier results": [options.out.resolve()],
    }
    check_shown(spec.task.shown, [path for paths in secrets.values() for path in paths])
    return Place(options.level, options.limits, options.code, secrets, options.network)


def _isolation(
    options: RunOptions, canary: Canary, earlier: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Put together what all canaries of all parts of a run said."""
    before: Mapping[str, Any] = earlier["isolation"] if earlier else {}
    workers = canary.workers + before.get("canaries", 0)
    reached = canary.reached | set(before.get("reached", ()))
    if not workers:
        raise HarnessError("the isolation must be proven, but no canary was sent")
    return {
        "level": options.level,
        "sealed": options.level == "bwrap" and not reached,
        "canaries": workers,
        "reached": sorted(reached),
        "network": options.network,
        "note": options.level_note,
    }

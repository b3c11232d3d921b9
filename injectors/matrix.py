"""Records scenarios one after the other, resumably, into one suite."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from cases.bundle import write_suite_info
from cases.case import Case
from cases.documents import parse_json, read_record, write_record
from cases.errors import EvalHarnessError, ScenarioError
from cases.schema import Record
from cases.taxonomy import Taxonomy
from cases.truth import Truth
from cases.witness import holds
from injectors.build import Places, build
from injectors.capabilities import Capability, cpp_compiler, network_shaping
from injectors.public import this_environment
from injectors.recorder.session import ENVIRONMENT, NETWORK_ENVIRONMENT
from injectors.scenario import Scenario

SESSION_LIMIT_S = 1800
Progress = Callable[[str, int, int], None]
CAPABILITIES: dict[str, Callable[[], Capability]] = {
    "network_shaping": network_shaping,
    "compiler": cpp_compiler,
}


class JournalLine(Record):
    """One finished scenario: what was made of it, what was refused and why."""

    format: str = "evalharness.journal/1.0"
    scenario: str
    digest: str
    made: tuple[str, ...]
    refused: dict[str, str] = {}


def places(out: Path, suite: str) -> Places:
    """Return the folders of a suite below `out`."""
    return Places(out / "corpus" / suite, out / "labels" / suite)


def journal_path(out: Path, suite: str) -> Path:
    """Return the file that lists finished scenarios, refusals included."""
    return out / "labels" / f"{suite}.journal.jsonl"


def finished(journal: Path) -> dict[str, JournalLine]:
    """Read the journal by scenario digest; a torn last line is ignored."""
    if not journal.exists():
        return {}
    found = {}
    lines = journal.read_text(encoding="utf-8").splitlines(keepends=True)
    for number, line in enumerate(lines):
        if not line.endswith("\n"):
            continue
        entry = JournalLine.model_validate(parse_json(line, where=f"{journal}:{number + 1}"))
        found[entry.digest] = entry
    return found


def check_here(scenario: Scenario) -> None:
    """Raise ScenarioError when this machine cannot inject what the scenario asks for."""
    needs = {need for arm in scenario.arms.values() for need in arm.injection().needs}
    if scenario.parameters.get("compiled"):
        needs.add("compiler")
    for need in sorted(needs):
        capability = CAPABILITIES[need]()
        if not capability.ok:
            raise ScenarioError(
                f"needs {need}, which does not work here ({capability.reason})",
                where=scenario.name,
            )


def record_one(scenario: Scenario, target: Places, progress: Progress) -> JournalLine:
    """Record one scenario, build its cases and return what became of them."""
    check_here(scenario)
    scratch = Path(tempfile.mkdtemp(prefix="evalharness-"))
    try:
        networked = scenario.ranks > 1 and network_shaping().ok
        run_session(scenario, scratch, networked, progress)
        variables = {**ENVIRONMENT, **(NETWORK_ENVIRONMENT if networked else {})}
        environment, devices = this_environment(scenario.cores, variables)
        outcome = build(scenario, scratch, environment, devices, target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return JournalLine(
        scenario=scenario.name,
        digest=scenario.digest,
        made=tuple(outcome.made),
        refused=outcome.refused,
    )


def run_session(scenario: Scenario, scratch: Path, networked: bool, progress: Progress) -> None:
    """Run the session process; its last words become the error when it fails."""
    description = scratch / "scenario.json"
    write_record(description, scenario)
    command = [sys.executable, "-m", "injectors.recorder.session", str(description), str(scratch)]
    command.append("network" if networked else "shared")
    if networked:
        own = (
            ["unshare", "--net"]
            if os.geteuid() == 0
            else ["unshare", "--user", "--map-root-user", "--net"]
        )
        command = [*own, *command]
    errors = scratch / "errors.txt"
    with (
        errors.open("w") as stderr,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=stderr, text=True, env=session_environment()
        ) as process,
    ):
        try:
            assert process.stdout is not None
            for line in process.stdout:
                if line.startswith("{"):
                    report: dict[str, Any] = json.loads(line)
                    progress(report["phase"], report["done"], report["of"])
            status = process.wait(SESSION_LIMIT_S)
        finally:
            process.kill()
    if status:
        words = errors.read_text(errors="replace").strip().splitlines()
        raise ScenarioError(
            f"the recording session must end well (exit status {status}:"
            f" {words[-1] if words else 'no message'})",
            where=scenario.name,
        )


def session_environment() -> dict[str, str]:
    """Return the environment of the session; compiled code is kept between sessions."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "evalharness"
    root = Path(__file__).resolve().parents[1]
    return {
        **os.environ,
        **ENVIRONMENT,
        "TORCHINDUCTOR_CACHE_DIR": str(cache / "inductor"),
        "PYTHONPATH": os.pathsep.join(filter(None, [str(root), os.environ.get("PYTHONPATH")])),
    }


def record_all(
    scenarios: Sequence[Scenario],
    out: Path,
    suite: str,
    title: str,
    begin: Callable[[Scenario, bool], Progress],
) -> list[JournalLine]:
    """Record every scenario that the journal does not list yet, then finish the suite.

    `begin(scenario, known)` is called once a scenario and returns its progress callback.
    """
    target = places(out, suite)
    journal = journal_path(out, suite)
    known = finished(journal)
    lines = []
    for scenario in scenarios:
        progress = begin(scenario, scenario.digest in known)
        if scenario.digest not in known:
            line = record_one(scenario, target, progress)
            journal.parent.mkdir(parents=True, exist_ok=True)
            with journal.open("a", encoding="utf-8") as file:
                file.write(line.model_dump_json() + "\n")
            known[scenario.digest] = line
        lines.append(known[scenario.digest])
    if any(line.made for line in lines):
        finish(target, suite, title)
    return lines


def finish(target: Places, suite: str, title: str) -> None:
    """Fill in on which confusable cases each witness is false, then write suite.json."""
    taxonomy = Taxonomy.load()
    cases = {
        path.stem: Case.open(target.cases / path.stem) for path in target.labels.glob("*.json")
    }
    truths = {name: read_record(target.labels / f"{name}.json", Truth) for name in cases}
    for name, truth in truths.items():
        if truth.witness is None:
            continue
        confusable = set(taxonomy.confusable(truth.faults[0].cause))
        others = [
            other
            for other, there in truths.items()
            if there.verdict == "faulty" and there.faults[0].cause in confusable
        ]
        false_on = sorted(other for other in others if is_false(cases[other], truth.witness.sql))
        twins = [truth.twin] if truth.twin else []
        witness = truth.witness.model_copy(update={"false_on": (*twins, *false_on)})
        write_record(target.labels / f"{name}.json", truth.model_copy(update={"witness": witness}))
    write_suite_info(target.cases, suite, title, "public", taxonomy, target.labels)


def is_false(case: Case, sql: str) -> bool:
    """Whether a witness is not true on a case; a query that can't be asked there proves nothing."""
    try:
        return not holds(case, sql)
    except EvalHarnessError:
        return False

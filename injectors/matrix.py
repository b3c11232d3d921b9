"""Records scenarios one after the other, resumably, into one suite."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cases.bundle import write_suite_info
from cases.case import Case
from cases.documents import parse_json, read_record, write_record
from cases.errors import EvalHarnessError, HarnessError, ScenarioError
from cases.schema import Record
from cases.taxonomy import Taxonomy
from cases.truth import Truth
from cases.witness import holds
from injectors.build import Places, build
from injectors.capabilities import (
    Capability,
    cores,
    cpp_compiler,
    cpu_quota,
    cuda,
    nccl,
    network_shaping,
    nvml,
    packet_loss,
    simulator,
)
from injectors.leftovers import Say, clean_machine, clean_suite, scratch_folder, sole_recorder
from injectors.null_study import LABELS, NullLabel, cut_torn_line, missing, read_labels
from injectors.public import this_environment
from injectors.recorder.session import ENVIRONMENT, NETWORK_ENVIRONMENT
from injectors.rivals import rivals
from injectors.scenario import Scenario

SESSION_LIMIT_S = 1800
LEAST_ROOM_BYTES = 2**20
Progress = Callable[[str, int, int], None]
CAPABILITIES: dict[str, Callable[[], Capability]] = {
    "network_shaping": network_shaping,
    "compiler": cpp_compiler,
    "cpu_quota": cpu_quota,
    "cuda": cuda,
    "nccl": nccl,
    "nvml": nvml,
    "packet_loss": packet_loss,
    "several_gpus": lambda: cuda(2),
    "simulator": simulator,
    "two_cores": lambda: cores(2),
}


class JournalLine(Record):
    """One finished scenario: what was made of it, what was refused and why.

    `digests` are those of the cases that were made, where they are known.
    """

    format: str = "evalharness.journal/1.0"
    scenario: str
    digest: str
    made: tuple[str, ...]
    refused: dict[str, str] = {}
    digests: dict[str, str] = {}


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
    check_runs_for_real(scenario)
    needs = scenario.needs()
    for changes in ({}, *(ablation.workload for ablation in scenario.ablations().values())):
        parameters = {**scenario.parameters, **changes}
        if parameters.get("compiled") or parameters.get("compile_blocks") == "inductor":
            needs.add("compiler")
    for need in sorted(needs):
        capability = CAPABILITIES[need]()
        if not capability.ok:
            raise ScenarioError(
                f"needs {need}, which does not work here ({capability.reason})",
                where=scenario.name,
            )


def check_runs_for_real(scenario: Scenario) -> None:
    """Raise ScenarioError for a workload that exists only in the simulator."""
    if scenario.simulated_only:
        raise ScenarioError(
            "must be a workload that runs for real (this one is for --backend sim)",
            where=scenario.name,
            field="workload",
            found=scenario.workload,
        )


def own_network(scenario: Scenario) -> bool:
    """Tell whether ranks get interfaces that can be shaped; NCCL's own transports rule that out."""
    return scenario.ranks > 1 and "nccl" not in scenario.needs() and network_shaping().ok


def record_one(scenario: Scenario, target: Places, progress: Progress) -> JournalLine:
    """Record one scenario, build its cases and return what became of them."""
    check_here(scenario)
    with scratch_folder() as scratch:
        networked = own_network(scenario)
        run_session(scenario, scratch, networked, progress)
        variables = {**ENVIRONMENT, **(NETWORK_ENVIRONMENT if networked else {})}
        environment, devices = this_environment(scenario.cores, variables)
        outcome = build(scenario, scratch, environment, devices, target)
    return JournalLine(
        scenario=scenario.name,
        digest=scenario.digest,
        made=tuple(outcome.made),
        refused=outcome.refused,
    )


def measure_nulls(
    scenarios: Sequence[Scenario],
    out: Path,
    begin: Callable[[Scenario, bool], Progress],
    wanted: int = LABELS,
) -> list[NullLabel]:
    """Time each scenario's healthy job against itself until `out` has `wanted` labels of each."""
    cut_torn_line(out)
    todo = missing([scenario.name for scenario in scenarios], read_labels(out), wanted)
    out.parent.mkdir(parents=True, exist_ok=True)
    for scenario in scenarios:
        count = todo.get(scenario.name, 0)
        progress = begin(scenario, not count)
        if not count:
            continue
        check_runs_for_real(scenario)
        with scratch_folder() as scratch:
            networked = own_network(scenario)
            own = (str(out.resolve()), str(wanted - count), str(count))
            run_session(scenario, scratch, networked, progress, "null_session", own)
    return read_labels(out)


def run_session(
    scenario: Scenario,
    scratch: Path,
    networked: bool,
    progress: Progress,
    module: str = "session",
    arguments: Sequence[str] = (),
) -> None:
    """Run the session process; its last words become the error when it fails."""
    description = scratch / "scenario.json"
    write_record(description, scenario)
    place = [str(description), str(scratch), "network" if networked else "shared"]
    command = [sys.executable, "-m", f"injectors.recorder.{module}", *place, *arguments]
    if networked:
        own = (
            ["unshare", "--net"]
            if os.geteuid() == 0
            else ["unshare", "--user", "--map-root-user", "--net"]
        )
        command = [*own, *command]
    with (
        # In memory: the last words must be heard when the disk is full.
        os.fdopen(os.memfd_create("errors"), "r+", errors="replace") as errors,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, env=session_environment()
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
        errors.seek(0)
        words = errors.read().strip().splitlines()
    if status:
        if shutil.disk_usage(scratch).free < LEAST_ROOM_BYTES:  # whatever it complained about
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
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
    say: Say = lambda sentence: None,
) -> list[JournalLine]:
    """Record every scenario that the journal does not list yet, then finish the suite.

    Args:
        scenarios: What to record.
        out: Folder of `corpus` and `labels`.
        suite: The suite's name.
        title: What suite.json calls it.
        begin: Called once a scenario, with whether it is known; returns its progress callback.
        say: Told in a sentence what killed recorders had left and was taken away.

    Raises:
        HarnessError: There is no room for what is written.
    """
    target = places(out, suite)
    journal = journal_path(out, suite)
    with sole_recorder(target.cases), enough_room(out):
        clean_machine(say)
        clean_suite(target.cases, target.labels, say)
        cut_torn_line(journal)
        known = finished(journal)
        lines = []
        for scenario in scenarios:
            progress = begin(scenario, scenario.digest in known)
            if scenario.digest not in known:
                known[scenario.digest] = record_one(scenario, target, progress)
                note(journal, known[scenario.digest])
            lines.append(known[scenario.digest])
        if any(line.made for line in lines):
            finish(target, suite, title)
    return lines


def note(journal: Path, line: JournalLine) -> None:
    """Add a line to the journal, whole or not at all."""
    journal.parent.mkdir(parents=True, exist_ok=True)
    try:
        with journal.open("a", encoding="utf-8") as file:
            file.write(line.model_dump_json() + "\n")
    except OSError:
        cut_torn_line(journal)
        raise


@contextmanager
def enough_room(out: Path) -> Iterator[None]:
    """Turn a full disk into an error that says where room is needed."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        needed = f"{out} and {tempfile.gettempdir()} must have room for what is recorded"
        raise HarnessError(f"{needed} ({error.strerror})") from None


def finish(target: Places, suite: str, title: str) -> None:
    """Fill in on which rival cases each witness is false, then write suite.json."""
    taxonomy = Taxonomy.load()
    cases = {
        path.stem: Case.open(target.cases / path.stem) for path in target.labels.glob("*.json")
    }
    truths = {name: read_record(target.labels / f"{name}.json", Truth) for name in cases}
    for name, truth in truths.items():
        if truth.witness is None:
            continue
        others = rivals(truth, truths, taxonomy)
        false_on = [other for other in others if is_false(cases[other], truth.witness.sql)]
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

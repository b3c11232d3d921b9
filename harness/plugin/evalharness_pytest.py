"""pytest plugin: the cases of a suite as test items, red or green by a diagnoser's answers.

    pytest --evalharness-suite recorded_cpu --evalharness-diagnoser mydiag.py:diagnose

A module of its own, installed at the top level, that imports nothing of ours: the project under
test may own a folder called `cases` or `harness`, and would get it mixed up with our packages. All
work is done by the command `evalharness ask`, in a process of its own.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PACKAGES = ("cases", "harness", "injectors", "scorers")
START = "from harness.cli import main; main()"
SPLITS = ("dev", "train", "public_test", "all")
OPTIONS = ("--evalharness-suite", "--evalharness-diagnoser")
CHOSEN, LOG = "chosen.txt", "log.txt"
NAME, END_S = "evalharness: ", 10.0


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the plugin's options."""
    group = parser.getgroup("evalharness", "cases of an evalharness suite as tests")
    group.addoption("--evalharness-suite", metavar="SUITE", help="Name or folder of a suite.")
    group.addoption("--evalharness-diagnoser", metavar="SPEC", help="As `evalharness run -d`.")
    group.addoption(
        "--evalharness-split",
        choices=SPLITS,
        default="dev",
        help="Which cases are tests [default: dev; the test split is for the last word].",
    )
    group.addoption("--evalharness-labels", metavar="DIR", help="Labels beside no corpus.")
    group.addoption(
        "--evalharness-option",
        action="append",
        default=[],
        metavar="OPTION",
        help="Handed to `evalharness ask`, such as --timeout=5; may be given again.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Refuse half of the options."""
    given = [config.getoption(name) is not None for name in OPTIONS]
    if any(given) and not all(given):
        raise pytest.UsageError(f"{OPTIONS[0]} and {OPTIONS[1]} must be given together")


def pytest_report_header(config: pytest.Config) -> str | None:
    """Say what is asked, and that the test split is looked at where it is."""
    if config.getoption(OPTIONS[0]) is None:
        return None
    split = config.getoption("--evalharness-split")
    looked = " (looking at the public test split)" if split in ("public_test", "all") else ""
    suite, diagnoser = (config.getoption(name) for name in OPTIONS)
    return f"evalharness: {diagnoser} on {suite}, split {split}{looked}"


@pytest.hookimpl(tryfirst=True)  # before -k and -m choose among the items
def pytest_collection_modifyitems(
    session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Add an item for each case."""
    suite = config.getoption(OPTIONS[0])
    if suite is None:
        return
    asking = config.stash[ASKING] = Asking(config, session)
    node = SuiteNode.from_parent(session, name=Path(suite).name, nodeid=Path(suite).name)
    for line in asking.cases():
        name = "-".join([line["id"], *(line["causes"] or [line["verdict"]])])
        item: CaseItem = CaseItem.from_parent(node, name=name, asking=asking, line=line)
        items.append(item)


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the command where pytest ended first."""
    asking = config.stash.get(ASKING, None)
    if asking is not None:
        asking.close()


class Asking:
    """The command that is run: once for the list of cases, once for all answers.

    Args:
        config: Holds the options.
        session: Its items that are cases are asked about, those that -k left over.
    """

    def __init__(self, config: pytest.Config, session: pytest.Session) -> None:
        self._config, self._session = config, session
        self._answers: dict[str, dict[str, Any]] = {}
        self._process: subprocess.Popen[str] | None = None

    def cases(self) -> list[dict[str, Any]]:
        """Return what the suite's labels say of each case of the split.

        Raises:
            pytest.UsageError: there is no such suite.
        """
        options = ["--json", "--labels", *self._suite("--labels-folder")]
        listing = command("cases", "list", *options)
        done = subprocess.run(listing, capture_output=True, **self._place())
        if done.returncode:
            raise pytest.UsageError(last_said(done.stderr))
        split = self._config.getoption("--evalharness-split")
        found = json.loads(done.stdout)["cases"]
        return [line for line in found if split in ("all", line["split"])]

    def answer(self, case_id: str) -> dict[str, Any]:
        """Wait for the answer to one case; the first call asks about all.

        Raises:
            EvalharnessError: the command ended without it.
        """
        folder = self._folder()
        if self._process is None:
            self._process = self._ask(folder)
        assert self._process.stdout is not None
        while case_id not in self._answers:
            line = self._process.stdout.readline()
            if not line:
                status = self._process.wait()
                said = last_said((folder / LOG).read_text()) or f"exit status {status}"
                raise EvalharnessError(f"no answer to {case_id}: {said}")
            told = json.loads(line)
            self._answers[told["case"]] = told
        return self._answers[case_id]

    def close(self) -> None:
        """End the command, if pytest ends before it does."""
        if self._process is None or self._process.stdout is None:
            return
        self._process.send_signal(signal.SIGINT)  # it then ends what it started
        try:
            self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def _ask(self, folder: Path) -> subprocess.Popen[str]:
        chosen = [item.line["id"] for item in self._session.items if isinstance(item, CaseItem)]
        (folder / CHOSEN).write_text("\n".join(chosen))
        options = [
            "--json",
            *("-d", str(self._config.getoption(OPTIONS[1]))),
            *("--out", str(folder), "--cases-from", str(folder / CHOSEN)),
            *self._suite("--labels"),
            *self._config.getoption("--evalharness-option"),
        ]
        with (folder / LOG).open("w") as log:
            return subprocess.Popen(
                command("ask", *options), stdout=subprocess.PIPE, stderr=log, **self._place()
            )

    def _place(self) -> dict[str, Any]:
        """Return where and how the command runs: tests may have changed the working folder."""
        return {
            "text": True,
            "env": environment(),
            "cwd": self._config.invocation_params.dir,
        }

    def _suite(self, labels_option: str) -> list[str]:
        labels = self._config.getoption("--evalharness-labels")
        suite = ["--suite", str(self._config.getoption(OPTIONS[0]))]
        return [*suite, labels_option, str(labels)] if labels else suite

    def _folder(self) -> Path:
        """Where answers are kept from one session to the next."""
        cache = getattr(self._config, "cache", None)
        if cache is None:
            raise EvalharnessError("answers are kept in pytest's cache, which must not be off")
        return Path(cache.mkdir("evalharness"))


ASKING = pytest.StashKey[Asking]()


class EvalharnessError(Exception):
    """The command failed; holds the last of what it said."""


class WrongAnswerError(Exception):
    """The answer leaves something to wish; holds what `evalharness ask` said of it."""

    def __init__(self, told: dict[str, Any]) -> None:
        super().__init__(told["text"])


class SuiteNode(pytest.Collector):
    """The suite, which cases are items of."""

    def collect(self) -> list[pytest.Item]:
        """Return nothing: items are added when all others are known."""
        return []


class CaseItem(pytest.Item):
    """One case: green if its answer leaves nothing to wish, skipped if it is unsupported."""

    def __init__(self, *, asking: Asking, line: dict[str, Any], **rest: Any) -> None:
        super().__init__(**rest)
        self._asking, self.line = asking, line

    def runtest(self) -> None:
        """Hold the answer against the label."""
        told = self._asking.answer(self.line["id"])
        if told["outcome"] == "unsupported":
            pytest.skip(str(told["error"]))
        if not told["right"]:
            raise WrongAnswerError(told)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Show what was true and what was blamed rather than our own code."""
        if isinstance(excinfo.value, WrongAnswerError | EvalharnessError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[str, None, str]:
        """Name the suite and the case."""
        return self.nodeid.partition("::")[0], None, self.name


def command(*arguments: str) -> list[str]:
    """Return the command line that runs `evalharness` of this very installation."""
    return [sys.executable, "-P", "-c", START, *arguments]


def environment() -> dict[str, str]:
    """Return the environment without folders that would hide our packages from the command."""
    entries = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    kept = [entry for entry in entries if entry and not _hides(Path(entry))]
    rest = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return rest | ({"PYTHONPATH": os.pathsep.join(kept)} if kept else {})


def _hides(folder: Path) -> bool:
    """Whether a folder holds something with the name of one of our packages, but isn't ours."""
    own = all((folder / name / "__init__.py").is_file() for name in PACKAGES)
    return not own and any(
        (folder / name).is_dir() or (folder / f"{name}.py").is_file() for name in PACKAGES
    )


def last_said(text: str) -> str:
    """Return the last thing that the command said in its own name, and what it said about it."""
    lines = text.strip().splitlines()
    own = [number for number, line in enumerate(lines) if line.startswith(NAME)]
    said = "\n".join(lines[own[-1] :]) if own else "".join(lines[-1:])
    return said.removeprefix(NAME)

"""Environments of tools of others: made once, pinned and checked, beside the suites in the cache.

<cache>/evalharness/environments/<tool>-<key>/            a virtual environment
<cache>/evalharness/environments/<tool>-<key>/ready.json  its stamp, written last
<cache>/evalharness/environments/<tool>-<key>.lock        held by whoever makes it

The key covers the tool's requirements with their hashes and the Python that runs it, so that
neither can change under an environment that exists.
"""

from __future__ import annotations

import fcntl
import platform
import re
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path

from cases.bundle import cache_folder
from cases.documents import canonical_json, read_json, write_json
from cases.errors import InputError
from harness.diagnosers.third_party import TOOLS, Tool
from harness.sandbox.digests import file_digest, named_digest

STAMP = "ready.json"
PINNED = re.compile(r"^([A-Za-z0-9][\w.-]*)==", re.MULTILINE)
# pip takes nothing that is not in the file with its hash, builds nothing, and resolves nothing.
INSTALL = (
    *("install", "--disable-pip-version-check", "--no-input", "--no-deps"),
    *("--require-hashes", "--only-binary", ":all:", "--retries", "1", "--timeout", "20"),
)
UNREACHABLE = ("connection", "timed out", "name resolution", "network is unreachable")
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Environment:
    """Where a tool's environment is, or would be.

    Attributes:
        name: The tool's name in the table.
        tool: The tool.
        key: Digest of what makes it what it is.
        folder: The virtual environment.
    """

    name: str
    tool: Tool
    key: str
    folder: Path

    @property
    def python(self) -> Path:
        """The tool's interpreter."""
        return self.folder / "bin" / "python"

    @property
    def ready(self) -> bool:
        """Whether it was finished: only the stamp, which is written last, says so."""
        stamp = self.folder / STAMP
        if not stamp.is_file() or not self.python.exists():
            return False
        document = read_json(stamp)
        return isinstance(document, dict) and document.get("key") == self.key


def environment_of(name: str) -> Environment:
    """Return the environment of a tool, there or not.

    Raises:
        InputError: there is no such tool; lists those there are.
    """
    if name not in TOOLS:
        raise InputError(f"must be one of {', '.join(TOOLS)}", where="diagnoser", found=name)
    tool = TOOLS[name]
    made_of = [file_digest(tool.lock), sys.version, platform.machine(), sys.base_prefix]
    key = named_digest(canonical_json(made_of))
    short = key.removeprefix("sha256:")[:16]
    return Environment(name, tool, key, cache_folder() / "environments" / f"{name}-{short}")


def required(name: str) -> Environment:
    """Return the environment of a tool, which must have been made.

    Raises:
        InputError: it has not; says how to make it.
    """
    environment = environment_of(name)
    if not environment.ready:
        must = f"must be installed first (evalharness diagnosers install {name})"
        raise InputError(must, where="-d", found=f"{name}, whose environment is not there")
    return environment


def install(name: str, progress: Progress = lambda doing, done, of: None) -> Environment:
    """Make a tool's environment unless it is there; two at once make it once.

    Args:
        name: The tool.
        progress: Called with what is being done, and how many of how many packages are.

    Raises:
        InputError: the package index cannot be reached, or has not what is pinned.
    """
    environment = environment_of(name)
    with _alone(environment.folder.with_name(f"{environment.folder.name}.lock")):
        if not environment.ready:
            shutil.rmtree(environment.folder, ignore_errors=True)
            _make(environment, progress)
    return environment


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)
        yield


def _make(environment: Environment, progress: Progress) -> None:
    packages = len(PINNED.findall(environment.tool.lock.read_text()))
    progress("making the environment", 0, packages)
    pip_here = any(distributions(name="pip"))  # find_spec lets setuptools meddle with distutils
    venv.create(environment.folder, with_pip=not pip_here)
    command = [*_pip(environment, pip_here), *INSTALL, "--requirement", str(environment.tool.lock)]
    said: list[str] = []
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as pip:
        assert pip.stdout
        fetched = 0
        for line in pip.stdout:
            said.append(line)
            fetched += line.startswith(("Collecting ", "Ignoring "))
            progress(line.strip()[:60], min(fetched, packages), packages)
    if pip.returncode:
        raise InputError(_why(said), where=f"environment of {environment.name}")
    progress("trying it", packages, packages)
    _try(environment)
    _stamp(environment)
    progress("installed", packages, packages)


def _pip(environment: Environment, pip_here: bool) -> list[str]:
    """Return pip for an environment: our own, for one more copy takes longer than a small tool."""
    python = str(environment.python)
    if pip_here:
        return [sys.executable, "-m", "pip", "--python", python]
    return [python, "-m", "pip"]


def _try(environment: Environment) -> None:
    """Import the tool once: a package may install and lack what it needs of the machine."""
    module = environment.tool.imports
    command = [str(environment.python), "-P", "-s", "-W", "ignore", "-c", f"import {module}"]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    if done.returncode:
        last = " ".join(done.stderr.strip().splitlines()[-1:])[:400]
        where = f"environment of {environment.name}"
        raise InputError(f"must be able to import {module}", where=where, found=last)


def _stamp(environment: Environment) -> None:
    document = {
        "format": "evalharness.environment/1.0",
        "tool": environment.name,
        "key": environment.key,
        "lock": file_digest(environment.tool.lock),
        "python": platform.python_version(),
    }
    write_json(environment.folder / STAMP, document)


def _why(said: list[str]) -> str:
    """Say what pip could not do, and first of all whether it is only offline."""
    errors = [line.strip() for line in said if line.startswith("ERROR")] or said[-1:]
    last = " ".join(errors[-2:])[:400]
    if any(sign in line.lower() for line in said for sign in UNREACHABLE):
        return f"must be installable, but the package index can't be reached from here ({last})"
    return f"must be installable, but pip failed ({last})"

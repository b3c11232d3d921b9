"""What recorders that were killed have left behind, and taking it away.

Processes, namespaces, interfaces and their traffic shaping end with a recorder, however it
ends. Its control groups, its scratch folder and a case that was being written do not: they are
made so that they can be recognised, and every recorder begins with taking them away.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from cases.documents import read_json
from cases.errors import ScenarioError
from injectors import cgroups
from injectors.ownership import is_abandoned, own_name

Say = Callable[[str], None]
BESIDE = re.compile(r"\.[a-z0-9]{4,40}(\.json)?\.[a-z0-9_]{8}")


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Make a folder for one session, whose name tells its maker; it is gone at every exit."""
    with tempfile.TemporaryDirectory(prefix=own_name(""), ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@contextmanager
def sole_recorder(cases: Path) -> Iterator[None]:
    """Let no other recorder write to the same suite; the kernel forgets the claim of the dead.

    Raises:
        ScenarioError: Another recorder is at work there.
    """
    cases.mkdir(parents=True, exist_ok=True)
    folder = os.open(cases, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise ScenarioError("must not be recorded to by two at once", where=cases) from None
    finally:
        os.close(folder)


def clean_machine(say: Say) -> None:
    """Remove control groups and scratch folders whose makers have died, and say so."""
    for group in cgroups.remove_abandoned():
        say(f"removed control group {group}, left by a recorder that was killed")
    for folder in Path(tempfile.gettempdir()).glob(own_name("*", maker="*")):
        if is_abandoned(folder.name) and folder.stat().st_uid == os.geteuid():
            shutil.rmtree(folder, ignore_errors=True)
            say(f"removed scratch folder {folder}, left by a recorder that was killed")


def clean_suite(cases: Path, labels: Path, say: Say) -> None:
    """Remove what no finished suite has: half-written files, a case or a label alone."""
    for path in [*_hidden(cases), *_hidden(labels), *_single(cases, labels)]:
        _remove(path)
        say(f"removed {path}, left half-written by a recorder that was killed")


def _hidden(folder: Path) -> list[Path]:
    """Files are written under a hidden name beside their place and then renamed."""
    return sorted(path for path in folder.glob(".*") if BESIDE.fullmatch(path.name))


def _single(cases: Path, labels: Path) -> list[Path]:
    """Cases without their label and labels without their case, those of suite.json apart."""
    index = cases / "suite.json"
    listed = set(read_json(index)["cases"]) if index.exists() else set()
    there = {path.name: path for path in cases.glob("[!.]*") if path.is_dir()}
    named = {path.stem: path for path in labels.glob("[!.]*.json")}
    alone = (there.keys() ^ named.keys()) - listed
    return [(there | named)[name] for name in sorted(alone)]


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()

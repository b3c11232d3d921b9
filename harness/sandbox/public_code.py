"""The part of our own code that a diagnoser's process may see, as a folder of copies.

A copy leaves labels, injectors, scorers and the judging module out whether the project is
installed as a wheel or works from a checkout.
"""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Iterator
from pathlib import Path

import cases
import harness
from cases.documents import canonical_json
from harness.sandbox.digests import file_digest, named_digest

CASES, HARNESS = Path(cases.__file__).parent, Path(harness.__file__).parent
PRIVATE = {"truth.py"}
DATA_FOLDERS = {"corpus", "labels", "__pycache__"}
HARNESS_PARTS = ("__init__.py", "child", "diagnosers")


def public_code_files() -> Iterator[tuple[Path, Path]]:
    """Yield (file, place relative to the import root), in a fixed order."""
    roots = [CASES, *(HARNESS / part for part in HARNESS_PARTS)]
    for root in roots:
        base = CASES.parent if root == CASES else HARNESS.parent
        yield from ((path, path.relative_to(base)) for path in _code_below(root))


def _code_below(path: Path) -> Iterator[Path]:
    """Yield the file itself, or all files of a folder; cases and labels are not even listed."""
    if path.is_file():
        if path.name not in PRIVATE:
            yield path
    elif path.name not in DATA_FOLDERS:
        for inner in sorted(path.iterdir()):
            yield from _code_below(inner)


def copy_public_code(folder: Path) -> None:
    """Copy the public code, with its compiled files so that no process compiles it again."""
    for path, place in public_code_files():
        target = folder / place
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, target)
        compiled = Path(importlib.util.cache_from_source(str(path)))
        if path.suffix == ".py" and compiled.is_file():
            (target.parent / compiled.parent.name).mkdir(exist_ok=True)
            shutil.copy2(compiled, target.parent / compiled.parent.name)


def public_digest() -> str:
    """Digest of the public code's names and content."""
    listed = {place.as_posix(): file_digest(path) for path, place in public_code_files()}
    return named_digest(canonical_json(listed))

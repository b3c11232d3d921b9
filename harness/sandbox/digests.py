"""Digests of code: what must be the same for an old answer to be good still."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from cases.documents import canonical_json
from cases.errors import InputError

SKIPPED = {"__pycache__", ".git", ".venv", "node_modules"}


def named_digest(content: bytes) -> str:
    """Return `sha256:<64 hex digits>` of `content`."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def file_digest(path: Path) -> str:
    """Digest of one file's bytes."""
    with path.open("rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"


def tree_digest(paths: Iterable[Path]) -> str:
    """Digest of files and folders: names below each path, and content.

    Caches and version control are left out. The paths themselves are not covered, so that
    the same code elsewhere is the same code.

    Raises:
        InputError: a file cannot be read.
    """
    listed = [[name, file_digest(file)] for path in paths for name, file in sorted(_files(path))]
    return named_digest(canonical_json(listed))


def _files(path: Path) -> Iterator[tuple[str, Path]]:
    if path.is_file():
        yield path.name, path
        return
    if not path.is_dir():
        raise InputError("must be a file or folder", where=path)
    for file in path.rglob("*"):
        inner = file.relative_to(path)
        if file.is_file() and not SKIPPED & set(inner.parts):
            yield inner.as_posix(), file

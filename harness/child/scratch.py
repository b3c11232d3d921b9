"""Wiping what a case wrote, so that the next one finds nothing."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


def wipe(folder: Path) -> None:
    """Empty `folder` and give back its own mode, times and attributes.

    A diagnoser may have locked directories; this process has the same user, so it may unlock
    them. Raises OSError when something stays.
    """
    folder.chmod(0o700)
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            _unlock(path)
            shutil.rmtree(path)
        else:
            path.unlink()
    for name in _attributes(folder):
        os.removexattr(folder, name)
    os.utime(folder, (0, 0))


def _unlock(folder: Path) -> None:
    folder.chmod(0o700)
    for entry in os.scandir(folder):
        if entry.is_dir(follow_symlinks=False):
            _unlock(Path(entry.path))


def _attributes(folder: Path) -> list[str]:
    try:
        return [name for name in os.listxattr(folder) if name.startswith("user.")]
    except OSError:  # the file system keeps none
        return []

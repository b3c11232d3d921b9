"""Where tracked results are kept when nothing else is asked for, and a lock around it."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from urllib.parse import urlsplit

LOCK_LIMIT_S = 60.0
_POLL_S = 0.05


def data_folder() -> Path:
    """Return the user's data folder for evalharness; it need not exist yet."""
    base = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(base).expanduser().absolute() / "evalharness"


def store_uri() -> str:
    """Return MLFLOW_TRACKING_URI, else the sqlite store in the user's data folder."""
    return os.environ.get("MLFLOW_TRACKING_URI") or f"sqlite:///{data_folder() / 'mlflow.db'}"


def artifact_location(uri: str, suite: str) -> str | None:
    """Return where artifacts go: beside the default store, else the store's own choice."""
    default = data_folder() / "mlflow.db"
    if sqlite_path(uri) != default:
        return None
    return (default.parent / "artifacts" / suite).absolute().as_uri()


def sqlite_path(uri: str) -> Path | None:
    """Return the database file of a sqlite address, None for any other.

    >>> sqlite_path("sqlite:////tmp/a.db"), sqlite_path("http://127.0.0.1:5000")
    (PosixPath('/tmp/a.db'), None)
    """
    scheme, separator, path = uri.partition(":///")
    if not separator or scheme.split("+")[0] != "sqlite" or not path:
        return None
    return Path(path.partition("?")[0])


def guard(uri: str) -> AbstractContextManager[None]:
    """Let one process at a time into a sqlite store; servers guard themselves.

    MLflow creates and migrates the tables on first use without a lock of its own, so that
    of several first users at once most fail.
    """
    path = sqlite_path(uri)
    return nullcontext() if path is None else locked(path.with_name(path.name + ".lock"))


@contextmanager
def locked(path: Path, limit_s: float = LOCK_LIMIT_S) -> Iterator[None]:
    """Hold an exclusive lock on the file `path`; the system frees it when the process ends.

    Raises:
        TimeoutError: another process held the lock for `limit_s` seconds.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + limit_s
    with path.open("a") as file:
        while not _try_lock(file.fileno()):
            if time.monotonic() >= deadline:
                raise TimeoutError(f"{path} was still locked after {limit_s:g} s")
            time.sleep(_POLL_S)
        yield


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def public_uri(uri: str) -> str:
    """Return `uri` without user name and password, fit for messages.

    >>> public_uri("https://me:secret@host:5000/a")
    'https://host:5000/a'
    """
    host = urlsplit(uri).netloc
    return uri.replace(host, host.rpartition("@")[2], 1) if "@" in host else uri

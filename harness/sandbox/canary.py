"""What the canary is sent to reach, and what its report says of the isolation."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cases.errors import HarnessError
from harness.child.canary import start_time


@contextmanager
def probe(secrets: Mapping[str, Sequence[Path]]) -> Iterator[dict[str, Any]]:
    """Yield the attempts: files and folders by name, the harness itself, and the network.

    A listener of our own waits on the loopback interface meanwhile, so that failing to
    connect means isolation and not a closed port.
    """
    files = {name: [str(path) for path in paths] for name, paths in secrets.items()}
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield {
            "files": files,
            "processes": {"harness": [os.getpid(), start_time(os.getpid())]},
            "listener": list(listener.getsockname()),
        }


def reached(reply: Mapping[str, Any]) -> list[str]:
    """Return the names of what the canary got at, sorted.

    Raises:
        HarnessError: it did not report, so nothing is proven.
    """
    report = reply.get("reached")
    if not isinstance(report, dict):
        raise HarnessError(f"the canary must report, found {reply.get('error')!r}")
    return sorted(name for name, through in report.items() if through)

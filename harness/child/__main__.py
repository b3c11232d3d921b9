"""Entry point: `python -P -m harness.child SCRATCH_BYTES [--warden] SCRATCH [WRITABLE...]`.

Requests come on standard input, replies go to standard output. With `--warden` a process
stands between the harness and the zygote that inherits what outlives it; inside a process
namespace nothing can.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from harness.child import process
from harness.child.zygote import Zygote


def main(arguments: list[str]) -> None:
    """Serve until the harness hangs up."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the harness decides what an interrupt ends
    process.die_with_parent()
    process.adopt_orphans()
    if "--warden" in arguments:
        arguments.remove("--warden")
        pid = os.fork()
        if pid:
            _wait_for(pid)
        process.die_with_parent()
        process.adopt_orphans()
    inbox, outbox = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(2, 1)
    process.allow_inspection(False)
    scratch_bytes, *folders = arguments
    writable = [Path(folder) for folder in folders]
    Zygote(inbox, outbox, writable[0], writable, int(scratch_bytes)).serve()


def _wait_for(pid: int) -> None:
    """Reap everything until `pid` ends or this process is told to end; never returns."""
    os.close(0)
    os.close(1)
    signal.signal(signal.SIGTERM, _end)
    while os.wait()[0] != pid:
        pass
    _end()


def _end(*_: object) -> None:
    process.kill_descendants()
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])

"""Names that tell which process made a thing that may outlive it.

A process that is killed cannot clean up. What it makes outside its own memory bears its
process id and start time, so that a later process knows whether the maker still lives.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

PREFIX = "evalharness-"
NAME = re.compile(re.escape(PREFIX) + r"(\d+)\.(\d+)-.*", re.DOTALL)


def own_name(what: str, maker: str | None = None) -> str:
    """Return a name for `what` that bears its maker, this process by default.

    >>> own_name("probe", maker="12.3456")
    'evalharness-12.3456-probe'
    """
    return f"{PREFIX}{maker or f'{os.getpid()}.{started(os.getpid())}'}-{what}"


def is_abandoned(name: str) -> bool:
    """Whether `name` is one of ours and its maker has ended.

    >>> is_abandoned(own_name("probe")), is_abandoned("evalharness-1.0-x"), is_abandoned("a")
    (False, True, False)
    """
    match = NAME.fullmatch(name)
    return match is not None and started(int(match[1])) != int(match[2])


def started(pid: int) -> int | None:
    """Return when a running process started, in clock ticks since boot; None when it ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    state, *fields = text[text.rindex(")") + 2 :].split()
    return None if state == "Z" else int(fields[18])

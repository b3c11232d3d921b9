"""Which isolation this machine can give, and why not a better one."""

from __future__ import annotations

import shutil
import subprocess
from typing import Literal

from cases.errors import HarnessError

Level = Literal["bwrap", "process"]
PROBE = (
    "--unshare-all",
    "--unshare-user",
    "--ro-bind",
    "/",
    "/",
    "--proc",
    "/proc",
    "--dev",
    "/dev",
)
PROBE_TIMEOUT_S = 20.0


def why_no_bubblewrap() -> str | None:
    """Say why bubblewrap does not work here, None if it does."""
    program = shutil.which("bwrap")
    if program is None:
        return "bubblewrap is not installed (no `bwrap` on PATH)"
    try:
        tried = subprocess.run(
            [program, *PROBE, "true"], capture_output=True, text=True, timeout=PROBE_TIMEOUT_S
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap does not work here: {error}"
    if tried.returncode:
        return f"bubblewrap does not work here: {tried.stderr.strip()[:300]}"
    return None


def choose_level(wanted: Literal["auto", "bwrap", "process"]) -> tuple[Level, str]:
    """Return the level to use and a note where it is less than could be wished for.

    Raises:
        HarnessError: bubblewrap is demanded and does not work.
    """
    if wanted == "process":
        return "process", "plain processes were asked for"
    reason = why_no_bubblewrap()
    if reason is None:
        return "bwrap", ""
    if wanted == "bwrap":
        raise HarnessError(f"--isolation bwrap must work, but {reason}")
    return "process", reason

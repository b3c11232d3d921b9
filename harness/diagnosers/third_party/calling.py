"""Running a tool's driver in the tool's own environment.

What the tool prints goes where the diagnoser's own output goes. Time and memory are limited by
whoever limits the diagnoser.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

MAX_RAW_BYTES = 64 * 2**20
OURS = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")


class ToolError(Exception):
    """The tool crashed, or left nothing that can be read."""


def call_tool(python: Path, driver: Path, request: Any) -> Any:
    """Run `driver REQUEST RAW` and return what it wrote to RAW.

    Args:
        python: The interpreter of the tool's environment.
        driver: A file that needs nothing but the standard library and the tool.
        request: A JSON value for the driver.

    Raises:
        ToolError: the driver ended by an error or a signal, or wrote no JSON.
    """
    with tempfile.TemporaryDirectory() as folder:
        asked, told = Path(folder) / "request.json", Path(folder) / "raw.json"
        asked.write_text(json.dumps(request, allow_nan=False))
        command = [str(python), "-P", "-s", "-W", "ignore", str(driver), str(asked), str(told)]
        status = subprocess.run(command, cwd=folder, env=_environment()).returncode
        if status:
            how = f"signal {-status}" if status < 0 else f"exit status {status}"
            raise ToolError(f"the tool must end well, but ended by {how}; see its output")
        return _read(told)


def _environment() -> dict[str, str]:
    """Our variables but those that would lead the tool's interpreter to our packages."""
    return {name: value for name, value in os.environ.items() if name not in OURS}


def _read(path: Path) -> Any:
    if not path.is_file():
        raise ToolError("the tool must leave its output, but left none")
    if (size := path.stat().st_size) > MAX_RAW_BYTES:
        raise ToolError(f"the tool's output must be at most {MAX_RAW_BYTES} bytes, found {size}")
    try:
        return json.loads(path.read_bytes())
    except ValueError as error:
        raise ToolError(f"the tool's output must be JSON ({error})") from None

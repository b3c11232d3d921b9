"""Tools of others that must be able to read what we write, each in an environment of its own.

    printed = run_tool("gpu-idle", SCRIPT, path)      # skips where it can't be installed

Diagnosers have the environments that `evalharness diagnosers install` makes. Of others the packages
are listed here; their environments lie in the user's cache folder as well and are made once.
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from cases.bundle import cache_folder
from cases.errors import InputError
from harness.diagnosers.third_party import TOOLS
from harness.environments import install

MCP = (
    *("annotated-types==0.8.0", "anyio==4.16.0", "attrs==26.1.0", "cffi==2.1.1", "click==8.5.1"),
    *("cryptography==50.0.2", "h11==0.16.0", "idna==3.20", "jsonschema==4.26.0"),
    *("jsonschema-specifications==2025.9.1", "pycparser==3.12", "pydantic==2.14.4"),
    *("pydantic_core==2.50.5", "PyJWT==2.15.1", "python-multipart==0.0.34"),
    *("referencing==0.37.0", "rpds-py==2026.9.1", "sse-starlette==3.7.0", "starlette==1.10.0"),
    *("typing-inspection==0.4.5", "typing_extensions==4.16.0", "uvicorn==0.54.0"),
)
LOCKS: dict[str, tuple[str, ...]] = {
    # Two generations of clients of the Model Context Protocol.
    "mcp": (
        *("mcp==2.3.0", "mcp-types==2.3.0", *MCP, "httpcore2==2.16.2", "httpx2==2.16.2"),
        *("opentelemetry-api==1.45.2", "truststore==0.10.5"),
    ),
    "mcp-1": (
        *("mcp==1.30.0", *MCP, "certifi==2026.10.19.post1", "httpcore==1.0.9", "httpx==0.28.1"),
        *("httpx-sse==0.4.3", "pydantic-settings==2.16.3", "python-dotenv==1.2.4"),
    ),
}
INSTALL_LIMIT_S = 300


def tool_python(name: str) -> Path:
    """Return the interpreter of a tool's environment, made if it is not there yet."""
    if name in TOOLS:
        try:
            return install(name).python
        except InputError as error:
            pytest.skip(str(error))
    lock = LOCKS[name]
    digest = hashlib.sha256("\n".join((sys.version, *lock)).encode()).hexdigest()[:16]
    folder = cache_folder() / "test-tools" / f"{name}-{digest}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)
        if not (folder / "ready").exists():
            _make(folder, lock)
    return folder / "bin" / "python"


def _make(folder: Path, lock: tuple[str, ...]) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    venv.create(folder, with_pip=True)
    command = [folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--no-deps", *lock]
    try:
        made = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_LIMIT_S)
    except subprocess.TimeoutExpired:
        pytest.skip(f"{lock[0]} was not installed within {INSTALL_LIMIT_S} s")
    if made.returncode:
        last = made.stderr.strip().splitlines()[-1:]
        pytest.skip(f"{lock[0]} can't be installed: {' '.join(last)}")
    (folder / "ready").touch()


def run_tool(name: str, script: str, *arguments: str | Path) -> str:
    """Run a script in a tool's environment; returns what it printed."""
    command = [tool_python(name), "-W", "ignore", "-c", script, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_LIMIT_S)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout

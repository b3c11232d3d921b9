"""What a program that comes from a virtual environment needs of it, and its packages."""

from __future__ import annotations

from pathlib import Path

from harness.sandbox.view import interpreter_paths

CONFIG = "pyvenv.cfg"


def environment_paths(program: Path) -> list[Path]:
    """Return what must be visible for `program` to run: its environment and that one's base.

    Empty for a program that belongs to no virtual environment and to no Python of its own.
    """
    roots: list[Path] = []
    for root in _roots(program):
        roots += [root, *_base(root)]
    return interpreter_paths([str(root) for root in roots]) if roots else []


def distributions(program: Path) -> list[str]:
    """Return the packages of the program's environment as `name-version`, sorted."""
    return sorted(
        info.stem
        for root in _roots(program)
        for info in root.glob("lib/python*/site-packages/*.dist-info")
    )


def _roots(program: Path) -> list[Path]:
    """Environments that the program, or what it is a link to, lies in."""
    found = {path.parent.parent for path in (program, program.resolve())}
    return sorted(root for root in found if (root / CONFIG).is_file())


def _base(root: Path) -> list[Path]:
    """The installation that an environment was made from."""
    lines = (root / CONFIG).read_text().splitlines()
    pairs = dict(line.split("=", 1) for line in lines if "=" in line)
    home = next((value.strip() for key, value in pairs.items() if key.strip() == "home"), None)
    return [Path(home).parent, Path(home).resolve().parent] if home else []

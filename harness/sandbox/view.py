"""What a sealed diagnoser sees of the file system: an allow-list, as bubblewrap's arguments."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import cases
from cases.errors import InputError

SYSTEM = (
    *("/usr/bin", "/usr/sbin", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libexec"),
    *("/usr/local/bin", "/usr/local/lib", "/usr/share", "/nix/store"),
    *("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives"),
    "/etc/localtime",
)
TOP_LEVEL = ("/bin", "/sbin", "/lib", "/lib32", "/lib64")  # links into /usr on most systems
NETWORK = ("/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/ssl", "/etc/pki")
PACKAGE_FOLDERS = ("site-packages", "dist-packages")
OWN_PACKAGES = ("cases", "harness", "injectors", "scorers")
TEMPORARY = Path("/tmp")
CODE, CASE, SCRATCH, SHARED_MEMORY = (Path(p) for p in ("/code", "/case", "/scratch", "/dev/shm"))


@dataclass(frozen=True)
class View:
    """One diagnoser's view.

    Attributes:
        code: Folder with our own public code.
        case: Folder into which one case at a time is copied.
        shown: The diagnoser's own files and folders, shown where they are.
        hidden: Never to be seen, even where they lie below something shown.
        scratch_bytes: Size of what may be written.
        network: Whether the network is left in reach.
    """

    code: Path
    case: Path
    shown: tuple[Path, ...]
    hidden: tuple[Path, ...]
    scratch_bytes: int
    network: bool = False

    def arguments(self) -> list[str]:
        """Return bubblewrap's arguments for the file system, parents before children."""
        places = self._places()
        masks = [path for path, shown in places.items() if not shown]
        mounts = [
            ["--ro-bind", str(path), str(path)] if shown else ["--tmpfs", str(path)]
            for path, shown in places.items()
        ]
        size = str(self.scratch_bytes)
        return [
            *_links(),
            *(word for words in mounts for word in words),
            *("--ro-bind", str(self.code), str(CODE), "--ro-bind", str(self.case), str(CASE)),
            *("--proc", "/proc", "--dev", "/dev"),
            *("--size", size, "--tmpfs", str(SHARED_MEMORY)),
            *("--size", size, "--tmpfs", str(SCRATCH)),
            *(() if _below(TEMPORARY, places) else ("--symlink", str(SCRATCH), str(TEMPORARY))),
            *(word for path in (*masks, "/dev", "/") for word in ("--remount-ro", str(path))),
        ]

    def _places(self) -> dict[Path, bool]:
        """Return which folders are shown (True) or masked (False), outer ones first.

        The root shows nothing; below that only what differs from what is around it matters.
        """
        visible = self._visible()
        wanted = dict.fromkeys(visible, True) | dict.fromkeys(self._masks(visible), False)
        places: dict[Path, bool] = {}
        for path in sorted(wanted, key=lambda path: (len(path.parts), path)):
            around = next((parent for parent in path.parents if parent in places), None)
            if wanted[path] != places.get(around or path, False):
                places[path] = wanted[path]
        return places

    def _masks(self, visible: Iterable[Path]) -> set[Path]:
        """Return the hidden folders by every name under which something shown leads to them.

        A virtual environment's lib64 is a link to its lib, and homes may be links too.
        """
        secrets = [path.resolve() for path in (*self.hidden, *own_package_folders())]
        return {
            place / secret.relative_to(place.resolve())
            for place in visible
            for secret in secrets
            if secret.is_dir() and secret.is_relative_to(place.resolve())
        }

    def _visible(self) -> set[Path]:
        paths = [Path(path) for path in (*SYSTEM, *(NETWORK if self.network else ()))]
        paths += [Path(path) for path in TOP_LEVEL if not Path(path).is_symlink()]
        paths += [*interpreter_paths(), *library_paths(), *self.shown]
        return {path for path in paths if os.access(path, os.R_OK)}


def interpreter_paths(prefixes: Iterable[str] | None = None) -> list[Path]:
    """Return what Python needs of its own installation and of the virtual environment.

    Never a prefix as a whole: a virtual environment may be the root of a checkout.
    """
    executable = Path(sys.executable)
    own = (sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix)
    given = own if prefixes is None else prefixes
    roots = {Path(prefix) for prefix in given}
    if prefixes is None:
        roots.add(executable.resolve().parents[1])
    roots |= {root.resolve() for root in roots}
    parts = [
        root / name
        for root in roots - {Path("/usr"), Path("/")}
        for name in ("bin", "lib", "lib64", "pyvenv.cfg")
    ]
    return [path for path in parts if os.access(path, os.R_OK)]


def library_paths() -> list[Path]:
    """Return folders of installed packages that Python finds only because it is told to.

    The user's own folder is one, and PYTHONPATH may name others.
    """
    own = [root for root in interpreter_paths() if root.is_dir()]
    found = [Path(entry) for entry in sys.path if Path(entry).name in PACKAGE_FOLDERS]
    return [path for path in found if path.is_dir() and not any(r in path.parents for r in own)]


def own_package_folders() -> list[Path]:
    """Return where our packages lie; of a checkout the whole of it, its history included."""
    home = Path(cases.__file__).resolve().parents[1]
    if home.name in PACKAGE_FOLDERS:
        return [home / name for name in OWN_PACKAGES]
    return [home]


def check_shown(paths: Iterable[Path], hidden: Iterable[Path]) -> None:
    """Refuse to show a diagnoser what lies within a hidden folder, or is one.

    Raises:
        InputError: names the path and the folder.
    """
    hidden, own = [path.resolve() for path in hidden], own_package_folders()
    for path in (path.resolve() for path in paths):
        for secret in (*hidden, *own):
            if path == secret or (secret in path.parents and secret not in own):
                raise InputError(f"must lie outside {secret}", where="diagnoser", found=str(path))


def _links() -> list[str]:
    links = [Path(path) for path in TOP_LEVEL if Path(path).is_symlink()]
    return [word for path in links for word in ("--symlink", str(path.readlink()), str(path))]


def _below(folder: Path, paths: Iterable[Path]) -> bool:
    return any(folder in path.parents for path in paths)

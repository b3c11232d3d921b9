from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

import cases
from cases.errors import InputError
from harness.sandbox.level import choose_level
from harness.sandbox.public_code import HARNESS_PARTS, public_code_files
from harness.sandbox.view import OWN_PACKAGES, View, check_shown, interpreter_paths


def binds(arguments: list[str]) -> list[tuple[str, str]]:
    """(kind, place) of each mount in order."""
    found = []
    for index, word in enumerate(arguments):
        if word == "--ro-bind":
            found.append((word, arguments[index + 2]))
        elif word in ("--tmpfs", "--remount-ro"):
            found.append((word, arguments[index + 1]))
    return found


def view(tmp_path: Path, shown: tuple[Path, ...], hidden: tuple[Path, ...]) -> View:
    return View(tmp_path / "code", tmp_path / "case", shown, hidden, 2**20)


def test_hidden_folder_below_a_shown_one_is_masked_and_closed(tmp_path: Path) -> None:
    secret = tmp_path / "shown" / "labels"
    secret.mkdir(parents=True)
    found = binds(view(tmp_path, (tmp_path / "shown",), (secret,)).arguments())
    shown = found.index(("--ro-bind", str(tmp_path / "shown")))
    assert shown < found.index(("--tmpfs", str(secret)))
    assert ("--remount-ro", str(secret)) in found


def test_what_is_shown_below_a_hidden_folder_is_put_on_top(tmp_path: Path) -> None:
    secret = tmp_path / "shown" / "checkout"
    own = secret / "mine.py"
    secret.mkdir(parents=True)
    own.touch()
    found = binds(view(tmp_path, (tmp_path / "shown", own), (secret,)).arguments())
    assert found.index(("--tmpfs", str(secret))) < found.index(("--ro-bind", str(own)))


def test_hidden_folder_elsewhere_needs_no_mask(tmp_path: Path) -> None:
    (tmp_path / "labels").mkdir()
    arguments = view(tmp_path, (), (tmp_path / "labels",)).arguments()
    assert str(tmp_path / "labels") not in arguments


def test_checkout_is_never_shown_as_a_whole(tmp_path: Path) -> None:
    home = Path(cases.__file__).parents[1]
    shown = {Path(place) for kind, place in binds(view(tmp_path, (), ()).arguments())}
    assert not {home, *home.parents} & shown - {Path("/")}
    assert Path(sys.prefix) not in interpreter_paths()


@pytest.mark.parametrize("place", ["labels", "labels/a.py"])
def test_code_within_the_labels_is_refused(tmp_path: Path, place: str) -> None:
    with pytest.raises(InputError, match="must lie outside"):
        check_shown([tmp_path / place], [tmp_path / "labels"])


def test_public_code_knows_no_label() -> None:
    files = dict(public_code_files())
    assert Path("cases/case.py") in files.values()
    assert Path("harness/child/zygote.py") in files.values()
    for path, place in files.items():
        if path.suffix == ".py":
            allowed = ("cases",) if place.parts[0] == "cases" else ("cases", "harness")
            for module in imported(path):
                assert module != "cases.truth", place
                assert module.split(".")[0] not in set(OWN_PACKAGES) - set(allowed), place
                if module.startswith("harness."):
                    assert module.split(".")[1] in HARNESS_PARTS, place


def imported(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def test_level_falls_back_with_a_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert choose_level("auto") == ("process", "bubblewrap is not installed (no `bwrap` on PATH)")
    fake = tmp_path / "bwrap"
    fake.write_text("#!/bin/sh\necho 'no user namespaces' >&2\nexit 1\n")
    fake.chmod(0o755)
    level, reason = choose_level("auto")
    assert level == "process"
    assert "no user namespaces" in reason


def test_what_is_shown_with_its_folder_is_not_shown_twice(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "tool").touch()
    arguments = view(tmp_path, (tmp_path / "bin", tmp_path / "bin" / "tool"), ()).arguments()
    assert str(tmp_path / "bin" / "tool") not in arguments


def test_hidden_folder_is_masked_under_every_name(tmp_path: Path) -> None:
    (tmp_path / "lib" / "labels").mkdir(parents=True)
    (tmp_path / "lib64").symlink_to("lib")
    shown = (tmp_path / "lib", tmp_path / "lib64")
    found = binds(view(tmp_path, shown, (tmp_path / "lib64" / "labels",)).arguments())
    for folder in shown:
        assert ("--tmpfs", str(folder / "labels")) in found

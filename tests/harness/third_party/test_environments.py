from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from cases.errors import InputError
from harness import environments
from harness.diagnosers.third_party import TOOLS
from harness.environments import STAMP, environment_of, install, required


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Replace the slow part, making and filling an environment; returns the names made."""
    names: list[str] = []

    def make(environment: environments.Environment, progress: environments.Progress) -> None:
        names.append(environment.name)
        environment.python.parent.mkdir(parents=True)
        environment.python.touch()
        environments._stamp(environment)

    monkeypatch.setattr(environments, "_make", make)
    return names


def test_an_unknown_tool_is_an_error_that_lists_the_known() -> None:
    with pytest.raises(InputError, match=r"one of gpu-idle.*found 'nvidia-smi'"):
        environment_of("nvidia-smi")


def test_what_is_not_installed_says_how_to_install_it() -> None:
    with pytest.raises(InputError, match="evalharness diagnosers install gpu-idle"):
        required("gpu-idle")


def test_it_is_made_once(made: list[str]) -> None:
    threads = [threading.Thread(target=install, args=("gpu-idle",)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == ["gpu-idle"]
    assert required("gpu-idle").ready


def test_without_its_stamp_it_is_made_anew(made: list[str]) -> None:
    environment = install("gpu-idle")
    (environment.folder / STAMP).unlink()
    assert not environment.ready
    (environment.folder / "left").touch()
    assert install("gpu-idle").ready
    assert made == ["gpu-idle", "gpu-idle"]
    assert not (environment.folder / "left").exists()


def test_a_stamp_of_another_key_does_not_count(made: list[str]) -> None:
    environment = install("gpu-idle")
    stamp = json.loads((environment.folder / STAMP).read_text())
    (environment.folder / STAMP).write_text(json.dumps({**stamp, "key": "sha256:0"}))
    assert not environment.ready


def test_the_key_follows_lock_and_python(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    keys = [environment_of("gpu-idle").key]
    monkeypatch.setattr(environments.sys, "version", "4.0")
    keys.append(environment_of("gpu-idle").key)
    lock = tmp_path / "requirements.txt"
    lock.write_text("gpu-idle==0.1.0 --hash=sha256:" + "0" * 64)
    monkeypatch.setattr(type(TOOLS["gpu-idle"]), "lock", lock)
    keys.append(environment_of("gpu-idle").key)
    assert len(set(keys)) == 3


@pytest.mark.parametrize("pip_here", [True, False])
@pytest.mark.parametrize(
    ("index", "lock_hash", "says"),
    [
        ("http://127.0.0.1:9/simple", None, "index can't be reached"),
        (None, "0" * 64, "pip failed"),
    ],
)
def test_offline_or_with_other_content_it_says_so_and_leaves_nothing_valid(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    index: str | None,
    lock_hash: str | None,
    says: str,
    pip_here: bool,
) -> None:
    """A real pip: once without an index, once given a package that has another hash."""
    if not pip_here:
        monkeypatch.setattr(environments, "distributions", lambda name: iter(()))
    lock = tmp_path / "requirements.txt"
    wanted = lock_hash or "1" * 64
    lock.write_text(f"gpu-idle==0.1.0 --hash=sha256:{wanted}\n")
    monkeypatch.setattr(type(TOOLS["gpu-idle"]), "lock", lock)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    if index:
        monkeypatch.setenv("PIP_INDEX_URL", index)
    else:
        _serve_wheel(tmp_path / "wheels", monkeypatch)
    with pytest.raises(InputError, match=says):
        install("gpu-idle")
    assert not environment_of("gpu-idle").ready


def _serve_wheel(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with a file that has the package's name and not its content."""
    folder.mkdir()
    (folder / "gpu_idle-0.1.0-py3-none-any.whl").write_bytes(b"no wheel")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))

"""What every adapter must satisfy."""

from __future__ import annotations

import importlib
import re

import pytest

from cases.taxonomy import Taxonomy
from harness.answering import read_needs
from harness.diagnosers import DIAGNOSERS, ORACLE
from harness.diagnosers.third_party import TOOLS
from harness.diagnosers.third_party.adapter import Adapter

HASHED = re.compile(r"(?:\s+--hash=sha256:[0-9a-f]{64})+")


def _adapter(name: str) -> Adapter:
    adapter = importlib.import_module(TOOLS[name].package).diagnose
    assert isinstance(adapter, Adapter)
    return adapter


@pytest.mark.parametrize("name", TOOLS)
def test_all_that_is_installed_is_pinned_by_version_and_hash(name: str) -> None:
    text = TOOLS[name].lock.read_text().replace("\\\n", "")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert lines
    for line in lines:
        requirement, *_ = line.split(" --hash", 1)
        assert re.match(r"[A-Za-z0-9][\w.-]*==[\w.+!]+", requirement), line
        assert HASHED.fullmatch(line.removeprefix(requirement)), line


@pytest.mark.parametrize("name", TOOLS)
def test_the_release_is_the_pinned_one(name: str) -> None:
    package, _, version = TOOLS[name].release.partition("==")
    pattern = rf"^{re.escape(package)}=={re.escape(version)}[ ;\\]"
    assert re.search(pattern, TOOLS[name].lock.read_text(), re.MULTILINE | re.IGNORECASE)


@pytest.mark.parametrize("name", TOOLS)
def test_what_it_can_name_are_names_of_the_taxonomy(name: str) -> None:
    taxonomy = Taxonomy.load()
    for cause in _adapter(name).causes:
        assert taxonomy.resolve(cause) == cause


@pytest.mark.parametrize("name", TOOLS)
def test_its_needs_are_declared_as_they_are_read(name: str) -> None:
    adapter = _adapter(name)
    assert read_needs(dict(adapter.needs)).kinds
    assert adapter.module == TOOLS[name].module
    assert adapter.version >= 1


@pytest.mark.parametrize("name", TOOLS)
def test_its_driver_can_be_read_without_the_tool(name: str) -> None:
    driver = importlib.import_module(f"{TOOLS[name].package}.driver")
    assert callable(driver.main)


@pytest.mark.parametrize("name", TOOLS)
def test_its_driver_imports_nothing_of_ours(name: str) -> None:
    text = (TOOLS[name].folder / "driver.py").read_text()
    assert not re.search(r"^\s*(?:from|import) (?:cases|harness|scorers|injectors)\b", text, re.M)


def test_no_name_is_used_twice() -> None:
    assert not set(TOOLS) & {*DIAGNOSERS, ORACLE}
    assert len({tool.module for tool in TOOLS.values()}) == len(TOOLS)

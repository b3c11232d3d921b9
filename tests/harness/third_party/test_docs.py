"""docs/third_party.md tells of the tools what their adapters say."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest
import yaml

import harness
from cases.truth import StatedLabel
from harness.diagnosers.third_party import TOOLS

PAGE = Path(harness.__file__).parents[1] / "docs" / "third_party.md"
pytestmark = pytest.mark.skipif(not PAGE.is_file(), reason="the documentation is not installed")


def test_the_table_is_that_of_the_tools() -> None:
    lines = re.findall(r"^\| `[a-z].*$", PAGE.read_text(), re.MULTILINE)
    rows = {cells[0].strip("`"): cells[1:] for line in lines for cells in [_cells(line)]}
    assert list(rows) == list(TOOLS)
    for name, (release, licence, reads, needs, causes) in rows.items():
        tool = TOOLS[name]
        adapter = importlib.import_module(tool.package).diagnose
        assert (release, licence, reads) == (tool.release, tool.licence, tool.reads)
        assert re.findall(r"`(\w+)`", causes) == list(dict.fromkeys(adapter.causes))
        assert all(signal in needs for signal in adapter.needs.get("signals", []))
        assert ("GPUs" in needs) == bool(adapter.needs.get("gpus"))


def test_the_label_is_one() -> None:
    found = re.search(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert found is not None
    assert StatedLabel.model_validate(yaml.safe_load(found[1])).verdict == "faulty"


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]

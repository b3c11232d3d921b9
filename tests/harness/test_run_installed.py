"""Isolation when the project is installed and its labels lie in site-packages."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import harness
from harness.sandbox.level import why_no_bubblewrap
from harness.sandbox.view import OWN_PACKAGES

pytestmark = pytest.mark.skipif(why_no_bubblewrap() is not None, reason="no bubblewrap here")
LOOKS = """
import importlib.util, os, sys

def diagnose(case):
    for name in ("injectors.label_rule", "scorers.scores", "harness.judge", "cases.truth"):
        try:
            found = importlib.util.find_spec(name)
        except ModuleNotFoundError:
            found = None
        print(name, bool(found))
    for folder in sys.path:
        for name in ("cases/labels", "cases/corpus", "injectors", "scorers", "harness/commands"):
            if os.path.isdir(os.path.join(folder, name)):
                print(folder, name, os.listdir(os.path.join(folder, name)))
    return {"verdict": "healthy"}
"""


def test_labels_in_site_packages_are_masked(tiny_suite: Path, tmp_path: Path) -> None:
    packages = tmp_path / "site-packages"
    home = Path(harness.__file__).parents[1]
    for name in OWN_PACKAGES:
        skipped = shutil.ignore_patterns("__pycache__", "corpus", "labels")
        shutil.copytree(home / name, packages / name, ignore=skipped)
    for name in ("corpus", "labels"):
        shutil.copytree(tiny_suite.parents[1] / name, packages / "cases" / name)
    (tmp_path / "looks.py").write_text(LOOKS)
    libraries = [path for path in sys.path if path.endswith("-packages")]
    done = subprocess.run(
        [sys.executable, "-P", "-c", "from harness.cli import main; main()", "run",
         "-d", "looks=looks.py:diagnose", "--suite", "tiny", "--no-track", "--isolation", "bwrap"],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(packages), *libraries])},
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    run = json.loads((tmp_path / "results/tiny/looks/run.json").read_text())
    assert run["isolation"]["sealed"] is True
    lines = (tmp_path / "results/tiny/looks/answers.jsonl").read_text().splitlines()
    for line in lines:
        assert json.loads(line)["outcome"] == "ok"
        printed = json.loads(line)["output"].splitlines()
        assert len(printed) >= 4
        assert all(text.endswith((" False", "[]")) for text in printed), printed

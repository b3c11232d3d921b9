"""A slow link recorded by a user without rights, in namespaces of the user's own."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="recording needs torch: pip install 'evalharness[record]'")

from cases.documents import read_record
from cases.truth import Truth
from injectors import capabilities

ROOT = Path(__file__).parents[2]
NOBODY = 65534
SCENARIO = """
format: evalharness.scenario/1.0
name: user-link
workload: language_model
ranks: 2
parameters: {d_model: 64, sequence_length: 16, batch_size: 2}
steps: 20
profiled_steps: 1
trials: {blocks: 8, fresh: 4, steps: 6, null_pairs: 20}
arms: {slow: {fault: slow_link, parameters: {rank: 1, rate_mbit_per_s: 40}}}
cases: [{arm: slow, withhold: all_but_progress}]
"""
# Root may have installed Python where nobody else can look. In a mount namespace of its own,
# the closed folder ($1) is covered by an open one with nothing but Python ($2) in it.
UNCOVER = """
set -e
if [ -n "$1" ]; then
    aside=$(mktemp -d)
    mount --bind "$2" "$aside"
    mount -t tmpfs -o mode=755 none "$1"
    mkdir -p "$2"
    mount --move "$aside" "$2"
    rmdir "$aside"
fi
shift 2
exec "$@"
"""


@pytest.fixture
def as_ordinary_user(tmp_path_factory):
    """Return (words before a command, a folder of that user's); skip where there is no way."""
    if os.geteuid():
        return [], tmp_path_factory.mktemp("user")
    folder = Path(subprocess.check_output(["mktemp", "-d"], text=True).strip())
    os.chown(folder, NOBODY, NOBODY)
    python = Path(sys.base_prefix)
    closed = [place for place in reversed(python.parents) if not place.stat().st_mode & 1]
    cover = [str(closed[0] if closed else ""), str(python)]
    words = ["unshare", "--mount", "sh", "-c", UNCOVER, "sh", *cover]
    words += ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    yield words, folder
    shutil.rmtree(folder)


def test_a_slow_link_is_recorded_without_rights(as_ordinary_user):
    words, folder = as_ordinary_user
    plain = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(folder), "TMPDIR": str(folder)}
    for room in ("cases", "harness", "injectors", "scorers"):
        shutil.copytree(ROOT / room, folder / "project" / room, ignore=IGNORED)
    probe = folder / "project" / "injectors" / "namespace_probe.py"
    found = capabilities.attempt([*words, sys.executable, "-I", probe, "tbf"], environment=plain)
    if not found:
        pytest.skip(f"network shaping by an ordinary user: {found.reason}")
    (folder / "link.yaml").write_text(SCENARIO)
    done = subprocess.run(
        [*words, *RECORD, str(folder / "link.yaml"), "--out", str(folder / "out")],
        cwd=folder / "project",
        env=plain,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (label,) = (folder / "out" / "labels" / "link").glob("*.json")
    truth = read_record(label, Truth)
    assert truth.faults[0].cause == "slow_link"
    assert truth.validation.ratio.low > 1.05
    assert label.stat().st_uid == (NOBODY if words else os.geteuid())


RECORD = [sys.executable, "-c", "from harness.cli import main; main()", "record"]
IGNORED = shutil.ignore_patterns("__pycache__", "corpus", "labels")

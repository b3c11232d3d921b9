"""Interfaces that are shaped for real, in namespaces of their own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from injectors import capabilities

FOLDER = Path(__file__).parent
SLOW_S = 8 * 2**20 / 40e6  # a MiB at 40 Mbit/s


@pytest.fixture(scope="module", params=[0, 2000], ids=["unlimited", "limited"])
def tried(request):
    found = capabilities.network_shaping()
    if not found:
        pytest.skip(found.reason)
    own = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "-r", "--net"]
    loss = "loss" if capabilities.packet_loss() else "none"
    done = subprocess.run(
        [*own, sys.executable, FOLDER / "network_trial.py", str(request.param), loss],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(FOLDER.parents[1])},
    )
    assert done.returncode == 0, done.stderr
    return request.param, json.loads(done.stdout)


def test_ranks_of_one_host_share_its_namespace(tried):
    first, second, third, fourth = tried[1]["namespaces"]
    assert first == second
    assert len({first, third, fourth}) == 3


def test_a_shaped_interface_is_slow_both_ways_and_the_others_are_not(tried):
    took = tried[1]["interface"]
    assert 0.7 * SLOW_S < took["from"] < 2 * SLOW_S
    assert 0.7 * SLOW_S < took["to"] < 2 * SLOW_S
    assert took["others"] < 0.3 * SLOW_S


def test_a_shaped_path_spares_what_its_ends_send_elsewhere(tried):
    took = tried[1]["path"]
    assert 0.7 * SLOW_S < took["there"] < 2 * SLOW_S
    assert 0.7 * SLOW_S < took["back"] < 2 * SLOW_S
    assert took["others"] < 0.3 * SLOW_S


def test_shaping_is_lifted_to_the_healthy_rate(tried):
    rate, found = tried
    assert (
        found["after"].split("tbf")[-1].split()[2:] == found["before"].split("tbf")[-1].split()[2:]
    )
    assert ("tbf" in found["after"]) == bool(rate)
    assert "htb" not in found["after"]


def test_packets_are_dropped_in_both_directions_and_then_no_more(tried):
    found = tried[1]
    if "lossy" not in found:
        pytest.skip(capabilities.packet_loss().reason)
    for text in found["lossy"]:
        (rule,) = [line for line in text.splitlines() if "DROP" in line]
        assert int(rule.split()[0]) > 0
    assert not any("DROP" in text for text in found["lifted"])

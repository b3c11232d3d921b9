"""The metrics service is a real server, and rank 0 waits for its answers."""

import time
from http.client import HTTPConnection
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="recording needs torch: pip install 'evalharness[record]'")

from injectors.recorder import metrics_service
from injectors.recorder.chores import Chores
from injectors.recorder.knobs import Knobs
from injectors.workloads.base import Context, Step


@pytest.fixture
def service():
    running = metrics_service.start(0.05)
    yield running
    running.stop()


def test_service_answers_in_its_time_and_has_an_ordinary_name(service):
    connection = HTTPConnection("127.0.0.1", service.port, timeout=10)
    begin = time.monotonic()
    connection.request("POST", "/metrics", "{}")
    assert connection.getresponse().status == 204
    assert time.monotonic() - begin >= 0.05
    connection.close()
    process = Path(f"/proc/{service.process.pid}")
    assert (process / "comm").read_text().strip() == metrics_service.NAME
    assert b"metrics" not in (process / "cmdline").read_bytes()


def test_stopped_service_is_gone():
    running = metrics_service.start(0.0)
    running.stop()
    assert running.process.returncode is not None
    with pytest.raises(ConnectionRefusedError):
        HTTPConnection("127.0.0.1", running.port, timeout=10).connect()


def test_rank_0_waits_for_the_answer_in_the_steps_it_reports(service, tmp_path):
    knobs = Knobs()
    step = Step(0, {"forward_ns": 1}, None, 64)
    spent = {}
    with knobs.turned(metrics_every=2, metrics_port=service.port):
        for rank in (0, 1):
            chores = Chores(Context(rank, 2, 0, None, knobs, tmp_path), None)
            for number in range(4):
                begin = time.monotonic()
                chores.after(number, step)
                spent[rank, number] = time.monotonic() - begin
    waited = {where for where, seconds in spent.items() if seconds >= 0.05}
    assert waited == {(0, 1), (0, 3)}

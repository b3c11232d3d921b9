"""Checkpoints that are written before training goes on, or beside it."""

import pickle
import threading
import time

import pytest

pytest.importorskip("torch", reason="recording needs torch: pip install 'evalharness[record]'")

import torch

from injectors.recorder.checkpoint import Checkpoints
from injectors.recorder.knobs import Knobs
from injectors.workloads.base import Context, Program


class Model(Program):
    """A program whose state is one tensor of three numbers."""

    def step(self):
        raise NotImplementedError

    def state(self):
        return {"weight": torch.tensor([1.0, 2.0, 3.0])}


@pytest.fixture
def saver(tmp_path):
    """Make the checkpoints of a rank."""
    knobs = Knobs()

    def make(rank=0):
        return Checkpoints(Context(rank, 2, 1, torch.device("cpu"), knobs, tmp_path), Model())

    return make, knobs, tmp_path / "checkpoint.pt"


def test_blocking_saves_end_their_period(saver):
    make, knobs, path = saver
    checkpoints = make()
    assert not any(checkpoints.save_if_due(step) for step in range(4))
    with knobs.turned(checkpoint_every=2.0):
        assert [checkpoints.save_if_due(step) for step in range(4)] == [False, True, False, True]
        assert not make(rank=1).save_if_due(1)
    assert torch.load(path)["weight"].tolist() == [1.0, 2.0, 3.0]


def test_blocking_save_holds_and_flushes_the_megabytes_asked_for(saver, monkeypatch):
    make, knobs, path = saver
    flushed = []
    monkeypatch.setattr("os.fsync", lambda number: flushed.append(path.stat().st_size))
    with knobs.turned(checkpoint_every=1.0, checkpoint_megabytes=3.0, checkpoint_durable=1.0):
        assert make().save_if_due(0)
    assert flushed == [pytest.approx(3e6, rel=0.01)]


def test_save_beside_training_returns_at_once_and_holds_everything(saver):
    make, knobs, path = saver
    checkpoints = make()
    with knobs.turned(checkpoint_every=4.0, checkpoint_megabytes=8.0, checkpoint_thread=1.0):
        begin = time.monotonic()
        assert [checkpoints.save_if_due(step) for step in range(4)] == [True, False, False, False]
        returned = time.monotonic() - begin
        checkpoints._writer.join()
        written = time.monotonic() - begin
    assert returned < written / 2
    with path.open("rb") as file:
        assert pickle.load(file) == [1.0, 2.0, 3.0]
        rows = sum(1 for _ in iter(lambda: file.peek(1), b"") if len(pickle.load(file)) == 1024)
    assert rows == 8 * 244  # rows of 4,096 bytes


def test_save_is_left_out_while_one_is_written_and_ends_with_the_knob(saver):
    make, knobs, _ = saver
    checkpoints = make()
    before = threading.active_count()
    with knobs.turned(checkpoint_every=1.0, checkpoint_megabytes=60.0, checkpoint_thread=1.0):
        assert checkpoints.save_if_due(0)
        assert not checkpoints.save_if_due(1)
        assert threading.active_count() == before + 1
    checkpoints._writer.join(timeout=10)
    assert not checkpoints._writer.is_alive()

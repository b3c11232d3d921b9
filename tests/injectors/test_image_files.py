"""The image classifier's data: layouts, latencies, cores and epochs, on real files."""

import os
import time
from collections import Counter
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="recording needs torch: pip install 'evalharness[record]'")

import torch

from injectors.recorder.knobs import Knobs
from injectors.workloads.base import Context
from injectors.workloads.image_classifier import ImageClassifier
from injectors.workloads.image_files import Batches, Reader, read_latency_s
from injectors.workloads.layouts import PackedFile, SingleFiles, make_images, remapped, write_packed
from injectors.workloads.storage import Storage

PIXELS, FILES, CHUNK = 16, 40, 8
IMAGE_BYTES = 3 * PIXELS**2


@pytest.fixture
def packed(tmp_path):
    """Five chunks of eight images, with the storage they lie on and their true content."""
    images = list(make_images(FILES, PIXELS, seed=3))
    write_packed(tmp_path, images, CHUNK)
    knobs = Knobs()
    layout = PackedFile(Storage(tmp_path, knobs), FILES, CHUNK, IMAGE_BYTES, seed=5)
    return layout, knobs, images


def test_packed_images_are_those_that_were_written(packed):
    layout, _, images = packed
    stored, _ = layout.read(range(FILES))
    assert [layout.unpack(content) for content in stored] == images


def test_scan_reads_each_chunk_once_and_shuffled_index_one_a_sample(packed):
    layout, knobs, images = packed
    size = (layout.storage.folder / "packed.bin").stat().st_size
    read = [layout.read(range(first, first + 4))[1] for first in range(0, FILES, 4)]
    assert sum(read) == size
    assert read[1::2] == [0] * 5  # the second half of each chunk was there already
    with knobs.turned(remapped_share=1.0):
        shuffled = [layout.read(range(first, first + 4)) for first in range(0, FILES, 4)]
    assert sum(count for _, count in shuffled) > 3 * size  # 40 samples of 5 chunks: 32 changes
    assert Counter(c for contents, _ in shuffled for c in contents) == Counter(images)
    assert layout.read(range(4))[0] == images[:4]


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_remapped_index_stays_a_permutation(share):
    mapping = remapped(1000, share, seed=1)
    assert sorted(mapping) == list(range(1000))
    assert np.mean(mapping != np.arange(1000)) == pytest.approx(share, abs=0.05)


def test_single_files_count_the_bytes_they_read(tmp_path):
    workload = ImageClassifier(pixels=PIXELS, files=3)
    workload.prepare(tmp_path, seed=1)
    layout = SingleFiles(Storage(tmp_path / "images", Knobs()))
    stored, count = layout.read([2, 0])
    sizes = [(tmp_path / "images" / f"{n:05d}.img").stat().st_size for n in (2, 0)]
    assert [len(content) for content in stored] == sizes
    assert count == sum(sizes)
    assert [layout.unpack(c) for c in stored] == [
        list(make_images(3, PIXELS, 1))[n] for n in (2, 0)
    ]


def test_reads_wait_for_their_latency(tmp_path):
    (tmp_path / "a").write_bytes(b"0123456789")
    storage = Storage(tmp_path, Knobs())
    assert storage.read("a", 2, 3) == b"234"
    storage.latency_s = 0.05
    begin = time.monotonic()
    assert storage.read("a") == b"0123456789"
    assert time.monotonic() - begin >= 0.05


def test_latency_wanders_from_rank_to_rank():
    knobs = Knobs()
    readers = [Reader(rank, 2, worker=0) for rank in range(2)]
    assert not any(read_latency_s(reader, 0, knobs) for reader in readers)
    with knobs.turned(read_latency_s=0.004, latency_turn_batches=3.0):
        late = [[r for r in (0, 1) if read_latency_s(readers[r], b, knobs)] for b in range(7)]
    assert late == [[0], [0], [0], [1], [1], [1], [0]]


def test_latency_of_one_worker_is_no_other_workers():
    knobs = Knobs()
    with knobs.turned(read_latency_s=0.004, latency_rank=1.0, latency_worker=0.0):
        late = [
            (rank, worker)
            for rank in range(2)
            for worker in range(2)
            if read_latency_s(Reader(rank, 2, worker), 0, knobs)
        ]
    assert late == [(1, 0)]


def test_batches_are_random_and_endless_or_a_scan_in_epochs():
    endless = list(islice(Batches(100, 4, 0, seed=1), 50))
    assert len({tuple(batch) for batch in endless}) == 50
    scan = Batches(10, 4, 2, seed=1, first=6)
    assert list(scan) == [[6, 7, 8, 9], [0, 1, 2, 3]]
    assert list(scan) == [[4, 5, 6, 7], [8, 9, 0, 1]]  # the next epoch goes on


EARLIER = set()  # children of this process when a job starts


@pytest.fixture
def program(tmp_path):
    """A small job of one rank, two workers and epochs of four batches."""
    EARLIER.clear()
    EARLIER.update(children())
    knobs = Knobs()
    workload = ImageClassifier(
        channels=2, blocks=1, pixels=16, batch_size=4, files=16, workers=2, epoch_batches=4
    )
    workload.prepare(tmp_path, seed=1)
    settings = {"pin_memory": True}
    context = Context(0, 1, 1, torch.device("cpu"), knobs, tmp_path, frozenset(), settings)
    program = workload.build(context)
    yield program, knobs
    program.close()


def children():
    path = Path(f"/proc/self/task/{os.getpid()}/children")
    return {int(pid) for pid in path.read_text().split()}


def workers():
    """The loader's workers; what earlier tests left running is none."""
    return children() - EARLIER


def test_workers_live_on_from_epoch_to_epoch_unless_told_otherwise(program):
    job, knobs = program
    first = workers()
    for _ in range(9):  # two epoch ends
        job.next_batch()
    assert workers() == first
    with knobs.turned(worker_life_epochs=1.0):
        for _ in range(4):
            job.next_batch()
    assert len(first - workers()) == 2
    rows = job.tables(0, 13)["loader"]
    assert [row["batch"] for row in rows] == list(range(13))
    assert {row["worker"] for row in rows} == {0, 1}


def test_workers_move_to_one_core_and_back(program):
    job, knobs = program
    cores = os.sched_getaffinity(0)
    if len(cores) < 2:
        pytest.skip("one core")
    with knobs.turned(worker_core=float(min(cores))):
        for _ in range(8):
            job.next_batch()
        assert {len(os.sched_getaffinity(pid)) for pid in workers()} == {1}
    for _ in range(8):
        job.next_batch()
    assert {frozenset(os.sched_getaffinity(pid)) for pid in workers()} == {frozenset(cores)}
    assert os.sched_getaffinity(0) == cores


def test_late_fetch_moves_the_wait_and_leaves_the_loss(program):
    job, knobs = program
    with knobs.turned(late_fetch=1.0, read_latency_s=0.02):
        steps = [job.step() for _ in range(8)]
    waited, computed = (
        sum(step.phases[name] for step in steps[4:]) for name in ("data_wait_ns", "forward_ns")
    )
    assert computed > 120e6  # two batches a worker, each of four reads of 20 ms
    assert waited < computed / 10
    assert np.isfinite(float(steps[-1].loss.detach()))

"""What torch.compile does is told with its length and reason, and given-up functions by name."""

import math

import pytest

torch = pytest.importorskip("torch", reason="needs evalharness[record]")

from injectors.kernels.inductor import NO_LIMIT, limit_graphs  # noqa: E402
from injectors.recorder.cuda_allocator import MemoryLimit  # noqa: E402
from injectors.recorder.knobs import Knobs  # noqa: E402
from injectors.recorder.observers import RuntimeLog  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")


@pytest.fixture
def compiler():
    """Dynamo as it is in a new process, its limits put back afterwards."""
    from torch._dynamo import config

    torch._dynamo.reset()
    limits = config.recompile_limit, config.accumulated_recompile_limit
    yield torch.compile(times, backend="eager", dynamic=False)
    config.recompile_limit, config.accumulated_recompile_limit = limits
    torch._dynamo.reset()


def times(x, stage):
    return (x * (1 + stage)).sum()


def events(log, name):
    return [row for row in log.stop() if row["event"] == name]


def test_each_recompilation_is_told_with_length_and_reason(compiler):
    limit_graphs(NO_LIMIT)
    x = torch.ones(3)
    log = RuntimeLog(rank=2)
    log.start(0)
    for stage in (0, 0, 7, 0, 9):
        assert compiler(x, stage) == 3 * (1 + stage)
    rows = events(log, "recompile")
    assert [row["value"] for row in rows] == [1, 1, 1]
    assert [row["detail"] for row in rows] == ["", "stage == 0", "stage == 0"]
    assert all(row["duration_ns"] > 100_000 and row["rank"] == 2 for row in rows)
    assert rows[1]["time_ns"] >= rows[0]["time_ns"] + rows[0]["duration_ns"]


def test_nothing_is_told_after_the_end(compiler):
    log = RuntimeLog(rank=0)
    log.start(0)
    log.stop()
    compiler(torch.ones(3), 1)
    log.start(0)
    assert events(log, "recompile") == []


def test_functions_that_were_given_up_are_named_in_every_later_window(compiler):
    limit_graphs(1)
    x = torch.ones(3)
    log = RuntimeLog(rank=0)
    log.start(0)
    for stage in (0, 1):
        assert compiler(x, stage) == 3 * (1 + stage)
        log.check()
    (row,) = events(log, "recompile_limit")
    assert (row["value"], row["detail"]) == (1, "times")
    log.start(0)
    log.check()
    assert len(events(log, "recompile_limit")) == 1


def test_memory_is_left_alone_where_there_is_no_gpu():
    knobs = Knobs()
    limit = MemoryLimit(knobs, torch.device("cpu"))
    with knobs.turned(memory_headroom=0.1):
        limit.obey()
    assert math.isinf(knobs["memory_headroom"])


def test_cuda_memory_is_held_near_its_peak_and_retries_are_told():
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    device = torch.device("cuda", 0)
    knobs, log = Knobs(), RuntimeLog(rank=0)
    limit = MemoryLimit(knobs, device)
    block = 64 << 20
    parts = [torch.empty(block, dtype=torch.uint8, device=device) for _ in range(8)]
    del parts
    log.start(0)
    with knobs.turned(memory_headroom=0.05):
        limit.obey()
        for count in (6, 3, 7, 2, 5):  # cached blocks of one size never fit the next
            held = [
                torch.empty(8 * block // count - (1 << 20), dtype=torch.uint8, device=device)
                for _ in range(count)
            ]
            del held
        log.check()
    limit.obey()
    assert sum(row["value"] for row in events(log, "allocator_retry")) >= 2
    torch.empty(16 * block, dtype=torch.uint8, device=device)  # lifted again

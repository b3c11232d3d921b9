"""Marks on a device's time line, played by a device that works behind its host, and on a GPU."""

import time
from types import SimpleNamespace

import pytest

from injectors.recorder.clock import DeviceClock, HostClock, Laps, clock_of

MS = 1_000_000


class Device:
    """A stream that is given work of known length; the host goes on at once."""

    def __init__(self):
        self.host_ns = self.free_ns = 5 * MS

    def launch(self, length_ms, host_ms=1):
        self.host_ns += host_ms * MS
        self.free_ns = max(self.host_ns, self.free_ns) + length_ms * MS

    def clock(self):
        return DeviceClock(lambda: Event(self), host=lambda: self.host_ns)


class Event:
    def __init__(self, device):
        self.device, self.at_ns = device, None

    def record(self):
        self.at_ns = max(self.device.host_ns, self.device.free_ns)

    def synchronize(self):
        self.device.host_ns = max(self.device.host_ns, self.at_ns)

    def elapsed_time(self, later):
        return (later.at_ns - self.at_ns) / MS


def test_phases_last_as_long_as_the_device_works_on_them():
    device = Device()
    laps = Laps(device.clock())
    device.launch(30)
    laps.end("forward_ns")
    device.launch(60, host_ms=2)
    laps.end("backward_ns")
    assert device.host_ns == 8 * MS, "taking marks must not wait"
    # the device begins when the first launch arrives, 1 ms after the first mark
    assert dict(laps) == {"forward_ns": 31 * MS, "backward_ns": 60 * MS}
    assert device.host_ns == 96 * MS


def test_waiting_for_data_is_what_the_device_waits_for():
    device = Device()
    clock = device.clock()
    device.launch(10)
    laps = Laps(clock)
    device.host_ns += 25 * MS  # the loader is late while 10 ms of work are still queued
    laps.end("data_wait_ns")
    assert laps["data_wait_ns"] == 15 * MS


def test_marks_are_host_time_counted_from_the_anchor():
    device = Device()
    clock = device.clock()
    device.launch(7)
    clock.mark().synchronize()
    clock.anchor()
    device.launch(3)
    expected = device.host_ns + 3 * MS
    assert clock.read(clock.mark()) == expected
    assert clock.read(12) == 12, "a host's mark stays as it is"


def test_host_clock_sums_micro_batches():
    laps = Laps(HostClock())
    begin = laps.start
    for _ in range(2):
        time.sleep(0.002)
        laps.end("forward_ns")
        laps.end("backward_ns")
    end = time.monotonic_ns()
    assert 4 * MS <= laps["forward_ns"] <= end - begin
    assert sum(laps.values()) <= end - begin
    assert len(laps) == 2
    with pytest.raises(KeyError):
        laps["data_wait_ns"]


def test_collective_ends_when_the_device_has_done_it():
    torch = pytest.importorskip("torch", reason="needs evalharness[record]")
    from injectors.recorder.communication import Communication

    device = Device()
    context = SimpleNamespace(rank=1, settings={"bucket_mb": 1.0}, knobs={})
    communication = Communication(context, device.clock())
    communication.start(0)
    with communication.noted("all_reduce", torch.zeros(6)):
        device.launch(40)
    with communication.noted("all_gather", torch.zeros(2)):
        device.launch(20)
    first, second = communication.stop()
    assert (first["completed_ns"], second["completed_ns"]) == (46 * MS, 66 * MS)
    assert (first["bytes"], first["op"], first["state"]) == (24, "all_reduce", "completed")
    assert first["seq"] < second["seq"]


def test_cuda_phases_add_up_to_the_time_that_the_gpu_took():
    torch = pytest.importorskip("torch", reason="needs evalharness[record]")
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    clock = clock_of(torch.device("cuda", 0))
    a = torch.randn(4096, 4096, device="cuda")
    a @ a
    torch.cuda.synchronize()
    clock.anchor()
    begin = time.monotonic_ns()
    laps = Laps(clock)
    for name in ("forward_ns", "backward_ns"):
        for _ in range(10):
            a @ a
        laps.end(name)
    launched = time.monotonic_ns() - begin
    torch.cuda.synchronize()
    took = time.monotonic_ns() - begin
    assert launched < took / 2, "the host must be ahead, else this shows nothing"
    assert 0.8 * took < sum(laps.values()) <= 1.02 * took
    assert laps["forward_ns"] == pytest.approx(laps["backward_ns"], rel=0.3)
    assert abs(clock.read(laps.start) - begin) < 2 * MS

"""What the sampler makes of GPU samples."""

from injectors.recorder.sampler import Sampler


class Nvml:
    """Two devices, the second without NVLink; counters grow by 7 and 9 bytes a sample."""

    count = 1000

    def sample(self, time_ns):
        self.count += 1
        first = {"nvlink_tx_bytes": self.count * 7, "nvlink_rx_bytes": self.count * 9}
        second = dict.fromkeys(first)
        return [{"rank": i, "time_ns": time_ns, **row} for i, row in enumerate((first, second))]


def test_nvlink_counters_begin_at_zero_in_every_recording():
    nvml = Nvml()
    for _ in range(2):
        with Sampler({}, frozenset(), None, start_ns=0, nvml=nvml) as sampler:
            pass
        rows = sampler.tables()["gpu"]
        assert [row["rank"] for row in rows] == [0, 1, 0, 1]
        assert [row["nvlink_tx_bytes"] for row in rows] == [0, None, 7, None]
        assert [row["nvlink_rx_bytes"] for row in rows] == [0, None, 9, None]
        assert rows[2]["time_ns"] > rows[0]["time_ns"]


def test_no_gpu_rows_without_nvml():
    with Sampler({}, frozenset(), None, start_ns=0) as sampler:
        pass
    assert sampler.tables()["gpu"] == []

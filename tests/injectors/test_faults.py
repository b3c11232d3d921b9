"""What every fault and decoy must satisfy, looped over the tables."""

import inspect
import math
import time
from contextlib import contextmanager

import pytest

from cases.taxonomy import Taxonomy
from injectors import matrix
from injectors.decoys import DECOYS
from injectors.faults import FAULTS
from injectors.recorder.knobs import DEFAULTS, Knobs
from injectors.workloads.storage import Storage

PARAMETERS = {
    "storage_fetch_stall": {"megabytes_per_s": 2},
    "dataloader_cpu_bound": {"decode_passes": 20},
    "slow_link": {"rank": 1, "rate_mbit_per_s": 100},
    "unfused_kernels": {"layers": 2},
    "cpu_contention_colocated": {"processes": 1},
    "memory_bandwidth_contention": {},
    "hidden_slow_read": {"megabytes_per_s": 20},
}
ALL = {**FAULTS, **DECOYS}


class FakeRun:
    """Records what an injection reaches for."""

    def __init__(self):
        self.knobs = Knobs()
        self.log = []

    @property
    def network(self):
        return self

    @contextmanager
    def shaped(self, rank, rate):
        self.log.append(("shaped", rank, rate))
        yield
        self.log.append("lifted")

    @contextmanager
    def competitors(self, *what):
        self.log.append(what)
        yield
        self.log.append("gone")


def state(run):
    return {name: run.knobs[name] for name in DEFAULTS}


@pytest.mark.parametrize("name", ALL)
def test_acts_and_undoes_itself_on_every_exit(name):
    injection = ALL[name].model_validate(PARAMETERS.get(name, {}))
    run = FakeRun()
    with pytest.raises(RuntimeError, match="broken"), injection.inject(run):
        assert state(run) != DEFAULTS or run.log, "nothing was changed"
        raise RuntimeError("broken")
    assert state(run) == DEFAULTS


@pytest.mark.parametrize("cause", FAULTS)
def test_fault_is_in_the_taxonomy(cause):
    taxonomy = Taxonomy.load()
    fault = FAULTS[cause]
    assert fault.cause == cause
    for name in (cause, *fault.acceptable, *fault.symptoms):
        assert name in taxonomy.causes


@pytest.mark.parametrize("name", DECOYS)
def test_decoy_is_in_the_taxonomy(name):
    taxonomy = Taxonomy.load()
    assert name in taxonomy.decoys
    assert all(cause in taxonomy.causes for cause in DECOYS[name].looks_like)


@pytest.mark.parametrize("cause", FAULTS)
def test_fault_states_mechanism_and_source(cause):
    words = inspect.getdoc(FAULTS[cause]) or ""
    assert "Mechanism:" in words
    assert "Source:" in words


@pytest.mark.parametrize("name", ALL)
def test_needs_are_known_capabilities(name):
    assert set(ALL[name].needs) <= set(matrix.CAPABILITIES)


@pytest.mark.parametrize("cause", FAULTS)
def test_witness_can_be_asked_and_is_false_where_nothing_was_recorded(cause, tiny_suite):
    from cases.bundle import Suite
    from cases.witness import holds

    suite = Suite.open(tiny_suite)
    sql, says = FAULTS[cause].model_validate(PARAMETERS.get(cause, {})).witness()
    assert says
    for case_id in suite.case_ids:
        assert isinstance(holds(suite.case(case_id), sql), bool)


def test_storage_shares_one_bandwidth(tmp_path):
    (tmp_path / "a").write_bytes(b"x" * 20_000)
    knobs = Knobs()
    storage = Storage(tmp_path, knobs)
    begin = time.monotonic()
    for _ in range(5):
        storage.read("a")
    free = time.monotonic() - begin
    with knobs.turned(storage_bytes_per_s=1e6):
        begin = time.monotonic()
        for _ in range(5):
            assert len(storage.read("a")) == 20_000
        slow = time.monotonic() - begin
    assert slow >= 0.1  # 100,000 bytes at 1 MB/s
    assert free < slow / 2
    assert math.isinf(knobs["storage_bytes_per_s"])

"""An engine's part of a job: its own ranks and host, counted from 0."""

from __future__ import annotations

import pytest

from injectors.sim.job import ONE
from injectors.sim.serving.part import engine_part
from injectors.sim.serving.setup import engine_name, prefill_engines
from tests.injectors.sim.serving.jobs import serving_job


def test_settings_by_rank_and_host_go_to_the_engine_that_has_them() -> None:
    job = serving_job(ranks=4, engines=2)
    job.gpus.neighbours = {1: 2, 3: 1}
    job.gpus.device_of = {3: 2}
    job.host.hogs = {1: 5}
    job.host.suspended_q16 = {0: ONE // 4}
    job.host.shared_core = (2, 3)
    job.host.polled_hosts = (1,)
    job.network.nvlink_q16 = {2: 0}
    first, second = engine_part(job, 0), engine_part(job, 1)
    assert (first.gpus.neighbours, second.gpus.neighbours) == ({1: 2}, {1: 1})
    assert (first.gpus.device_of, second.gpus.device_of) == ({}, {1: 0})
    assert (first.host.hogs, second.host.hogs) == ({}, {0: 5})
    assert (first.host.suspended_q16, second.host.suspended_q16) == ({0: ONE // 4}, {})
    assert (first.host.shared_core, second.host.shared_core) == ((), (0, 1))
    assert (first.host.polled_hosts, second.host.polled_hosts) == ((), (0,))
    assert (first.network.nvlink_q16, second.network.nvlink_q16) == ({}, {0: 0})
    assert first.places.ranks == 2 and first.places.hosts == 1
    assert first.seed != second.seed
    assert job.gpus.neighbours == {1: 2, 3: 1}


def test_every_setting_by_rank_or_host_is_cut() -> None:
    job = serving_job(ranks=2, engines=2)
    for settings in (job.host, job.gpus):
        for name, value in vars(settings).items():
            if isinstance(value, dict):
                setattr(settings, name, {0: 7, 1: 7})
    part = engine_part(job, 1)
    for settings in (part.host, part.gpus):
        for name, value in vars(settings).items():
            if isinstance(value, dict):
                assert list(value) == [0], name


def test_names_tell_the_pools() -> None:
    job = serving_job(ranks=4, engines=4, disaggregated=True)
    names = [engine_name(job, number) for number in range(4)]
    assert names == ["prefill0", "prefill1", "decode2", "decode3"]
    assert engine_name(serving_job(), 0) == "engine0"
    job.serving.engines = 1
    with pytest.raises(ValueError, match="at least 2 for two pools, got 1"):
        prefill_engines(job)

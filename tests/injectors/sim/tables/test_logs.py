import re

import pytest

from injectors.sim.clocks import clocks
from injectors.sim.job import ONE, Places
from injectors.sim.left_over import PROGRESS
from injectors.sim.tables.logs import log_table
from injectors.sim.tables.nccl_words import nccl_lines


def words(job, made) -> list[str]:
    run = made(job)
    return log_table(run, clocks(job))["message"].tolist()


def test_an_ordinary_job_says_how_its_ranks_reach_each_other(make_job):
    lines = [*nccl_lines(make_job())]
    assert "NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM" in lines
    assert "NCCL INFO Channel 00/0 : 3[1] -> 0[0] [receive] via NET/IB/0/GDRDMA" in lines
    assert "NCCL INFO Using network IB" in lines
    assert all(line.startswith("NCCL INFO ") for line in lines)


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"transport": "socket"}, "NET/IB : No device found."),
        ({"transport": "socket"}, "Channel 00/0 : 3[1] -> 0[0] [receive] via NET/Socket/0"),
        ({"transport": "roce"}, "NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE"),
        ({"peer_access": False}, "Channel 00/0 : 0[0] -> 1[1] via SHM/direct/direct"),
        ({"protocol": "LL"}, "NCCL_PROTO set by environment to LL"),
        ({"algorithm": "Tree"}, "NCCL_ALGO set by environment to Tree"),
        ({"channels_q16": ONE // 6}, "NCCL_MAX_NCHANNELS set by environment to 4"),
    ],
)
def test_settings_and_transports_are_told(make_job, settings, line):
    plain, job = [*nccl_lines(make_job())], make_job()
    for name, value in settings.items():
        setattr(job.network, name, value)
    assert any(line in found for found in nccl_lines(job))
    assert not any(line in found for found in plain)


def test_a_version_is_named_where_the_job_has_one(make_job):
    job = make_job()
    assert not any("version" in line for line in nccl_lines(job))
    job.versions = {"nccl": "2.21.5", "cuda": "12.4"}
    assert next(nccl_lines(job)) == "NCCL version 2.21.5+cuda12.4"


def test_one_rank_and_ranks_on_cpus_do_without_nccl(make_job):
    assert not [*nccl_lines(make_job(places=Places(ranks=1, per_host=1)))]
    assert not [*nccl_lines(make_job(machine="cpu"))]


def test_progress_is_told_every_ten_steps(made, job, monkeypatch):
    monkeypatch.setattr("injectors.sim.tables.logs.LOG_EVERY", 2)
    lines = [line for line in words(job, made) if re.match(PROGRESS, line)]
    assert len(lines) == 1
    assert re.fullmatch(r"step 2: loss \d+\.\d{3}, 100\.0 ms/step", lines[0])


def test_checkpoints_are_told_by_who_saves(made, job):
    job.checkpoint.every, job.checkpoint.bytes = 2, 3 * 10**9
    assert "saved checkpoint of 3000 MB after step 1" in words(job, made)
    job.checkpoint.asynchronous = True
    assert "saving checkpoint of 3000 MB after step 1" in words(job, made)


def test_dynamo_warns_of_functions_that_it_left(made, job):
    assert not any("torch._dynamo" in line for line in words(job, made))
    job.framework.compiled_share_q16 = ONE // 2
    warning = "torch._dynamo hit config.recompile_limit (8) function: 'layer2.forward'"
    assert warning in words(job, made)


def test_torch_warns_where_workers_are_more_than_a_ranks_cores(made, job):
    assert not any("DataLoader" in line for line in words(job, made))
    job.host.shared_core = (1,)
    run = made(job)
    found = log_table(run, clocks(job))
    warned = found[found["message"].str.contains("DataLoader")]
    assert warned["rank"].tolist() == [1]
    assert set(warned["level"]) == {"WARNING"}

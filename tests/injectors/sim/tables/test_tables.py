"""All tables together, of the hand-written run and of simulated ones."""

from dataclasses import replace

import pandas as pd
import pytest

from cases.digest import table_digest
from cases.tables import TABLES, to_arrow
from injectors.sim.job import Job, Loader, Places
from injectors.sim.machine import MACHINES
from injectors.sim.run import simulate
from injectors.sim.tables import tables
from injectors.sim.tables.activity import activity
from injectors.sim.tables.processes import thinned
from injectors.sim.workloads.data_parallel import DdpTransformer
from injectors.sim.workloads.experts import MoeTransformer
from injectors.sim.workloads.pipeline import PipelineTransformer
from injectors.sim.workloads.vision import Vision

SMALL = {"layers": 2, "hidden": 1024, "heads": 8, "sequence": 1024, "vocabulary": 8000}
# The same on every machine and under every version of numpy, pandas and pyarrow.
GOLDEN = {
    "steps": "sha256:55d81b4483fbeacf5e68b724a328a1b72092af13fa53b9e7f8ec36d5268070d8",
    "collectives": "sha256:c4dd338eb6210ecf8d8bc607f35fe67eecd3b96a8c6f61652960dd78f8fc0c36",
    "gpu": "sha256:ac870492cb52edd9d7ab6a18c13ee290d7190bc464c6e468b49e196943ddf041",
    "loader": "sha256:525506b893d162ab33d50e39c922a24088f26b4aa647ff4fa45b266d41f61233",
    "logs": "sha256:c42f66e1b774ca2d4caf75b743d8a08cb48e7758a7d4fa6a795679a2b724fca2",
}


def simulated_job(workload=None, ranks: int = 4) -> Job:
    workload = workload or DdpTransformer(**SMALL)
    machine = replace(MACHINES["h100"], gpus_per_host=2)
    job = Job(workload, machine, workload.places(ranks, machine), 3, steps=60, profiled_steps=1)
    workload.set_up(job)
    return job


def simulated(job: Job) -> dict[str, pd.DataFrame]:
    return tables(simulate(job, job.workload.compile(job), (0,)))


WORKLOADS = {
    "data": DdpTransformer(**SMALL),
    "pipeline": PipelineTransformer(**{**SMALL, "layers": 4}, pipeline=2),
    "experts": MoeTransformer(**SMALL, experts=4, expert_parallel=2, expert_hidden=256),
    "images": Vision(blocks=(1, 1), pixels=64, micro_batch=16, workers=2),
}


@pytest.mark.parametrize("name", WORKLOADS)
def test_every_table_is_as_declared_and_in_order(name):
    for table, frame in simulated(simulated_job(WORKLOADS[name])).items():
        assert list(frame) == list(TABLES[table].columns) or {*frame} == {*TABLES[table].columns}
        arrow = to_arrow(table, frame)
        assert arrow.num_rows == len(frame)
        for column in TABLES[table].growth:
            assert len(arrow) and arrow[column].to_pandas().min() >= 0


def test_a_job_has_the_tables_that_it_can_have():
    assert {*simulated(simulated_job())} == {*TABLES} - {"requests", "engine", "jobs"}
    alone = simulated(simulated_job(ranks=1))
    assert {"network", "collectives"}.isdisjoint(alone)
    job = simulated_job(ranks=2)
    job.machine = MACHINES["cpu"]
    job.places = Places(ranks=2, per_host=2, data=2)
    assert "gpu" not in simulated(job) and "network" in simulated(job)


def test_the_same_job_gives_the_same_tables():
    first, second = (simulated(simulated_job()) for _ in range(2))
    for name, frame in first.items():
        pd.testing.assert_frame_equal(frame, second[name])


def test_what_a_fault_has_nothing_to_do_with_stays_as_it_was():
    usual, job = simulated(simulated_job()), simulated_job()
    job.gpus.neighbours = {3: 2}
    broken = simulated(job)
    agents = [t["processes"].query("role == 'other'") for t in (usual, broken)]
    both = agents[0].merge(agents[1], on=["process", "time_ns"])
    assert len(both) > 5 and (both["cpu_ns_x"] == both["cpu_ns_y"]).all()
    columns = ["rank", "worker", "batch", "fetch_ns", "read_ns", "read_bytes"]
    assert usual["loader"][columns].equals(broken["loader"][columns])
    loads = [t["runtime"].query("event == 'sequence_lengths'")["value"] for t in (usual, broken)]
    assert loads[0].tolist() == loads[1].tolist()
    times = [t["gpu"].groupby("rank")["time_ns"].min() for t in (usual, broken)]
    assert times[0].tolist() == times[1].tolist()


def test_steps_add_up_to_the_run():
    steps = simulated(simulated_job())["steps"]
    phases = ["data_wait_ns", "forward_ns", "backward_ns", "optimizer_ns", "checkpoint_ns"]
    rest = steps["duration_ns"] - steps[phases].sum(axis=1)
    assert (rest > -1000).all()
    gaps = steps["start_ns"].shift(-1) - steps["start_ns"] - steps["duration_ns"]
    inside = steps["rank"].shift(-1) == steps["rank"]
    assert (gaps[inside] == 0).all()


def test_counters_lose_nothing_where_samples_are_missed():
    job = simulated_job()
    run = simulate(job, job.workload.compile(job), (0,))
    found = tables(run)["network"].groupby("rank").agg({"tx_bytes": "sum", "time_ns": "max"})
    one_step = 2 * 3 / 4 / 2 * sum(
        op.label.collective.bytes for op in run.program.ops if op.label.collective
    )  # fmt: skip
    steps = found["time_ns"] / (run.marks["end"].max() / job.steps)
    share = found["tx_bytes"] / 1.02 / (one_step * steps)
    assert share.between(0.8, 1.0).all()


@pytest.mark.parametrize("workers", [0, 3])
def test_loaders_with_and_without_workers(workers):
    job = simulated_job()
    job.loader = Loader(workers=workers, decode_ns=3_000_000)
    found = simulated(job)
    roles = set(found["processes"]["role"])
    assert ("loader_worker" in roles) == bool(workers)
    assert found["loader"]["queue_depth"].isna().all() == (not workers)
    assert (found["loader"]["fetch_ns"] >= found["loader"]["read_ns"]).all()


@pytest.mark.parametrize("name", sorted(GOLDEN))
def test_a_hand_written_run_gives_these_very_tables(made, name):
    assert table_digest(name, to_arrow(name, tables(made())[name])) == GOLDEN[name]


def test_processes_of_a_large_job_are_sampled_less_often():
    job = simulated_job(ranks=64)
    run = simulate(job, job.workload.compile(job), (0,))
    done = activity(run)
    assert thinned(run, done.samples, 1).true_ns.shape == done.samples.true_ns.shape
    few = thinned(run, done.samples, 10**9)
    # 64 ranks with 4 workers each, 60 s, ten samples a second: 8 times as many as there may be.
    assert few.true_ns.shape[1] == -(-done.samples.true_ns.shape[1] // 8)

import numpy as np
import pytest

from injectors.sim.job import ONE, Places
from injectors.sim.program import Collective, Kind, Label, Op, Program
from injectors.sim.run import Collected
from injectors.sim.tables.traffic import payload, traffic, ways

PLACES = Places(ranks=4, per_host=2, data=4)
BYTES = 1_200


def one_op(name: str, kind: Kind = Kind.COLLECTIVE, **fields) -> Program:
    label = Label(collective=Collective(name, BYTES, "float", "world", 4))
    op = Op(kind, "op", label=label, groups="world", **fields)
    return Program(4, [op], {"world": [[0, 1, 2, 3]]})


@pytest.mark.parametrize(
    ("name", "within", "beyond"),
    [
        # Of a ring of 4 ranks on 2 hosts every second hop leaves a host.
        ("allreduce", 0.75, 0.75),
        ("_reduce_scatter_base", 0.375, 0.375),
        ("_allgather_base", 1.5, 1.5),  # of the part that a rank has
        ("all_to_allv", 0.25, 0.5),
    ],
)
def test_what_a_rank_sends_where(make_job, name, within, beyond):
    way = ways(one_op(name), make_job(places=PLACES))["op"]
    assert way.within_q16.tolist() == [within * ONE] * 4
    assert way.beyond_q16.tolist() == [beyond * ONE] * 4


def test_on_one_host_nothing_leaves_it(make_job):
    job = make_job(places=Places(ranks=4, per_host=4, data=4))
    way = ways(one_op("allreduce"), job)["op"]
    assert not way.crosses
    assert way.within_q16.tolist() == [1.5 * ONE] * 4


def test_ranks_on_cpus_have_an_interface_each(make_job):
    job = make_job(machine="cpu", places=Places(ranks=4, per_host=4, data=4))
    way = ways(one_op("allreduce"), job)["op"]
    assert way.beyond_q16.tolist() == [1.5 * ONE] * 4


def test_a_sender_and_its_receiver_count_the_same_bytes(make_job, made):
    program = one_op("send", Kind.SEND, ranks=(0, 1), peers=(1, 2))
    recv = Label(collective=Collective("recv", BYTES, "float", "world", 4))
    program.ops.append(Op(Kind.RECV, "recv", label=recv, ranks=(1, 2), peers=(0, 1), pair="op"))
    run = made()
    run.job, run.program = make_job(places=PLACES), program
    run.marks = {"end": np.full((3, 4), 10)}
    for conditions in run.conditions:
        conditions.work_q16 = np.full((1, 4), ONE)
    there = {"op": [1, 1, -1, -1], "recv": [-1, 1, 1, -1]}
    for path, host in there.items():
        run.collectives[path] = Collected(*[np.tile(host, (3, 1))] * 4)
    found = traffic(run)
    assert found.local_tx[0].tolist() == [BYTES, 0, 0, 0]
    assert found.local_rx[0].tolist() == [0, BYTES, 0, 0]
    assert found.nic_tx[0].tolist() == [0, BYTES, 0, 0]
    assert found.nic_rx[0].tolist() == [0, 0, BYTES, 0]


def test_an_all_gather_puts_in_a_part(made):
    run = made()
    label = Label(collective=Collective("_allgather_base", BYTES, "float", "default_pg", 2))
    assert payload(run, Op(Kind.COLLECTIVE, "op", label=label)).tolist() == [[600, 600]] * 3


def test_what_experts_give_back_follows_their_load(made):
    run = made()
    run.program.work_rows.append("experts")
    for found in run.conditions:
        found.work_q16 = np.concatenate([found.work_q16, [[2 * ONE, ONE // 2]]])
    label = Label(collective=Collective("all_to_allv", BYTES, "float", "expert", 2))
    paths = {
        "m0/forward/layer0/dispatch/tokens": [1200, 1200],
        "m0/forward/layer0/combine/tokens": [2400, 600],
        "m0/backward/layer0/dispatch/tokens": [2400, 600],
    }
    for path, sent in paths.items():
        assert payload(run, Op(Kind.COLLECTIVE, path, label=label))[0].tolist() == sent


def test_traffic_of_a_run_is_its_collectives(made):
    found = traffic(made())
    # An all-reduce of 8 MB over two ranks on two hosts: each sends half of it twice.
    assert found.nic_tx.tolist() == [[8_000_000] * 2] * 3
    assert not found.local_tx.any()

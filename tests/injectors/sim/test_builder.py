from __future__ import annotations

import pytest

from injectors.sim.builder import PAUSES, Builder
from injectors.sim.job import Job, Places
from injectors.sim.launches import Exchange
from injectors.sim.machine import MACHINES
from injectors.sim.program import Kind, Stream, Thread
from injectors.sim.workloads.data_parallel import DdpTransformer

TWO_HOSTS = Places(ranks=16, per_host=8, data=16)


def builder(places: Places = TWO_HOSTS, machine: str = "h100") -> Builder:
    return Builder(Job(DdpTransformer(), MACHINES[machine], places, 1, 4, 2))


def test_paths_are_parts_and_names_and_new() -> None:
    made = builder()
    with made.under("m0"), made.under("forward"):
        assert made.host("enter", 1).path == "m0/forward/enter"
        with made.at("pause"):
            assert made.host("gc", 1).path == "pause/gc"
        with pytest.raises(ValueError, match="must be new, got 'm0/forward/enter' again"):
            made.host("enter", 1)


def test_a_span_holds_the_ops_of_its_thread() -> None:
    made = builder()
    with made.under("m0", "step"):
        made.host("first", 1)
        with made.on(Thread.AUTOGRAD):
            made.host("other", 1)
    with made.under("m1", "nothing"):
        pass
    spans = [(span.name, span.first, span.last) for span in made.program.spans]
    assert spans == [("step", "m0/first", "m0/from_autograd")]
    joins = [(op.thread, op.other) for op in made.program.ops if op.kind == Kind.JOIN]
    assert joins == [(Thread.AUTOGRAD, Thread.MAIN), (Thread.MAIN, Thread.AUTOGRAD)]


def test_pauses_have_known_names() -> None:
    made = builder()
    for name in PAUSES:
        made.pause(name)
    assert made.program.pauses == list(PAUSES)
    with pytest.raises(ValueError, match=r"pause must be one of respawn, .* got 'tea'"):
        made.pause("tea")


def test_a_waited_exchange_holds_computation_up() -> None:
    made = builder()
    made.exchange(Exchange("sum", "all_reduce", 4, "data", Stream.DATA_PARALLEL))
    kinds = [op.kind for op in made.program.ops]
    assert kinds == [Kind.COLLECTIVE, Kind.WAIT_STREAM]
    assert made.program.groups == {"data": [[*range(16)]]}
    assert made.program.transfer_rows == ["data"]
    label = made.program.ops[0].label
    assert (
        label.kernel == "ncclDevKernel_AllReduce_Sum_bf16_TREE_LL(ncclDevKernelArgsStorage<4096ul>)"
    )
    assert label.collective is not None
    assert (label.collective.group, label.collective.world) == ("default_pg", 16)


def test_on_cpus_the_thread_waits_itself() -> None:
    made = builder(Places(2, 2, data=2), "cpu")
    made.exchange(Exchange("sum", "all_reduce", 4, "data", Stream.DATA_PARALLEL))
    made.copy("batch", 100, "HtoD")
    assert [op.kind for op in made.program.ops] == [Kind.COLLECTIVE, Kind.SYNC]


def test_one_rank_exchanges_nothing() -> None:
    made = builder(Places(1, 1))
    assert made.exchange(Exchange("sum", "all_reduce", 4, "data", Stream.DATA_PARALLEL)) is None
    assert made.program.ops == []


def test_partitions_have_known_names() -> None:
    with pytest.raises(ValueError, match="partition must be one of data, tensor"):
        builder().members("friends")


def test_a_read_back_copies_and_waits_within_one_operator() -> None:
    made = builder()
    made.read_back("loss")
    assert [op.path for op in made.program.ops] == ["loss/copy", "loss/wait"]
    assert {(span.name, span.first, span.last) for span in made.program.spans} == {
        ("aten::item", "loss/copy", "loss/wait"),
        ("aten::_local_scalar_dense", "loss/copy", "loss/wait"),
    }

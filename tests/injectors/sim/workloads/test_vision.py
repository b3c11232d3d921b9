from __future__ import annotations

import pytest

from injectors.sim.costs import Costs
from injectors.sim.job import Job
from injectors.sim.launches import Launch
from injectors.sim.machine import MACHINES
from injectors.sim.program import Kind, Op, Program
from injectors.sim.program_checks import problems
from injectors.sim.run import simulate
from injectors.sim.workloads.vision import Vision

RESNET_50 = 25_557_032  # parameters, as of torchvision's model
RESNET_50_MACS = 4_089_184_256  # multiplications of an image's forward pass, as of its table


def job_of(workload: Vision, ranks: int = 8, machine: str = "h100") -> Job:
    found = MACHINES[machine]
    job = Job(workload, found, workload.places(ranks, found), seed=1, steps=4, profiled_steps=2)
    workload.set_up(job)
    return job


def kernels(program: Program) -> list[Op]:
    return [op for op in program.ops if op.kind in (Kind.KERNEL, Kind.INLINE)]


def device_ns(program: Program) -> int:
    return sum(op.fixed_ns + max(op.compute_ns, op.memory_ns) for op in kernels(program))


def test_is_a_valid_program_of_believable_size() -> None:
    program = Vision().compile(job_of(Vision()))
    assert [*problems(program)] == []
    assert 400 < len(program.ops) < 700


def test_has_the_parameters_and_the_work_of_a_resnet_50() -> None:
    workload = Vision()
    job = job_of(workload)
    layers = workload.layers(Costs(job.machine, job.framework), samples=2)
    parameters = [p.elements for layer in layers for p in layer.parameters]
    assert sum(parameters) == RESNET_50
    flops = [
        step.cost.flops
        for layer in layers
        for node in layer.nodes
        for step in node.forward
        if isinstance(step, Launch)
    ]
    assert sum(flops) == 2 * 2 * RESNET_50_MACS


def test_gradients_of_all_parameters_are_averaged_once() -> None:
    program = Vision().compile(job_of(Vision()))
    sizes = [op.label.collective.bytes for op in program.ops if op.label.collective]
    assert sum(sizes) == 2 * RESNET_50
    assert sizes[0] >= 2**20


@pytest.mark.parametrize(("precision", "kernel"), [("bf16", "bf16bf16"), ("tf32", "tf32f32")])
def test_kernels_are_those_of_the_precision(precision: str, kernel: str) -> None:
    job = job_of(Vision(), machine="a100")
    job.framework.precision = precision  # type: ignore[assignment]
    names = [op.label.kernel or "" for op in Vision().compile(job).ops]
    convolutions = [name for name in names if "implicit_gemm" in name]
    assert len(convolutions) == 3 * 53 - 1
    assert all(kernel in name and name.startswith("sm80") for name in convolutions)


def test_unfused_norms_take_more_kernels_and_more_bytes() -> None:
    job = job_of(Vision())
    fused = Vision().compile(job)
    job.framework.fused = False
    unfused = Vision().compile(job)
    assert len(kernels(unfused)) > 2 * len(kernels(fused))
    assert device_ns(unfused) > device_ns(fused)


def test_compiled_blocks_are_cheaper_for_device_and_host() -> None:
    eager, compiled = (
        Vision(compiled=choice).compile(job_of(Vision(compiled=choice))) for choice in (False, True)
    )
    assert device_ns(compiled) < device_ns(eager)
    assert sum(op.host_ns for op in compiled.ops) < sum(op.host_ns for op in eager.ops)


def test_pieces_of_a_batch_launch_all_kernels_again() -> None:
    job = job_of(Vision())
    whole = sum("implicit_gemm" in (op.label.kernel or "") for op in Vision().compile(job).ops)
    job.framework.micro_batch_split = 3
    program = Vision().compile(job)
    pieces = sum("implicit_gemm" in (op.label.kernel or "") for op in program.ops)
    assert pieces == 3 * whole
    assert program.batches == 1


def test_images_come_from_pageable_memory_where_the_loader_does_not_pin() -> None:
    job = job_of(Vision())
    pinned = Vision().compile(job)
    job.loader.pinned = False
    pageable = Vision().compile(job)
    copies = [
        {op.path: op for op in program.ops}["m0/copy/images"] for program in (pinned, pageable)
    ]
    assert copies[0].label.kernel == "Memcpy HtoD (Pinned -> Device)"
    assert copies[1].label.kernel == "Memcpy HtoD (Pageable -> Device)"
    assert copies[1].memory_ns > 3 * copies[0].memory_ns
    waits = [sum(op.kind == Kind.SYNC for op in program.ops) for program in (pinned, pageable)]
    assert waits[1] == waits[0] + 2


def test_config_has_only_numbers_and_texts() -> None:
    config = Vision().config()
    assert config["blocks"] == "3-4-6-3"
    assert all(isinstance(value, int | str | bool) for value in config.values())


@pytest.mark.parametrize(("times", "waits"), [(1, False), (4, True)])
def test_ranks_wait_for_batches_that_take_too_long_to_decode(times: int, waits: bool) -> None:
    job = job_of(Vision(), ranks=2)
    job.steps = 40
    job.loader.decode_ns *= times
    run = simulate(job, Vision().compile(job), sampled=(0,))
    assert bool(run.waited[2:].any()) == waits

from __future__ import annotations

import pytest

from injectors.sim.costs import Costs
from injectors.sim.job import Job
from injectors.sim.launches import Launch
from injectors.sim.machine import MACHINES
from injectors.sim.program import Kind, Program
from injectors.sim.program_checks import problems
from injectors.sim.run import seconds
from injectors.sim.tape import Layer
from injectors.sim.workloads.blocks import Blocks
from injectors.sim.workloads.convolution import Images
from injectors.sim.workloads.diffusion import Diffusion
from injectors.sim.workloads.unet_blocks import attend


def job_of(workload: Diffusion, ranks: int = 8) -> Job:
    machine = MACHINES["h100"]
    job = Job(workload, machine, workload.places(ranks, machine), seed=1, steps=4, profiled_steps=2)
    workload.set_up(job)
    return job


def names(program: Program, part: str) -> list[str]:
    return [op.path for op in program.ops if part in op.path]


def layers_of(workload: Diffusion) -> list[Layer]:
    job = job_of(workload)
    return workload.layers(Costs(job.machine, job.framework), workload.micro_batch)


def test_is_a_valid_program_of_believable_size() -> None:
    program = Diffusion().compile(job_of(Diffusion()))
    assert [*problems(program)] == []
    assert 600 < len(program.ops) < 1500


def test_the_encoder_of_captions_is_not_trained() -> None:
    program = Diffusion().compile(job_of(Diffusion()))
    assert names(program, "forward/text/") and not names(program, "backward/text/")
    assert not layers_of(Diffusion())[0].parameters


def test_levels_come_back_to_the_edge_that_they_left() -> None:
    layers = {layer.name: layer for layer in layers_of(Diffusion())}
    assert list(layers)[2:9] == ["down0", "down1", "down2", "middle", "up2", "up1", "up0"]
    upward = {name: any(n.name == "upsample" for n in layers[name].nodes) for name in layers}
    assert [name for name, there in upward.items() if there] == ["up1", "up0"]


def test_the_average_of_weights_is_kept_where_asked() -> None:
    kept, dropped = (
        Diffusion(averaged=choice).compile(job_of(Diffusion(averaged=choice)))
        for choice in (True, False)
    )
    assert names(kept, "average/") and not names(dropped, "average/")


@pytest.mark.parametrize("keys", [256, 64])
def test_attention_sees_all_pairs(keys: int) -> None:
    job = job_of(Diffusion())
    blocks = Blocks(Costs(job.machine, job.framework), "eager")
    node = attend(blocks, "attention", Images(2, 128, 16), keys)
    flops = sum(step.cost.flops for step in node.forward if isinstance(step, Launch))
    assert flops == 4 * 2 * 256 * keys * 128


def test_attention_falls_back_to_many_kernels() -> None:
    job = job_of(Diffusion())
    flash = Diffusion().compile(job)
    job.framework.attention = "math"
    math = Diffusion().compile(job)
    assert any("flash" in (op.label.kernel or "") for op in flash.ops)
    assert not any("flash" in (op.label.kernel or "") for op in math.ops)
    assert len(math.ops) > len(flash.ops) + 50


def test_compiled_norms_do_the_activation_as_well() -> None:
    eager, compiled = (
        Diffusion(compiled=choice).compile(job_of(Diffusion(compiled=choice)))
        for choice in (False, True)
    )
    assert any("silu" in path for path in names(eager, "down0/"))
    assert not any("silu" in path for path in names(compiled, "down0/"))
    launches = [sum(op.kind == Kind.KERNEL for op in each.ops) for each in (eager, compiled)]
    assert launches[1] < launches[0]


def test_steps_of_small_batches_take_what_launching_takes() -> None:
    took = []
    for batch in (1, 2, 8):
        workload = Diffusion(micro_batch=batch)
        job = job_of(workload, ranks=1)
        took.append(seconds(job, workload.compile(job)))
    assert took[1] < 1.02 * took[0]
    assert took[2] > 1.3 * took[0]

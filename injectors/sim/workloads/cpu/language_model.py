"""The real transformer language model as a simulated job on CPU cores."""

from __future__ import annotations

from injectors.sim.builder import Builder
from injectors.sim.job import Job
from injectors.sim.program import Program
from injectors.sim.workloads.cpu.operators import Operators, Precision, twin_of
from injectors.sim.workloads.cpu.step import CpuStep
from injectors.sim.workloads.cpu.transformer import Tokens, Transformer
from injectors.workloads.language_model import LanguageModel


def compile_language_model(job: Job, model: LanguageModel) -> Program:
    """Write the step."""
    twin = twin_of(job)
    precision: Precision = "bfloat16" if model.precision == "bfloat16" else "float32"
    if twin.settings.get("element_type") == "float64":
        precision = "float64"
    operators = Operators(twin, precision)
    transformer = Transformer(model, operators)
    rows = model.batch_size * model.sequence_length // model.lengths[0]
    builder = Builder(job)
    step = CpuStep(
        builder,
        operators,
        lambda count: transformer.layers(batch(job, model, count)),
        rows,
        model.micro_batches,
    )
    step.write()
    return builder.program


def batch(job: Job, model: LanguageModel, rows: int) -> Tokens:
    """Return the tokens of `rows` of a micro-batch's rows of the shortest sequences.

    With mixed lengths there are fewer rows of longer ones, with as many tokens; their length is
    the mean of all that come in turn.
    """
    padded = min(twin_of(job).number("padded_length"), model.longest)
    lengths = [max(length, padded) for length in model.lengths]
    counts = [
        rows * model.sequence_length // length * long
        for length, long in zip(model.lengths, lengths, strict=True)
    ]
    return Tokens(sum(counts) // len(counts), sum(lengths) // len(lengths))

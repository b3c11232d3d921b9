"""The language model: what its knobs change in a step, and what they must not change."""

import pytest
from pydantic import ValidationError

from injectors.recorder.knobs import Knobs
from injectors.workloads import LanguageModel
from injectors.workloads.base import Context

torch = pytest.importorskip(
    "torch", reason="recording needs torch: pip install 'evalharness[record]'"
)

SMALL = {"layers": 2, "d_model": 16, "heads": 2, "sequence_length": 8, "vocabulary": 32}


@pytest.fixture
def program(tmp_path):
    """Return a function that makes one rank's program; knobs are at `program.knobs`."""
    made = []

    def make(rank=0, settings=None, **parameters):
        cpu = torch.device("cpu")
        context = Context(rank, 2, 0, cpu, Knobs(), tmp_path, settings=settings or {})
        made.append(LanguageModel(**SMALL, **parameters).build(context))
        made[-1].knobs = context.knobs
        return made[-1]

    return make


def losses(program, steps=3):
    return [program.step().loss.item() for _ in range(steps)]


@pytest.mark.parametrize(
    ("parameters", "turned"),
    [
        ({}, {"pieces": 4}),
        ({}, {"pieces": 3}),
        ({"attention": "sdpa"}, {"math_layers": 2}),
        ({}, {"loop_optimizer": 1}),
        ({}, {"anomaly_every": 1}),
        ({}, {"read_backs": 100}),
        ({}, {"history_records": 100}),
        ({"max_length": 16}, {"padded_length": 16}),
        ({"micro_batches": 2}, {"sync_every": 1}),
    ],
)
def test_knobs_leave_the_training_as_it_was(program, parameters, turned):
    expected = losses(program(**parameters))
    other = program(**parameters)
    with other.knobs.turned(**turned):
        assert losses(other) == pytest.approx(expected, rel=1e-4)
    assert len(set(expected)) == 3


def test_library_attention_computes_what_the_manual_one_does(program):
    manual, library = program(), program(attention="sdpa")
    assert losses(library) == pytest.approx(losses(manual), rel=1e-4)


def operators(program):
    with torch.profiler.profile() as profile:
        program.step()
    return [event.name for event in profile.events()]


def test_autocast_casts_and_layers_can_be_left_out(program):
    narrow = program(precision="bfloat16")
    narrow.step()
    casts = operators(narrow).count("aten::_to_copy")
    with narrow.knobs.turned(full_precision_layers=2):
        fewer = operators(narrow).count("aten::_to_copy")
    assert 0 < fewer < 0.7 * casts


def test_element_type_is_that_of_gradients(program):
    wide = program(settings={"element_type": "float64"})
    wide.step()
    assert {parameter.grad.dtype for parameter in wide.model.parameters()} == {torch.float64}


def test_math_path_and_optimizer_loop_dispatch_other_operators(program):
    model = program(attention="sdpa")
    model.step()
    healthy = operators(model)
    with model.knobs.turned(math_layers=1, loop_optimizer=1):
        changed = operators(model)
    flash = "aten::_scaled_dot_product_flash_attention_for_cpu"
    assert (healthy.count(flash), changed.count(flash)) == (2, 1)
    assert changed.count("aten::_scaled_dot_product_attention_math") == 1
    assert "aten::_fused_adamw_" in healthy
    assert "aten::_fused_adamw_" not in changed


def lengths(program, steps, detail):
    program.tables(0, 0)
    tokens = [program.step().tokens for _ in range(steps)]
    rows = program.tables(0, steps)["runtime"]
    assert {row["event"] for row in rows} == {"sequence_lengths"}
    return tokens, [row["value"] for row in rows if row["detail"] == detail]


def test_padding_is_computed_but_no_part_of_the_lengths(program):
    model = program(max_length=16, batch_size=2)
    assert lengths(model, 1, "sum") == ([16], [16.0])
    with model.knobs.turned(padded_length=12):
        assert lengths(model, 1, "sum") == ([24], [16.0])
    with model.knobs.turned(padded_length=99):  # the model takes no more than 16
        assert lengths(model, 1, "sum") == ([32], [16.0])


def test_mixed_lengths_are_the_same_on_all_ranks_until_shifted(program):
    mixed = {"batch_size": 4, "max_length": 32, "mixed_lengths": True}
    first, second = program(0, **mixed), program(1, **mixed)
    squares = [4 * 8**2, 2 * 16**2, 1 * 32**2]  # 32 tokens each
    assert lengths(first, 3, "sum of squares") == ([32, 32, 32], squares)
    assert lengths(second, 3, "sum of squares") == ([32, 32, 32], squares)
    with second.knobs.turned(length_shift=1):
        assert lengths(second, 3, "sum of squares")[1] == squares[1:] + squares[:1]


def test_micro_batches_are_drawn_and_counted(program):
    model = program(micro_batches=3, batch_size=2)
    tokens, sums = lengths(model, 2, "sum")
    assert tokens == [48, 48]
    assert sums == [16.0] * 6


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"max_length": 4}, "max_length must be at least sequence_length, got 4 for 8"),
        (
            {"max_length": 32, "mixed_lengths": True, "batch_size": 3},
            "batch_size \\* sequence_length must be a multiple of 32",
        ),
    ],
)
def test_lengths_that_do_not_fit_are_refused(parameters, says):
    with pytest.raises(ValidationError, match=says):
        LanguageModel(**SMALL, **parameters)


class Model(torch.nn.Linear):
    """Stands for DDP: tells in which micro-batches gradients are left alone."""

    def no_sync(self):
        return "left alone"


@pytest.mark.parametrize(
    ("every", "averaged"), [(0, [3]), (1, [0, 1, 2, 3]), (2, [1, 3]), (3, [2, 3])]
)
def test_gradients_are_averaged_in_the_last_micro_batch_and_where_asked(program, every, averaged):
    model = program(micro_batches=4)
    model.model = Model(2, 2)
    with model.knobs.turned(sync_every=every):
        contexts = [model.accumulate(number) for number in range(4)]
    assert [n for n, context in enumerate(contexts) if context != "left alone"] == averaged

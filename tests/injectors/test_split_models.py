"""Models split over ranks compute what the whole model does; checked on forked gloo ranks."""

import json
import multiprocessing
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="workloads need torch: pip install 'evalharness[record]'")

import torch
from torch.nn import functional

from injectors.recorder.clock import HostClock
from injectors.recorder.communication import Communication
from injectors.recorder.knobs import Knobs
from injectors.scenario import SETTINGS
from injectors.workloads import (
    WORKLOADS,
    Context,
    MixtureOfExperts,
    Pipeline,
    Recommendation,
)
from injectors.workloads.embeddings import RecommendationModel
from injectors.workloads.exchange import Exchange, Loads
from injectors.workloads.experts import Mixture
from injectors.workloads.transformer import Transformer

PIPELINE = Pipeline(
    layers=4, d_model=16, heads=2, sequence_length=6, batch_size=2, micro_batches=3, vocabulary=11
)
EXPERTS = MixtureOfExperts(
    layers=2, d_model=16, hidden=8, heads=2, sequence_length=8, batch_size=2, vocabulary=11
)
CLICKS = Recommendation(tables=3, rows=10, width=4, lookups=5, hidden=8, batch_size=6)


@dataclass
class Job:
    """Ranks of one job in processes of their own."""

    workload: object
    folder: Path
    ranks: int = 2

    def context(self, rank, ranks, knobs, settings):
        device = torch.device("cpu")
        return Context(
            rank, ranks, 7, device, knobs, self.folder, settings={**SETTINGS, **settings}
        )

    def run(self, steps=1, settings=None, **knobs):
        """Return of each rank: losses, gradients by name, collectives and further tables.

        The ranks are forked by a process in which torch has not computed yet: one that has owns
        threads, which a fork loses.
        """
        name = next(name for name, kind in WORKLOADS.items() if type(self.workload) is kind)
        job = [name, self.workload.model_dump(), str(self.folder), self.ranks]
        line = [sys.executable, __file__, json.dumps([job, steps, settings or {}, knobs])]
        root = str(Path(__file__).parents[2])
        done = subprocess.run(
            line,
            env={**os.environ, "PYTHONPATH": root},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        return [torch.load(self.folder / f"{rank}.pt") for rank in range(self.ranks)]

    def fork(self, *arguments):
        """Run every rank and say whether all ended well."""
        fork = multiprocessing.get_context("fork")
        processes = [
            fork.Process(target=self._rank, args=(rank, *arguments)) for rank in range(self.ranks)
        ]
        for process in processes:
            process.start()
        for process in processes:
            process.join(60)
        return [process.exitcode for process in processes] == [0] * self.ranks

    def _rank(self, rank, steps, settings, turned):
        torch.set_num_threads(1)
        torch.distributed.init_process_group(
            "gloo", init_method=f"file://{self.folder}/store", rank=rank, world_size=self.ranks
        )
        knobs = Knobs()
        context = self.context(rank, self.ranks, knobs, settings)
        program = self.workload.build(context)
        communication = Communication(context, HostClock())
        program.connect(communication)
        communication.start(0)
        with knobs.turned(**turned):
            taken = [program.step() for _ in range(steps)]
        found = {
            "losses": [None if step.loss is None else step.loss.item() for step in taken],
            "phases": [dict(step.phases) for step in taken],
            "gradients": {
                name.removeprefix("module."): parameter.grad.to_dense()
                for name, parameter in program.model.named_parameters()
                if parameter.grad is not None
            },
            "collectives": communication.stop(),
            "tables": program.tables(0, steps),
        }
        torch.save(found, self.folder / f"{rank}.pt")
        torch.distributed.destroy_process_group()


@pytest.fixture
def alone(tmp_path):
    """Make the program of a job that is one rank."""
    return lambda workload: workload.build(Job(workload, tmp_path).context(0, 1, Knobs(), {}))


def assert_alike(found, wanted, names):
    assert set(found) == set(names)
    for name, whole in names.items():
        torch.testing.assert_close(found[name], wanted[whole], rtol=1e-4, atol=1e-6, msg=name)


def whole_pipeline():
    """Loss and gradients of the unsplit transformer on all micro-batches at once."""
    torch.manual_seed(7)
    model = Transformer(PIPELINE.whole(), Knobs())
    draw = torch.Generator().manual_seed(7000)
    tokens = torch.cat([torch.randint(11, (2, 7), generator=draw) for _ in range(3)])
    loss = functional.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
    loss.backward()
    return loss.item(), {name: parameter.grad for name, parameter in model.named_parameters()}


@pytest.mark.parametrize(("ranks", "moved"), [(2, 0), (2, 1), (3, 0)])
def test_pipeline_computes_what_the_whole_model_does(tmp_path, ranks, moved):
    loss, gradients = whole_pipeline()
    found = Job(PIPELINE, tmp_path, ranks).run(settings={"layers_moved": moved}, loss_shared=1.0)
    parts = {(2, 0): (2, 2), (2, 1): (1, 3), (3, 0): (1, 2, 1)}[ranks, moved]
    first = 0
    for rank, (own, size) in enumerate(zip(found, parts, strict=True)):
        assert own["losses"] == [pytest.approx(loss, rel=1e-5)]
        names = {
            name: name
            for name in gradients
            if (rank == 0 and name.startswith(("tokens", "positions")))
            or (rank == ranks - 1 and name.startswith(("norm", "head")))
        }
        for layer in range(size):
            there = [name for name in gradients if name.startswith(f"blocks.{first + layer}.")]
            names |= {f"blocks.{layer}.{name.split('.', 2)[2]}": name for name in there}
        first += size
        assert_alike(own["gradients"], gradients, names)


def test_pipeline_notes_every_transfer_and_times_computing_alone(tmp_path):
    first, last = Job(PIPELINE, tmp_path).run(step_barrier=1.0)
    for own, ways in ((first, ("send", "recv")), (last, ("recv", "send"))):
        ops = [row["op"] for row in own["collectives"]]
        assert ops.count("send") == ops.count("recv") == 3
        assert ops[0] == ways[0]
        assert ops[-1] == "barrier"
        assert all(row["completed_ns"] >= row["created_ns"] for row in own["collectives"])
        assert {row["bytes"] for row in own["collectives"][:-1]} == {2 * 6 * 16 * 4}
        (phases,) = own["phases"]
        assert set(phases) == {"data_wait_ns", "forward_ns", "backward_ns", "optimizer_ns"}
        assert min(phases["forward_ns"], phases["backward_ns"]) > 0
    assert first["losses"] == [None]


def test_pipeline_of_one_rank_is_the_whole_model(alone):
    loss, gradients = whole_pipeline()
    program = alone(PIPELINE)
    assert program.step().loss.item() == pytest.approx(loss, rel=1e-5)
    own = {name: parameter.grad for name, parameter in program.model.named_parameters()}
    assert_alike(own, gradients, {name: name for name in gradients})


def dense(layer, x):
    """Apply a layer's experts one after the other, to all tokens."""
    scores = layer.router(x)
    weights = scores.softmax(-1)
    chosen = scores.argmax(-1)
    total = torch.zeros_like(x)
    for number, expert in enumerate(layer.experts):
        total = total + (chosen == number)[:, None] * weights[:, number : number + 1] * expert(x)
    return total


def both_ranks_batches(program):
    """The batches that two ranks draw in their first step."""
    found = []
    for rank in range(2):
        program._generator.manual_seed(7000 + rank)
        found.append(program.next_batch())
    return found


def mean_loss(program, batches):
    loss = sum(program.forward(batch) for batch in batches) / len(batches)
    loss.backward()
    return {name: parameter.grad for name, parameter in program.model.named_parameters()}


def test_experts_on_two_ranks_equal_a_dense_loop(tmp_path, alone, monkeypatch):
    found = Job(EXPERTS, tmp_path).run()
    program = alone(EXPERTS)
    monkeypatch.setattr(Mixture, "forward", dense)
    gradients = mean_loss(program, both_ranks_batches(program))
    for rank, own in enumerate(found):
        names = {name: name for name in gradients if ".experts." not in name}
        for layer in range(2):
            for expert in range(2):
                here = f"blocks.{layer}.mixture.experts.{expert}."
                there = f"blocks.{layer}.mixture.experts.{2 * rank + expert}."
                names |= {
                    here + name.removeprefix(there): name
                    for name in gradients
                    if name.startswith(there)
                }
        assert_alike(own["gradients"], gradients, names)


def test_bias_moves_tokens_to_the_experts_of_its_rank(tmp_path):
    for bias, share in ((0.0, (0.2, 0.8)), (50.0, (1.0, 1.0))):
        folder = tmp_path / str(bias)
        folder.mkdir()
        found = Job(EXPERTS, folder).run(expert_bias=bias, expert_bias_rank=1.0)
        given = [sum(row["value"] for row in own["tables"]["runtime"]) for own in found]
        assert sum(given) == 2 * 2 * 2 * 8  # ranks, layers, sequences, tokens
        assert share[0] <= given[1] / sum(given) <= share[1]


def test_one_way_there_and_one_back_in_either_direction(tmp_path):
    for own in Job(EXPERTS, tmp_path).run(busy_poll=1.0):
        groups = [row["process_group"] for row in own["collectives"] if row["op"] == "all_to_all"]
        # Per layer: how many, the tokens, and the results; then the gradients of both.
        assert groups == ["expert"] * 2 * (3 + 2)
        assert all(row["completed_ns"] is not None for row in own["collectives"])


def test_sharded_embedding_equals_the_whole_table(tmp_path, alone, monkeypatch):
    found = Job(CLICKS, tmp_path).run()
    program = alone(CLICKS)
    table = program.model.embedding
    monkeypatch.setattr(
        type(table), "forward", lambda self, ids: functional.embedding(ids, self.weight)
    )
    gradients = mean_loss(program, both_ranks_batches(program))
    assert gradients["embedding.weight"].any()
    for rank, own in enumerate(found):
        shard = gradients | {"embedding.weight": gradients["embedding.weight"][rank::2]}
        assert_alike(own["gradients"], shard, {name: name for name in gradients})


def test_popular_rows_are_all_served_by_their_rank(tmp_path):
    found = Job(CLICKS, tmp_path).run(popular_lookups=1.0, popular_rank=1.0)
    served = [own["tables"]["runtime"][0]["value"] for own in found]
    assert served == [0, 2 * 6 * 3 * 5]  # ranks, samples, tables, look-ups


def test_lookups_are_even_without_popular_rows(tmp_path):
    found = Job(CLICKS, tmp_path).run(steps=5)
    served = [sum(row["value"] for row in own["tables"]["runtime"]) for own in found]
    assert sum(served) == 5 * 2 * 6 * 3 * 5
    assert 0.4 < served[0] / sum(served) < 0.6


def test_every_rank_must_get_its_share():
    with pytest.raises(ValueError, match="experts must be a multiple of ranks 3, got 4"):
        EXPERTS.check_ranks(3)
    with pytest.raises(ValueError, match="rows must be a multiple of ranks 3, got 10"):
        CLICKS.check_ranks(3)
    with pytest.raises(ValueError, match="each of 5 stages must keep one of the 4 layers"):
        PIPELINE.check_ranks(5)


def test_lone_model_keeps_its_rows(tmp_path):
    context = Job(CLICKS, tmp_path).context(0, 1, Knobs(), {})
    loads = Loads(0, "embedding_rows")
    model = RecommendationModel(CLICKS, context, Exchange("embedding"), loads)
    ids = torch.arange(30)
    assert torch.equal(model.embedding(ids), model.embedding.weight)
    (row,) = loads.take(0)
    assert (row["event"], row["value"]) == ("embedding_rows", 30)


if __name__ == "__main__":
    (kind, parameters, folder, ranks), *arguments = json.loads(sys.argv[1])
    job = Job(WORKLOADS[kind].model_validate(parameters), Path(folder), ranks)
    sys.exit(not job.fork(*arguments))

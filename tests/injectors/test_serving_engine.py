"""Answers of the engine are those of a plain transformer that computes everything each time."""

import math

import pytest

pytest.importorskip("torch", reason="serving needs torch: pip install 'evalharness[record]'")

import torch
from torch.nn import functional

from cases.errors import ScenarioError
from injectors.recorder.knobs import Knobs
from injectors.workloads import WORKLOADS
from injectors.workloads.base import Context
from injectors.workloads.serving.grammar import RECORDS, Grammar
from injectors.workloads.serving.vocabulary import Detokeniser, byte_tokens

SMALL = {
    "d_model": 16,
    "heads": 2,
    "vocabulary": 300,
    "block_size": 4,
    "kv_blocks": 96,
    "max_num_batched_tokens": 12,
    "tenants": 2,
    "prefix_tokens": 8,
    "prompt_tokens": 6,
    "document_tokens": 24,
    "generation_tokens": 8,
    "tokens_per_step": 60,
}
CONDITIONS = {
    "healthy": ({}, {}),
    "preempting": ({"kv_blocks": 20.0}, {}),
    "reserving": ({"kv_blocks": 20.0, "reserve_answers": 1.0}, {}),
    "whole prompts": ({"chunked_requests": 0.5}, {}),
    "uncached": ({"cached_requests": 0.5}, {}),
    "one by one": ({"max_num_seqs": 1.0}, {}),
    "drafting": ({"draft_tokens": 3.0}, {}),
    "drafting, preempting": ({"draft_tokens": 3.0, "kv_blocks": 20.0}, {}),
    "scattered": ({"sticky_requests": 0.0}, {"engines": 2}),
    "masks anew, candidates": ({"indexed_requests": 0.0, "logprobs": 5.0}, {}),
}


def serve(knobs, parameters, tmp_path, steps=3, seed=3):
    """Serve in double precision, so that no two likeliest tokens are close enough to swap."""
    settings = Knobs()
    for name, value in knobs.items():
        settings[name] = value
    context = Context(0, 1, seed, torch.device("cpu"), settings, tmp_path)
    workload = WORKLOADS["inference_server"].model_validate({**SMALL, **parameters})
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        program = workload.build(context)
    finally:
        torch.set_default_dtype(before)
    sent = [program.step().tokens for _ in range(steps)]
    assert abs(sum(sent) - steps * workload.tokens_per_step) < 40
    return program


def logits_of(model, tokens):
    """The same transformer without blocks, batches or memory; logits after the last token."""
    x = model.tokens.weight[tokens] + model.positions.weight[: len(tokens)]
    mask = torch.full((len(tokens), len(tokens)), -math.inf, dtype=x.dtype).triu(1)
    for layer in model.layers:
        split = (len(tokens), 3, layer.heads, -1)
        query, key, value = layer.qkv(layer.norm1(x)).view(split).permute(1, 2, 0, 3)
        scores = query @ key.transpose(1, 2) / math.sqrt(query.shape[-1]) + mask
        mixed = (scores.softmax(-1) @ value).transpose(0, 1).reshape(len(tokens), -1)
        x = x + layer.proj(mixed)
        x = x + layer.down(functional.gelu(layer.up(layer.norm2(x)), approximate="tanh"))
    return model.head(model.norm(x))[-1]


def plain_answer(model, grammar, request):
    """Generate an answer token by token from the prompt alone."""
    tokens, state = request.tokens[: request.prompt_tokens], grammar.start
    for _ in range(request.generation_tokens):
        logits = logits_of(model, tokens)
        if request.constrained:
            logits = logits.masked_fill(~grammar.mask(state, True), -math.inf)
        tokens = [*tokens, int(logits.argmax())]
        state = grammar.read(state, tokens[-1])
    return tokens


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    return {name: serve(*condition, folder) for name, condition in CONDITIONS.items()}


@pytest.mark.parametrize("condition", CONDITIONS)
def test_answers_are_those_of_a_plain_transformer(served, condition):
    program = served[condition]
    done = [request for engine in program.engines for request in engine.done]
    assert len(done) > 8
    assert {request.request_class for request in done} >= {"chat", "json"}
    grammar = Grammar(RECORDS, byte_tokens(SMALL["vocabulary"], 3))
    with torch.inference_mode():
        for request in done[-8:]:
            assert request.tokens == plain_answer(program.model, grammar, request)


def totals(program):
    frames = [row for engine in program.engines for row in engine._rows]
    from injectors.workloads.serving.engine import COLUMNS

    return {name: sum(row[at] for row in frames) for at, name in enumerate(COLUMNS)}, frames


def test_conditions_do_what_they_are_named_for(served):
    healthy, rows = totals(served["healthy"])
    assert healthy["num_preemptions"] == healthy["draft_tokens"] == 0
    assert healthy["prefix_cache_hits"] > 0
    assert any(row[6] and row[7] for row in rows), "prompts and decoding share steps"
    assert max(row[6] + row[7] for row in rows) <= SMALL["max_num_batched_tokens"]
    assert totals(served["preempting"])[0]["num_preemptions"] > 0
    assert totals(served["drafting, preempting"])[0]["num_preemptions"] > 0
    reserving, rows = totals(served["reserving"])
    assert reserving["num_preemptions"] == 0
    assert max(row[5] for row in rows) <= 1
    drafting, _ = totals(served["drafting"])
    assert 0 < drafting["accepted_tokens"] < drafting["draft_tokens"]
    uncached, _ = totals(served["uncached"])
    assert uncached["prefill_tokens"] > 2 * healthy["prefill_tokens"]
    assert {row[3] for row in totals(served["one by one"])[1]} == {1}


def test_blocks_all_come_back(served):
    for program in served.values():
        for engine in program.engines:
            scheduler = engine.scheduler
            held = {block for request in scheduler.running for block in request.blocks}
            assert scheduler.pool.in_use == len(held)


def test_tables_fit_their_declarations(served, tmp_path):
    import pandas as pd

    from cases.tables import to_arrow

    program = serve({}, {}, tmp_path)
    program.tables(0, 0)
    program.step()
    rows = program.tables(0, 1)
    engine = to_arrow("engine", pd.DataFrame(rows["engine"])).to_pandas()
    requests = to_arrow("requests", pd.DataFrame(rows["requests"])).to_pandas()
    assert list(engine["step"]) == list(range(len(engine)))
    assert (engine["scheduler_ns"] < engine["duration_ns"]).all()
    assert requests["request"].min() == 0
    done = requests.dropna(subset=["finished_ns"])
    assert (done["arrival_ns"] <= done["scheduled_ns"]).all()
    assert (done["scheduled_ns"] < done["first_token_ns"]).all()
    assert (done["first_token_ns"] <= done["finished_ns"]).all()
    assert (done["cached_tokens"] < done["prompt_tokens"]).all()


def test_pool_must_hold_the_longest_request(tmp_path):
    with pytest.raises(ScenarioError, match="kv_blocks"):
        serve({}, {"kv_blocks": 8}, tmp_path)


def test_idle_server_waits_for_requests(tmp_path):
    program = serve({}, {"requests_per_s": 4.0, "tokens_per_step": 8}, tmp_path, steps=1)
    waited = sum(program.step().phases["data_wait_ns"] for _ in range(2))
    assert waited > 0


def test_stream_puts_characters_together():
    texts = byte_tokens(256, 0)
    stream = Detokeniser(texts)
    pieces = [stream.answer(byte, [(65, -0.5)]) for byte in "aé".encode()]
    assert [piece.split('"')[5] for piece in pieces] == ["a", "", "\\u00e9"]
    assert all('"text": "A"' in piece for piece in pieces)

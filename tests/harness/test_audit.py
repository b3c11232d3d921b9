"""The audit finds planted leaks and is quiet where there is nothing to find."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cases.bundle import RunData, Suite, write_case, write_suite_info
from cases.documents import read_record, write_record
from cases.schema import CaseInfo, Signals
from cases.taxonomy import Taxonomy
from harness.audit import Audit, audit_suite, withheld_sets
from harness.audit.classifier import auc, separation
from harness.audit.slowness import slowness_guess
from harness.audit.tells import find_tells
from harness.audit.trivia import AUC_LIMIT, passes
from harness.audit.words import forbidden_phrases, leaked_word, word_leaks
from harness.judge import Truth, load_truths

GROUPS = 12
Plant = Callable[[CaseInfo, bool], CaseInfo]


@pytest.fixture(scope="module")
def truths(tiny_suite: Path) -> dict[str, Truth]:
    return load_truths(tiny_suite)


def _wide_suite(root: Path, tiny: Path, ids: dict[str, str], plant: Plant) -> Path:
    """Twelve groups of a faulty and a healthy case that differ in nothing but `plant`."""
    info = read_record(tiny / ids["twin_dev"] / "case.json", CaseInfo)
    info = info.model_copy(update={"signals": Signals(present=("steps",))})
    known, rng = load_truths(tiny), np.random.default_rng(3)
    for number in range(2 * GROUPS):
        faulty = number % 2 == 0
        case_id = "c" + hashlib.sha256(str(number).encode()).hexdigest()[:9]
        steps = pd.DataFrame({"rank": 0, "step": range(20)})
        steps["duration_ns"] = rng.integers(9_000_000, 11_000_000, 20)
        mine = plant(info.model_copy(update={"id": case_id}), faulty)
        tables = {"steps": steps}
        write_case(root / "corpus/wide" / case_id, mine, tables, {}, RunData(tables))
        truth = known[ids["loader_dev" if faulty else "twin_dev"]]
        new = truth.model_copy(update={"id": case_id, "group": f"g{number // 2}"})
        write_record(root / "labels/wide" / f"{case_id}.json", new)
    labels = root / "labels/wide"
    write_suite_info(root / "corpus/wide", "wide", "Wide", "public", Taxonomy.load(), labels)
    return root / "corpus/wide"


def _audited(root: Path, tiny: Path, ids: dict[str, str], plant: Plant) -> Audit:
    return audit_suite(_wide_suite(root, tiny, ids, plant), Taxonomy.load())


def test_nothing_planted_nothing_found(
    tmp_path: Path, tiny_suite: Path, tiny_ids: dict[str, str]
) -> None:
    audit = _audited(tmp_path, tiny_suite, tiny_ids, lambda info, faulty: info)
    assert audit.trivia is not None and audit.trivia.groups == GROUPS
    assert audit.trivia.p_value > 0.05
    assert audit.passed


def test_planted_title_is_found(tmp_path: Path, tiny_suite: Path, tiny_ids: dict[str, str]) -> None:
    def plant(info: CaseInfo, faulty: bool) -> CaseInfo:
        return info.model_copy(update={"title": info.title + " again"}) if faulty else info

    audit = _audited(tmp_path, tiny_suite, tiny_ids, plant)
    assert audit.trivia is not None
    assert audit.trivia.auc == 1.0 and audit.trivia.p_value < 0.01
    assert audit.words == [] and not audit.passed


def test_useless_features_are_rarely_rejected() -> None:
    groups = np.repeat([f"g{i}" for i in range(20)], 3)
    positive = np.tile([True, False, False], 20)
    rng = np.random.default_rng(0)
    found = [
        separation(pd.DataFrame(rng.normal(size=(60, 8))), positive, groups, seed)
        for seed in range(30)
    ]
    values = np.array([f.p_value for f in found if f is not None])
    assert len(values) == 30
    assert (values < 0.01).sum() <= 2
    assert 0.4 < np.mean([f.auc for f in found if f is not None]) < 0.6


def test_group_traits_are_no_leak() -> None:
    """What all cases of a group share can't tell its faulty from its healthy case."""
    groups = np.repeat([f"g{i}" for i in range(20)], 2)
    found = separation(pd.DataFrame({"group": groups}), np.tile([True, False], 20), groups)
    assert found is not None and found.auc == 0.5 and passes(found)


def test_large_suites_are_bound_by_the_upper_bound() -> None:
    groups = np.repeat([f"g{i}" for i in range(100)], 2)
    positive = np.tile([True, False], 100)
    noise = np.random.default_rng(1).normal(size=200)
    clear = separation(pd.DataFrame({"x": noise + 3 * positive}), positive, groups)
    assert clear is not None and clear.cases == 200
    assert clear.auc_high > AUC_LIMIT and not passes(clear)


def test_too_few_groups_are_not_judged() -> None:
    features = pd.DataFrame({"x": [1.0, 2.0]})
    assert separation(features, np.array([True, False]), np.array(["g", "g"])) is None
    assert passes(None)


def test_auc_by_hand() -> None:
    scores, positive = np.array([3.0, 1.0, 2.0, 2.0]), np.array([True, True, False, False])
    assert auc(scores, positive) == 0.5  # 3 beats both, 1 beats none


@pytest.mark.parametrize(
    "text",
    [
        "dataloader_cpu_bound",
        "DataloaderCpuBound",
        "rank 3: slow link",
        "injecting load",
        "cpu throttling",
        "decoy-2",
        "unhealthy",
        "noisy neighbour",
    ],
)
def test_leaking_words(text: str) -> None:
    assert leaked_word(text, forbidden_phrases(Taxonomy.load())) is not None


@pytest.mark.parametrize(
    "text",
    [
        "default",
        "aten::_slow_conv2d_backward",
        "void vllm::reshape_and_cache_flash_kernel<half, half, (vllm::Fp8KVCacheDataType)0>",
        "autograd::engine::evaluate_function: AddmmBackward0",
        "DataLoader worker 3 ready",
        "minor page faults: 12",
        "gloo:all_reduce",
        "regression",
    ],
)
def test_harmless_words(text: str) -> None:
    assert leaked_word(text, forbidden_phrases(Taxonomy.load())) is None


def test_tell_tale_bit_is_flagged(truths: dict[str, Truth], tiny_ids: dict[str, str]) -> None:
    """A flag that only the loader cases set is no decisive signal of theirs."""
    loader = {tiny_ids["loader_train"], tiny_ids["loader_dev"]}
    means = {
        case_id: {
            "gpu.event_reasons": float(case_id in loader),
            "loader.cpu_ns": 8.0 if case_id in loader else 2.0,
            "host.cores": 4.0,
        }
        for case_id in truths
    }
    tells = {tell.column: tell for tell in find_tells(means, truths, Taxonomy.load())}
    assert set(tells) == {"gpu.event_reasons", "loader.cpu_ns"}
    bit = tells["gpu.event_reasons"]
    assert (bit.cause, bit.kind, bit.cases, bit.others) == ("dataloader_cpu_bound", "bit", 2, 6)
    assert bit.flagged and not tells["loader.cpu_ns"].flagged


def test_slowness_that_tells_the_cause_is_seen(truths: dict[str, Truth]) -> None:
    loader, other = (
        next(t for t in truths.values() if t.faults and t.faults[0].cause == cause)
        for cause in ("dataloader_cpu_bound", "cpu_contention_colocated")
    )
    many = {
        f"case{i}": (loader if i % 2 else other).model_copy(update={"group": f"g{i}"})
        for i in range(30)
    }
    telling = {case_id: 3.0 if int(case_id[4:]) % 2 else 1.2 for case_id in many}
    silent = {case_id: 1.5 + 0.01 * (7 * int(case_id[4:]) % 30) for case_id in many}
    found, blind = slowness_guess(telling, many), slowness_guess(silent, many)
    assert found is not None and blind is not None
    assert found.accuracy == 1.0 and found.p_value < 0.01
    assert found.chance == pytest.approx(0.5, abs=0.1)
    assert blind.p_value > 0.05
    assert slowness_guess({}, truths) is None


def test_withheld_sets_are_counted(truths: dict[str, Truth], tiny_ids: dict[str, str]) -> None:
    absent = dict.fromkeys(truths, ())
    for role in ("undecidable_test", "loader_dev"):
        absent[tiny_ids[role]] = ("loader",)  # type: ignore[assignment]
    (found,) = withheld_sets(absent, truths)
    assert (found.signals, found.cases, found.undecidable) == (("loader",), 2, 1)
    assert found.balanced


def test_word_in_trace_metadata_is_found(tiny_copy: Path, tiny_ids: dict[str, str]) -> None:
    path = tiny_copy / tiny_ids["loader_dev"] / "traces" / "rank0.json.gz"
    trace = json.loads(gzip.decompress(path.read_bytes()))
    trace["traceEvents"].append({"ph": "M", "name": "process_name", "args": {"name": "inject_cpu"}})
    path.write_bytes(gzip.compress(json.dumps(trace).encode(), mtime=0))
    case = Suite.open(tiny_copy).case(tiny_ids["loader_dev"])
    (leak,) = word_leaks(case, path.parents[1], Taxonomy.load())
    assert (leak.place, leak.word, leak.text) == ("traces.rank0", "inject", "inject_cpu")

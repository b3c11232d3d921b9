"""A small suite for every test that needs cases with labels.

    def test_something(tiny_suite, tiny_ids):
        suite = Suite.open(tiny_suite)                  # <tmp>/corpus/tiny
        case = suite.case(tiny_ids["loader_train"])     # roles: see TINY below

`tiny_suite` is shared and must not be changed; `tiny_copy` is a copy of the test's own. Labels
lie in `<tmp>/labels/tiny`. Every case has two ranks on one host, 24 steps of about 10 ms, the
tables steps, host, processes and loader (the undecidable case without the last two), a trace
of rank 0 and a reference run; a faulty case is 1.5 times slower than its reference.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cases.bundle import RunData, write_case, write_suite_info
from cases.documents import write_record
from cases.schema import (
    JOB,
    CaseInfo,
    Decoy,
    Environment,
    Fault,
    Locus,
    Provenance,
    RankPlace,
    Signals,
    Topology,
    Workload,
)
from cases.taxonomy import Taxonomy
from cases.truth import PairedTrials, Truth, Witness

LOADER, CONTENTION = "dataloader_cpu_bound", "cpu_contention_colocated"
RANKS, STEPS, STEP_NS = 2, 24, 10_000_000
SLOWDOWN = 1.5
WITHHELD = ("loader", "processes")
WITNESSES = {
    LOADER: "SELECT avg(cpu_ns) > 2 * (SELECT avg(cpu_ns) FROM reference.loader) FROM loader",
    CONTENTION: "SELECT sum(run_delay_ns) > 2 * (SELECT sum(run_delay_ns)"
    " FROM reference.processes) FROM processes",
}


@dataclass(frozen=True)
class Tiny:
    """One case of the suite: its group, split, and what was done to the job."""

    group: str
    split: str
    cause: str | None = None
    withheld: bool = False
    decoy: bool = False


TINY = {
    "loader_train": Tiny("g0", "train", LOADER),
    "contention_train": Tiny("g0", "train", CONTENTION),
    "twin_train": Tiny("g0", "train"),
    "loader_dev": Tiny("g1", "dev", LOADER),
    "twin_dev": Tiny("g1", "dev"),
    "contention_test": Tiny("g2", "public_test", CONTENTION),
    "undecidable_test": Tiny("g2", "public_test", CONTENTION, withheld=True),
    "decoy_test": Tiny("g2", "public_test", decoy=True),
    "twin_test": Tiny("g2", "public_test"),
}
TINY_IDS = {role: "c" + hashlib.sha256(role.encode()).hexdigest()[:9] for role in TINY}


def _steps(rng: np.random.Generator, cause: str | None) -> pd.DataFrame:
    extra_ns = (SLOWDOWN - 1) * STEP_NS
    frame = pd.DataFrame(
        {"rank": np.repeat(np.arange(RANKS), STEPS), "step": np.tile(np.arange(STEPS), RANKS)}
    )
    noise = rng.normal(1, 0.01, len(frame))
    parts = {"data_wait_ns": 0.1, "forward_ns": 0.3, "backward_ns": 0.5, "optimizer_ns": 0.1}
    for name, share in parts.items():
        extra = {LOADER: float(name == "data_wait_ns"), CONTENTION: share}.get(cause or "", 0.0)
        frame[name] = ((share * STEP_NS + extra * extra_ns) * noise).astype(np.int64)
    frame["duration_ns"] = frame[list(parts)].sum(axis="columns")
    frame["start_ns"] = frame.groupby("rank")["duration_ns"].cumsum() - frame["duration_ns"]
    return frame.assign(span=1, checkpoint_ns=0, tokens=4096)


def _processes(rng: np.random.Generator, cause: str | None) -> pd.DataFrame:
    busy = 40_000_000 if cause == CONTENTION else 1_000_000
    rows = [
        {
            "host": "host0",
            "time_ns": sample * 50_000_000,
            "process": process,
            "role": "rank" if process < RANKS else "other",
            "rank": process if process < RANKS else None,
            "name": "python",
            "cpu_ns": 40_000_000 if process < RANKS else busy,
            "run_delay_ns": int(busy * rng.uniform(0.4, 0.6)),
        }
        for process in range(RANKS + 1)
        for sample in range(5)
    ]
    return pd.DataFrame(rows)


def _loader(rng: np.random.Generator, cause: str | None) -> pd.DataFrame:
    cpu_ns = 8_000_000 if cause == LOADER else 2_000_000
    frame = pd.DataFrame(
        {"rank": np.repeat(np.arange(RANKS), STEPS), "batch": np.tile(np.arange(STEPS), RANKS)}
    )
    frame["cpu_ns"] = (cpu_ns * rng.normal(1, 0.02, len(frame))).astype(np.int64)
    frame["fetch_ns"] = frame["cpu_ns"] + 500_000
    frame["start_ns"] = frame["batch"] * STEP_NS
    return frame.assign(worker=0, read_ns=400_000, read_bytes=65536)


def _host(rng: np.random.Generator, cause: str | None) -> pd.DataFrame:
    times = np.arange(5) * 50_000_000
    busy = 80_000_000 + 10_000_000 * (cause is not None) + rng.integers(0, 1_000_000, 5)
    return pd.DataFrame({"host": "host0", "time_ns": times, "cores": 4, "cpu_busy_ns": busy})


def _trace(steps: pd.DataFrame) -> bytes:
    """Three profiled steps of rank 0, each with one operator; times in microseconds."""
    events: list[dict[str, Any]] = []
    for row in steps[steps["rank"] == 0].head(3).itertuples():
        common = {"ph": "X", "pid": 1, "tid": 1, "ts": row.start_ns / 1000}
        step = {"name": f"ProfilerStep#{row.step}", "cat": "user_annotation"}
        operator = {"name": "aten::mm", "cat": "cpu_op"}
        events.append(common | step | {"dur": row.duration_ns / 1000})
        events.append(common | operator | {"dur": row.forward_ns / 1000})
    header = {"schemaVersion": 1, "distributedInfo": {"rank": 0, "world_size": RANKS}}
    return gzip.compress(json.dumps(header | {"traceEvents": events}).encode())


def _run(seed: int, cause: str | None, withheld: bool) -> RunData:
    rng = np.random.default_rng(seed)
    makers = {"steps": _steps, "host": _host, "processes": _processes, "loader": _loader}
    tables = {name: make(rng, cause) for name, make in makers.items()}
    trace = _trace(tables["steps"])
    kept = {name: frame for name, frame in tables.items() if not (withheld and name in WITHHELD)}
    return RunData(kept, {0: trace})


def _info(role: str) -> CaseInfo:
    present = ("steps", "host", "processes", "loader", "trace_events")
    absent = WITHHELD if TINY[role].withheld else ()
    return CaseInfo(
        id=TINY_IDS[role],
        title="Small language model, data parallel over two processes",
        kind="training",
        shape="snapshot",
        question="regression",
        workload=Workload(name="language_model", parameters={"layers": 2}),
        topology=Topology(
            ranks=tuple(RankPlace(rank=rank, host="host0") for rank in range(RANKS)),
            parallelism={"data": RANKS},
        ),
        environment=Environment(versions={"torch": "2.13.0"}, config={"batch_size": 8}),
        signals=Signals(
            present=tuple(name for name in present if name not in absent), absent=absent
        ),
        provenance=Provenance(backend="torch_cpu"),
    )


def _trials(rng: np.random.Generator, ratio: float, pairs: int) -> PairedTrials:
    base = 0.010 * rng.normal(1, 0.005, pairs)
    return PairedTrials(
        baseline_s=tuple(base),
        treated_s=tuple(base * ratio * rng.normal(1, 0.005, pairs)),
        treated_first=tuple(bool(pair % 2) for pair in range(pairs)),
        steps_per_trial=100,
    )


def _truth(role: str, seed: int) -> Truth:
    from injectors import label_rule

    tiny, rng = TINY[role], np.random.default_rng(seed)
    ratio = SLOWDOWN if tiny.cause else 1.0
    acceptance, fresh = _trials(rng, ratio, 8), _trials(rng, ratio, 4)
    validation = label_rule.validation(acceptance, fresh, shipped_ratio=ratio)
    assert not isinstance(validation, label_rule.Decision), validation
    fault = tiny.cause and Fault(
        cause=tiny.cause,
        locus=JOB if tiny.cause == LOADER else Locus(scope="host", hosts=("host0",)),
        lost_fraction=label_rule.lost_fraction(fresh),
    )
    others = [name for name, other in TINY.items() if other.cause != tiny.cause]
    witness = tiny.cause and Witness(
        sql=WITNESSES[tiny.cause],
        says="the mechanism's own counter doubled",
        false_on=tuple(TINY_IDS[name] for name in others),
    )
    twin = next(
        name
        for name, other in TINY.items()
        if other.group == tiny.group and other.cause is None and not other.decoy
    )
    return Truth(
        id=TINY_IDS[role],
        verdict="undecidable" if tiny.withheld else "faulty" if fault else "healthy",
        faults=(fault,) if fault and not tiny.withheld else (),
        decoys=(Decoy(name="busy_log", looks_like=(CONTENTION,)),) if tiny.decoy else (),
        candidates=(LOADER, CONTENTION) if tiny.withheld else (),
        missing_signals=WITHHELD if tiny.withheld else (),
        group=tiny.group,
        split=tiny.split,
        twin=None if twin == role else TINY_IDS[twin],
        witness=witness if fault and not tiny.withheld else None,
        validation=validation,
        recipe={"scenario": role},
    )


@pytest.fixture(scope="session")
def tiny_suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder `<tmp>/corpus/tiny` of a suite of nine cases; treat it as read-only."""
    root = tmp_path_factory.mktemp("suites")
    corpus, labels = root / "corpus" / "tiny", root / "labels" / "tiny"
    for seed, (role, tiny) in enumerate(TINY.items()):
        run, reference = (
            _run(seed, tiny.cause, tiny.withheld),
            _run(100 + seed, None, tiny.withheld),
        )
        folder = corpus / TINY_IDS[role]
        write_case(folder, _info(role), run.tables, run.traces, reference)
        write_record(labels / f"{TINY_IDS[role]}.json", _truth(role, seed))
    write_suite_info(corpus, "tiny", "Nine small cases", "public", Taxonomy.load(), labels)
    return corpus


@pytest.fixture(scope="session")
def tiny_ids() -> dict[str, str]:
    """Role -> case id of the tiny suite."""
    return dict(TINY_IDS)


@pytest.fixture
def tiny_copy(tiny_suite: Path, tmp_path: Path) -> Path:
    """A copy of the tiny suite, labels included, that a test may damage."""
    shutil.copytree(tiny_suite.parents[1], tmp_path / "suites")
    return tmp_path / "suites" / "corpus" / "tiny"


@pytest.fixture(scope="session")
def small_matrix() -> Path:
    """The matrix of a simulated suite that is built in seconds."""
    return Path(__file__).parent / "small_matrix.yaml"


@pytest.fixture(scope="session")
def small_suite(small_matrix: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder `<tmp>/suites/small_matrix` of the suite built from it; treat it as read-only."""
    from injectors.suites import build

    out = tmp_path_factory.mktemp("built")
    build(str(small_matrix), out, jobs=1)
    return out / "suites" / "small_matrix"

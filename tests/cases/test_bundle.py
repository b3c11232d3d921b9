"""Bundles: written whole or not at all, and never trusted when read."""

from __future__ import annotations

import gzip
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cases import bundle
from cases.bundle import RunData, Suite, find_suite, read_case_digest, write_case
from cases.case import Case
from cases.documents import read_record
from cases.errors import BundleError, InputError, RecordError
from cases.schema import CaseInfo
from cases.table_files import read_table, to_frame, write_table
from cases.tables import to_arrow


@pytest.fixture
def case_folder(tiny_copy: Path, tiny_ids: dict[str, str]) -> Path:
    """One case that a test may damage."""
    return tiny_copy / tiny_ids["loader_dev"]


def test_suite_verifies(tiny_suite: Path, tiny_ids: dict[str, str]) -> None:
    suite = Suite.open(tiny_suite)
    suite.verify()
    assert suite.case_ids == tuple(sorted(tiny_ids.values()))


def test_rewritten_files_keep_the_digest(case_folder: Path) -> None:
    before = read_case_digest(case_folder)
    path = case_folder / "signals" / "steps.parquet"
    pq.write_table(pq.read_table(path), path, compression="snappy", store_schema=False)
    trace = case_folder / "traces" / "rank0.json.gz"
    trace.write_bytes(gzip.compress(gzip.decompress(trace.read_bytes()), 1, mtime=0))
    info = case_folder / "case.json"
    info.write_text(json.dumps(json.loads(info.read_text()), sort_keys=True))
    assert read_case_digest(case_folder) == before


def _rows(path: Path, change: Callable[[pd.DataFrame], pd.DataFrame]) -> None:
    frame = change(pq.read_table(path).to_pandas())
    pq.write_table(pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None),
                   path, store_schema=False)  # fmt: skip


@pytest.mark.parametrize("part", ["", "reference/"])
def test_changed_value_changes_the_digest(case_folder: Path, part: str) -> None:
    path = case_folder / f"{part}signals" / "host.parquet"
    before = to_frame(read_table(path, "host"))
    before.loc[2, "cpu_busy_ns"] += 1
    path.unlink()
    write_table(path, to_arrow("host", before))
    suite = Suite.open(case_folder.parent)
    with pytest.raises(BundleError, match="digest"):
        suite.verify_case(case_folder.name)


def test_content_is_read_again_only_after_a_change(
    case_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite, reads = Suite.open(case_folder.parent), []
    digest = bundle.read_case_digest
    monkeypatch.setattr(bundle, "read_case_digest", lambda f: reads.append(f) or digest(f))
    for _ in range(3):
        suite.verify_case(case_folder.name)
    assert reads == [case_folder]
    path = case_folder / "signals" / "host.parquet"
    was, frame = path.stat(), to_frame(read_table(path, "host"))
    frame.loc[2, "cpu_busy_ns"] += 1
    write_table(path, to_arrow("host", frame))
    os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))  # hides nothing
    with pytest.raises(BundleError, match="digest"):
        suite.verify_case(case_folder.name)
    assert reads == [case_folder] * 2


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda f: f.drop(columns="cores"), ["host.parquet", "cores"]),
        (lambda f: f.assign(label=1), ["host.parquet", "label"]),
        (lambda f: f.assign(cores=f["cores"].astype(float)), ["host.parquet", "cores", "int64"]),
        (lambda f: f[f.columns[::-1]], ["host.parquet", "columns"]),
    ],
)
def test_schema_is_enforced(
    case_folder: Path, change: Callable[[pd.DataFrame], pd.DataFrame], words: list[str]
) -> None:
    path = case_folder / "signals" / "host.parquet"
    _rows(path, change)
    with pytest.raises(BundleError) as caught:
        read_case_digest(case_folder)
    assert all(word in str(caught.value) for word in words)


def test_nan_is_no_measurement(tmp_path: Path) -> None:
    path = tmp_path / "gpu.parquet"
    table = to_arrow("gpu", pd.DataFrame({"rank": [0], "time_ns": [1], "power_w": [2.0]}))
    index = table.column_names.index("power_w")
    write_table(path, table.set_column(index, "power_w", pa.array([float("nan")])))
    with pytest.raises(BundleError, match=r"gpu\.parquet: power_w: must be finite"):
        read_table(path, "gpu")


def test_hidden_words_are_refused(case_folder: Path) -> None:
    path = case_folder / "signals" / "host.parquet"
    table = pq.read_table(path).replace_schema_metadata({"label": "slow_link"})
    pq.write_table(table, path)
    with pytest.raises(BundleError, match=r"host\.parquet: must carry no metadata"):
        read_case_digest(case_folder)
    shutil.copy(case_folder / "reference" / "signals" / "host.parquet", path)
    trace = case_folder / "traces" / "rank0.json.gz"
    with trace.open("wb") as raw, gzip.GzipFile("slow_link", "wb", fileobj=raw, mtime=0) as file:
        file.write(b"[]")
    with pytest.raises(BundleError, match=r"rank0\.json\.gz: must be gzip without name"):
        read_case_digest(case_folder)


def test_long_text_repeated_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "logs.parquet"
    rows = 200_000
    long = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), ["x" * 10_000])
    columns = {"rank": [0] * rows, "time_ns": [0] * rows, "level": ["INFO"] * rows}
    table = pa.table({**{k: pa.array(v) for k, v in columns.items()}, "message": long})
    pq.write_table(table, path, store_schema=False)
    assert path.stat().st_size < 10**6
    with pytest.raises(BundleError, match="at most"):
        read_table(path, "logs")


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda f: (f / "signals" / "notes.txt").write_text("x"), "notes.txt: must be a declared"),
        (lambda f: (f / "label.json").write_text("{}"), "label.json: must be a declared"),
        (lambda f: (f / "signals" / "host.parquet").unlink(), r"present: .*'host'"),
        (lambda f: shutil.rmtree(f / "traces"), r"present: .*'trace_events'"),
        (lambda f: shutil.copy(f / "signals/host.parquet", f / "signals/gpu.parquet"), "'gpu'"),
        (lambda f: shutil.rmtree(f / "reference"), "question: must have a reference"),
        (lambda f: (f / "case.json").unlink(), "case.json: must exist"),
        (lambda f: (f / "link").symlink_to("/etc/passwd"), "link: must be a plain file"),
        (lambda f: (f / "more").symlink_to(f.parent), "more: must be a plain file"),
        (lambda f: os.mkfifo(f / "signals" / "pipe"), "pipe: must be a plain file"),
        (lambda f: (f / "traces/rank0.json.gz").rename(f / "traces/rank9.json.gz"), "known rank"),
        (lambda f: (f / "traces/rank0.json.gz").rename(f / "traces/rank00.json.gz"), "known rank"),
    ],
)
def test_layout_is_enforced(
    case_folder: Path, damage: Callable[[Path], object], words: str
) -> None:
    damage(case_folder)
    with pytest.raises(BundleError, match=words):
        Case.open(case_folder)


def test_unknown_field_is_refused(case_folder: Path) -> None:
    path = case_folder / "case.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"cause": "slow_link"}))
    with pytest.raises(RecordError, match=r"case\.json: cause"):
        Case.open(case_folder)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_flipped_byte_is_always_seen(
    tiny_suite: Path, tmp_path: Path, tiny_ids: dict[str, str], data: st.DataObject
) -> None:
    source = tiny_suite / tiny_ids["twin_dev"]
    folder = tmp_path / source.name
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(source, folder)
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    path = data.draw(st.sampled_from(files))
    content = bytearray(path.read_bytes())
    position = data.draw(st.integers(0, len(content) - 1))
    content[position] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(content)
    stated = Suite.open(tiny_suite).info.cases[source.name]
    try:
        found = read_case_digest(folder)
    except InputError as error:
        assert path.name in str(error) or "case.json" in str(error)
    else:
        assert found != stated or _same_content(path, source / path.relative_to(folder))


def _same_content(damaged: Path, sound: Path) -> bool:
    """Whether a flip hit bytes that carry no content: white space, or a file's own notes."""
    if damaged.name == "case.json":
        return bool(json.loads(damaged.read_text()) == json.loads(sound.read_text()))
    if damaged.suffix == ".gz":
        return gzip.decompress(damaged.read_bytes()) == gzip.decompress(sound.read_bytes())
    name = damaged.stem
    return bool(read_table(damaged, name).equals(read_table(sound, name)))


def test_half_written_case_never_appears(
    tiny_suite: Path, tmp_path: Path, tiny_ids: dict[str, str]
) -> None:
    info = read_record(tiny_suite / tiny_ids["twin_dev"] / "case.json", CaseInfo)
    steps = pd.DataFrame({"rank": [0], "step": [0], "duration_ns": ["soon"]})
    with pytest.raises(BundleError, match="steps"):
        write_case(tmp_path / info.id, info, {"steps": steps}, {}, None)
    with pytest.raises(BundleError, match=r"signals\.present"):
        write_case(tmp_path / info.id, info, {}, {}, RunData())
    assert list(tmp_path.iterdir()) == []


def test_case_is_written_once_and_under_its_id(tiny_suite: Path, tiny_ids: dict[str, str]) -> None:
    folder = tiny_suite / tiny_ids["twin_dev"]
    info = read_record(folder / "case.json", CaseInfo)
    with pytest.raises(BundleError, match="must not exist"):
        write_case(folder, info, {}, {}, None)
    with pytest.raises(BundleError, match="named as the case's id"):
        write_case(tiny_suite / "other", info, {}, {}, None)


def test_unlisted_case_is_seen(tiny_copy: Path, tiny_ids: dict[str, str]) -> None:
    shutil.copytree(tiny_copy / tiny_ids["twin_dev"], tiny_copy / "cfff000000")
    with pytest.raises(BundleError, match="cfff000000"):
        Suite.open(tiny_copy).verify()


def test_swapped_cases_are_seen(tiny_copy: Path, tiny_ids: dict[str, str]) -> None:
    one, two = tiny_copy / tiny_ids["twin_dev"], tiny_copy / tiny_ids["twin_test"]
    shutil.rmtree(one)
    shutil.copytree(two, one)
    with pytest.raises(BundleError, match="id: must be"):
        Suite.open(tiny_copy).case(one.name)


def test_suites_are_found_by_path_and_name(
    tiny_suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    cached = tmp_path / "evalharness" / "suites" / "mine"
    shutil.copytree(tiny_suite, cached)
    assert find_suite(tiny_suite) == tiny_suite.resolve()
    assert find_suite("mine") == cached
    with pytest.raises(InputError, match=r"names \(.*mine.*found 'yours'"):
        find_suite("yours")


def test_unknown_case_lists_those_there_are(tiny_suite: Path, tiny_ids: dict[str, str]) -> None:
    with pytest.raises(InputError, match=tiny_ids["twin_dev"]):
        Suite.open(tiny_suite).case("nosuchcase")

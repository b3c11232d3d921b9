"""A sound suite passes every check, and each check sees the damage that it is for."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cases.bundle import write_suite_info
from cases.table_files import read_table, to_frame, write_table
from cases.tables import to_arrow
from cases.taxonomy import Taxonomy
from harness.checks import check_suite, composition
from harness.judge import load_truths

Edit = Callable[[dict[str, Any], dict[str, str]], None]


def failures(suite: Path) -> dict[str, list[str]]:
    checks = check_suite(suite, Taxonomy.load())
    return {check.name: check.failures for check in checks if check.failures}


def test_sound_suite_passes_every_check(tiny_suite: Path) -> None:
    checks = {check.name: check for check in check_suite(tiny_suite, Taxonomy.load())}
    assert {name: check.failures for name, check in checks.items() if check.failures} == {}
    assert {name: check.looked_at for name, check in checks.items()} == {
        "digest": 9,
        "suite_digest": 1,
        "label_rule": 9,
        "cost": 9,
        "joint": 0,
        "headroom": 0,
        "shipped": 9,
        "taxonomy": 9,
        "locus": 9,
        "windows": 9,
        "growth": 9,
        "witness": 4,
        "witness_false": 4 + 2 * 7 + 2 * 6,  # each loader case, each contention case
        "twin": 9,
        "split": 3,
        "withheld": 1,
    }


def test_composition_counts_decoys_apart(tiny_suite: Path) -> None:
    counts = composition(load_truths(tiny_suite))
    assert counts["verdict"] == {
        "faulty": 4,
        "healthy": 3,
        "healthy with decoy": 1,
        "undecidable": 1,
    }
    assert counts["groups"] == {"all": 3}


def _slower_samples(label: dict[str, Any], ids: dict[str, str]) -> None:
    samples = label["validation"]["acceptance"]
    samples["treated_s"] = [value / 1.4 for value in samples["treated_s"]]


def _cheaper(label: dict[str, Any], ids: dict[str, str]) -> None:
    label["faults"][0]["lost_fraction"]["value"] = 0.5


def _milder_recording(label: dict[str, Any], ids: dict[str, str]) -> None:
    label["validation"]["shipped_ratio"] = 1.4


def _unknown_cause(label: dict[str, Any], ids: dict[str, str]) -> None:
    label["faults"][0]["acceptable"] = ["gremlins"]


def _no_such_host(label: dict[str, Any], ids: dict[str, str]) -> None:
    label["faults"][0]["locus"] = {"scope": "host", "hosts": ["host7"]}


def _late_window(label: dict[str, Any], ids: dict[str, str]) -> None:
    label["faults"][0]["windows"] = [{"start_ns": 0, "end_ns": 10**12}]


def _false_witness(label: dict[str, Any], ids: dict[str, str]) -> None:
    label["witness"]["sql"] = "SELECT count(*) > 10000 FROM steps"


def _true_everywhere(label: dict[str, Any], ids: dict[str, str]) -> None:
    label["witness"]["sql"] = "SELECT 1"


def _merely_slow(label: dict[str, Any], ids: dict[str, str]) -> None:
    """True on every slow case; that no rival is listed must not hide it."""
    label["witness"]["sql"] = (
        "SELECT (SELECT avg(duration_ns) FROM steps)"
        " > 1.2 * (SELECT avg(duration_ns) FROM reference.steps)"
    )
    label["witness"]["false_on"] = [ids["twin_dev"]]


def _foreign_twin(label: dict[str, Any], ids: dict[str, str]) -> None:
    label["twin"] = ids["twin_train"]


def _other_split(label: dict[str, Any], ids: dict[str, str]) -> None:
    label["split"] = "train"


@pytest.mark.parametrize(
    ("edit", "check"),
    [
        (_slower_samples, "label_rule"),
        (_cheaper, "cost"),
        (_milder_recording, "shipped"),
        (_unknown_cause, "taxonomy"),
        (_no_such_host, "locus"),
        (_late_window, "windows"),
        (_false_witness, "witness"),
        (_true_everywhere, "witness_false"),
        (_merely_slow, "witness_false"),
        (_foreign_twin, "twin"),
        (_other_split, "split"),
    ],
)
def test_each_check_sees_its_damage(
    tiny_copy: Path, tiny_ids: dict[str, str], edit: Edit, check: str
) -> None:
    labels = tiny_copy.parents[1] / "labels" / "tiny"
    path = labels / f"{tiny_ids['loader_dev']}.json"
    label = json.loads(path.read_text())
    edit(label, tiny_ids)
    path.write_text(json.dumps(label))
    write_suite_info(tiny_copy, "tiny", "Nine small cases", "public", Taxonomy.load(), labels)
    assert list(failures(tiny_copy)) == [check]


def test_changed_label_changes_the_suite(tiny_copy: Path, tiny_ids: dict[str, str]) -> None:
    path = tiny_copy.parents[1] / "labels" / "tiny" / f"{tiny_ids['twin_dev']}.json"
    path.write_text(path.read_text().replace('"twin_dev"', '"other"'))
    assert list(failures(tiny_copy)) == ["suite_digest"]


@pytest.mark.parametrize("role", ["loader_train", "twin_train"])
def test_damaged_case_is_named(tiny_copy: Path, tiny_ids: dict[str, str], role: str) -> None:
    case_id = tiny_ids[role]
    (tiny_copy / case_id / "signals" / "host.parquet").unlink()
    found = failures(tiny_copy)
    assert list(found) == ["digest"]
    assert case_id in found["digest"][0] and "host" in found["digest"][0]


def test_withheld_signal_must_be_absent(tiny_copy: Path, tiny_ids: dict[str, str]) -> None:
    labels = tiny_copy.parents[1] / "labels" / "tiny"
    path = labels / f"{tiny_ids['undecidable_test']}.json"
    label = json.loads(path.read_text()) | {"missing_signals": ["steps.duration_ns"]}
    path.write_text(json.dumps(label))
    write_suite_info(tiny_copy, "tiny", "Nine small cases", "public", Taxonomy.load(), labels)
    assert list(failures(tiny_copy)) == ["withheld"]


@pytest.mark.parametrize("part", ["", "reference"])
def test_negative_growth_is_seen(tiny_copy: Path, tiny_ids: dict[str, str], part: str) -> None:
    labels = tiny_copy.parents[1] / "labels" / "tiny"
    path = tiny_copy / tiny_ids["loader_dev"] / part / "signals" / "host.parquet"
    frame = to_frame(read_table(path, "host")).astype({"disk_read_bytes": "Int64"})
    frame.loc[0, "disk_read_bytes"] = None  # what was not measured is no damage
    frame.loc[1, "disk_read_bytes"] = -7
    write_table(path, to_arrow("host", frame))
    write_suite_info(tiny_copy, "tiny", "Nine small cases", "public", Taxonomy.load(), labels)
    found = failures(tiny_copy)
    assert list(found) == ["growth"]
    column = ".".join(filter(None, [part, "host", "disk_read_bytes"]))
    assert found["growth"] == [f"{tiny_ids['loader_dev']}: {column} is -7 at the least"]

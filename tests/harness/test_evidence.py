"""Rulings on claims, and from claims to findings."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, get_args

import pytest

from cases.schema import Diagnosis, Evidence, Finding
from harness.evidence import (
    Against,
    Checked,
    Reading,
    Ruling,
    append_checked,
    claim_key,
    read_checked,
    rule,
    supported,
)
from harness.evidence_view import checked_responses, evidence_rows, render_evidence
from harness.results import Answer

CLAIM = Evidence(sql="SELECT avg(cpu_ns) FROM loader", value=100.0, tolerance=0.5)
DIGEST = "sha256:" + "c" * 64


def gives(value: float | None) -> Reading:
    return Reading(status="ok", value=value)


@pytest.mark.parametrize(
    ("here", "against", "there", "ruling"),
    [
        (gives(105.0), "twin", gives(20.0), "supported"),
        (gives(105.0), "twin", gives(None), "supported"),  # the twin has no such number
        (gives(105.0), "twin", gives(95.0), "also_on_twin"),
        (gives(105.0), "reference", gives(20.0), "supported"),
        (gives(105.0), "itself", None, "also_on_twin"),
        (gives(105.0), "nothing", None, "unknown"),
        (gives(106.0), "twin", None, "not_true"),
        (gives(None), "nothing", None, "not_true"),
        (Reading(status="refused"), "twin", None, "refused"),
        (Reading(status="failed"), "itself", None, "failed"),
        (Reading(status="timeout"), "nothing", None, "timeout"),
        (gives(100.0), "twin", Reading(status="out_of_memory"), "out_of_memory"),
        (gives(100.0), "twin", Reading(status="failed"), "failed"),
    ],
)
def test_rule(here: Reading, against: Against, there: Reading | None, ruling: str) -> None:
    assert rule(CLAIM, here, against, there) == ruling


def claim(number: int) -> Evidence:
    return Evidence(sql=f"SELECT {number}", value=float(number))


def answer(*findings: tuple[Evidence, ...]) -> Answer:
    said = tuple(Finding(cause="slow_link", evidence=evidence) for evidence in findings)
    verdict: Any = "faulty" if said else "healthy"
    diagnosis = Diagnosis(verdict=verdict, findings=said)
    return Answer(case="case00", key="k", outcome="ok", diagnosis=diagnosis)


def ruled(**rulings: Any) -> dict[str, Checked]:
    """Rulings by the number that the claim is about: `ruled(c1="supported")`."""
    lines = {}
    for name, ruling in rulings.items():
        key = claim_key(DIGEST, claim(int(name[1:])))
        lines[key] = Checked(case="case00", claim=key, setup="s", ruling=ruling)
    return lines


def test_a_finding_is_supported_if_one_piece_is() -> None:
    checked = ruled(c1="refused", c2="supported", c3="not_true", c4="unknown", c5="also_on_twin")
    pieces = {number: claim(number) for number in range(1, 6)}
    said = answer(
        (pieces[1], pieces[2]), (pieces[3],), (), (pieces[3], pieces[4]), (pieces[4], pieces[2])
    )
    assert supported(said, DIGEST, checked) == (True, False, False, None, True)
    assert supported(answer(), DIGEST, {}) == ()


def test_a_piece_that_nobody_checked_leaves_the_answer_open() -> None:
    said = answer((claim(1),), (claim(2),))
    assert supported(said, DIGEST, ruled(c1="supported")) is None
    assert supported(said, "sha256:another", ruled(c1="supported", c2="supported")) is None


def test_one_open_answer_leaves_all_open() -> None:
    answers = {"case00": answer((claim(1),)), "case01": answer((claim(2),))}
    digests = dict.fromkeys(answers, DIGEST)
    for checked, flags in (
        (ruled(c1="supported", c2="not_true"), [(True,), (False,)]),
        (ruled(c1="supported"), [None, None]),
        (None, [None, None]),
    ):
        found = checked_responses(answers, digests, checked)
        assert [response.supported for response in found.values()] == flags


def test_what_is_said_of_a_query_does_not_matter_but_its_numbers_do() -> None:
    said = CLAIM.model_copy(update={"says": "decoding costs more"})
    assert claim_key(DIGEST, said) == claim_key(DIGEST, CLAIM)
    for change in ({"value": 99.0}, {"tolerance": 0.0}, {"sql": "SELECT 2"}):
        assert claim_key(DIGEST, CLAIM.model_copy(update=change)) != claim_key(DIGEST, CLAIM)


def test_the_last_line_counts_and_a_torn_one_does_not(tmp_path: Path) -> None:
    assert read_checked(tmp_path) is None
    (key,) = ruled(c1="timeout")
    for ruling in ("timeout", "supported"):
        append_checked(tmp_path, ruled(c1=ruling)[key])
    with (tmp_path / "evidence.jsonl").open("a") as file:
        file.write('{"format": "evalharness.evid')
    assert read_checked(tmp_path) == ruled(c1="supported")


def test_the_table_names_each_piece_and_what_cites_none() -> None:
    said = answer((claim(7),), ())
    rows = list(evidence_rows({"case00": said}, {"case00": DIGEST}, ruled(c7="also_on_twin")))
    assert [(row["finding"], row["ruling"]) for row in rows] == [(1, "none"), (0, "also_on_twin")]
    text = render_evidence("mine", rows, sealed=False)
    assert text.startswith("mine: evidence: 1 also_on_twin, 1 none (checked unsealed")
    assert "SELECT 7" in text


def test_the_page_tells_every_ruling() -> None:
    page = (Path(__file__).parents[2] / "docs" / "evidence.md").read_text()
    table = page.split("## Rulings")[1].split("##")[0]
    names = {name for row in re.findall(r"^\| (`.*?) \|", table, re.M) for name in row.split(", ")}
    assert names == {f"`{name}`" for name in get_args(Ruling)}

from __future__ import annotations

import json
import multiprocessing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases.errors import RecordError
from cases.schema import Diagnosis
from harness.results import Answer, answer_key, append_answer, latest, read_answers, run_key

HEALTHY = Diagnosis(verdict="healthy")


def answer(case: str, key: str = "k", seconds: float = 1.0) -> Answer:
    return Answer(case=case, key=key, outcome="ok", diagnosis=HEALTHY, seconds=seconds)


def test_answers_come_back_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    written = [answer("aaaa"), Answer(case="bbbb", key="k", outcome="error", error="no\nidea")]
    for one in written:
        append_answer(path, one)
    assert read_answers(path) == written
    assert json.loads(path.read_text().splitlines()[0])["format"] == "evalharness.answer/1.0"


def test_no_file_is_no_answer(tmp_path: Path) -> None:
    assert read_answers(tmp_path / "absent") == []


def test_torn_last_line_is_left_out_and_then_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    append_answer(path, answer("aaaa"))
    append_answer(path, answer("bbbb"))
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        expected = ["aaaa"] if b"\n" in whole[:length] else []
        assert [one.case for one in read_answers(path)] == expected
        append_answer(path, answer("cccc"))
        assert [one.case for one in read_answers(path)] == [*expected, "cccc"]


def test_broken_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    append_answer(path, answer("aaaa"))
    path.write_text(path.read_text() + "{}\n")
    with pytest.raises(RecordError, match=r"answers\.jsonl:2: format"):
        read_answers(path)


def _append_many(path: Path, name: str) -> None:
    for number in range(50):
        append_answer(path, answer(f"{name}{number:04d}"))


def test_writers_do_not_disturb_each_other(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    fork = multiprocessing.get_context("fork")
    writers = [fork.Process(target=_append_many, args=(path, name)) for name in "abcd"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert len({one.case for one in read_answers(path)}) == 200


def test_last_answer_under_the_key_counts() -> None:
    answers = [answer("a", "1", 1.0), answer("a", "1", 2.0), answer("a", "2", 3.0), answer("b")]
    assert latest(answers, {"a": "1", "b": "other"}) == {"a": answers[1]}


@given(st.dictionaries(st.text(), st.integers(), min_size=1), st.text(), st.text())
def test_key_changes_with_every_part(parts: dict[str, int], one: str, other: str) -> None:
    name = next(iter(parts))
    changed = parts | {name: parts[name] + 1}
    assert run_key(parts) == run_key(dict(reversed(list(parts.items()))))
    assert run_key(parts) != run_key(changed)
    assert (answer_key("k", one) == answer_key("k", other)) == (one == other)

"""The A/A study: its arithmetic by hand, its command for real, its table in the docs."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from cases.errors import InputError
from injectors import null_study
from injectors.label_rule import decide_from
from injectors.null_study import NullLabel, called, missing, read_labels, strata, stretches
from injectors.scenario import read_matrix

ROOT = Path(__file__).parents[2]
DATA, PAGE = ROOT / "docs" / "null_study.jsonl", ROOT / "docs" / "labels.md"
MATRIX = ROOT / "injectors" / "scenarios" / "null_study.yaml"


def label(stratum="one", treated=(110, 100, 90, 100)):
    return NullLabel(
        stratum=stratum,
        steps=6,
        baseline_us=(100,) * 4,
        treated_us=treated,
        null_steps=1,
        null_pairs=6,
        adjacent_baseline_us=(100, 200),
        adjacent_treated_us=(100, 220),
    )


def test_strata_hold_log_ratios():
    one, two = strata([label(), label("two"), label(treated=(100,) * 4)])
    assert (one.name, two.name, one.steps, one.step_us, one.null_pairs) == ("one", "two", 6, 100, 6)
    assert one.d.shape == (2, 4)
    assert one.d[0] == pytest.approx([math.log(1.1), 0, math.log(0.9), 0])
    assert one.adjacent == pytest.approx([0, math.log(1.1)] * 2)


def test_a_true_ratio_shifts_every_pair():
    quiet = np.array([0.001, -0.001, 0.001, -0.001])
    assert decide_from(quiet + math.log(1.2)).verdict == "faulty"
    assert called([quiet, quiet], 1.2, "faulty") == [True, True]
    assert called([quiet], 1.0, "faulty") == [False]
    assert called([quiet], 1.0, "healthy") == [True]
    assert called([quiet], 1.04, "healthy") == [False]


def test_stretches_are_consecutive_and_wrap():
    found = stretches(np.arange(10.0), 4)
    assert len(found) == null_study.STRETCHES
    assert {tuple(np.diff(cut) % 10) for cut in found} == {(1.0, 1.0, 1.0)}
    assert len({cut[0] for cut in found}) == 10
    assert np.array_equal(found, stretches(np.arange(10.0), 4))  # seeded


def test_rates_under_normal_noise_are_those_of_the_t_bounds():
    """At the threshold itself the faulty rule errs as often as its bound promises: 1 %."""
    rng = np.random.default_rng(7)
    d = rng.normal(0, 0.05, (4000, 8))
    assert 0.005 < np.mean(called(d, 1.05, "faulty")) < 0.016
    assert 0.03 < np.mean(called(d, 1.03, "healthy")) < 0.07


def test_missing_labels_are_counted():
    have = [label("one"), label("one"), label("two")]
    assert missing(["one", "two", "three"], have, 2) == {"two": 1, "three": 2}


def test_tables_state_counts_and_bounds():
    quiet = [label(treated=(101, 99, 100, 100)) for _ in range(299)]
    table = null_study.faulty_table(strata(quiet))
    assert "| one | 299 of 4 pairs of 6 steps | 0.1 ms |" in table
    assert "| 0 (at most 1.0%) |" in table
    assert table.splitlines()[-1].endswith("| 100.0% |")
    healthy = null_study.healthy_table(strata(quiet))
    assert "| one | decoys | 84 of 1196 |" in healthy
    assert "| one | twins | 6 of 598 |" in healthy


@pytest.mark.parametrize("content", [b"notes without an end", b"a: 1\nb: 2", b"{1: 2}"])
def test_somebody_elses_file_is_refused_and_kept(tmp_path, content):
    file = tmp_path / "notes.txt"
    file.write_bytes(content)
    with pytest.raises(InputError, match=r"notes.txt: must be a file that this command wrote"):
        null_study.cut_torn_line(file)
    assert file.read_bytes() == content


def test_torn_line_is_left_out_and_cut(tmp_path):
    file = tmp_path / "study.jsonl"
    whole = label().model_dump_json() + "\n"
    file.write_text(whole + whole[:40])
    assert read_labels(file) == [label()]
    null_study.cut_torn_line(file)
    assert file.read_text() == whole


def test_broken_line_is_named(tmp_path):
    file = tmp_path / "study.jsonl"
    file.write_text(label().model_dump_json() + "\n" + '{"stratum": "one"}\n')
    with pytest.raises(InputError, match=r"study\.jsonl:2"):
        read_labels(file)


def test_shipped_strata_are_one_two_and_four_ranks():
    scenarios = read_matrix(MATRIX)
    assert [scenario.ranks for scenario in scenarios] == [1, 2, 4]
    shipped = read_matrix(MATRIX.parent / "recorded_cpu.yaml")
    for scenario in scenarios:
        assert not scenario.arms
        # Shorter than every shipped plan, so that it is easier to fool.
        assert scenario.trials.blocks <= min(s.trials.blocks for s in shipped)


def test_study_is_measured_for_real_and_resumed(tmp_path):
    pytest.importorskip("torch", reason="recording needs torch: pip install 'evalharness[record]'")
    from injectors.matrix import measure_nulls

    (one, *_) = read_matrix(MATRIX)
    file, seen = tmp_path / "study.jsonl", []

    def begin(scenario, known):
        seen.append((scenario.name, known))
        return lambda phase, done, total: seen.append((phase, done, total))

    assert len(measure_nulls([one], file, begin, wanted=2)) == 2
    first = file.read_text()
    found = measure_nulls([one], file, begin, wanted=3)
    assert file.read_text().startswith(first)
    assert [label.stratum for label in found] == [one.name] * 3
    assert seen == [
        (one.name, False),
        ("null labels", 1, 2),
        ("null labels", 2, 2),
        (one.name, False),
        ("null labels", 3, 3),
    ]
    measure_nulls([one], file, begin, wanted=3)
    assert seen[-1] == (one.name, True)
    (stratum,) = strata(found)
    assert stratum.d.shape == (3, one.trials.blocks)
    assert len(stratum.adjacent) == 3 * null_study.ADJACENT_PAIRS
    assert np.abs(stratum.d).max() > 0  # two trials are never the same


@pytest.mark.skipif(not DATA.exists(), reason="the study's data are not in this checkout")
def test_page_holds_the_tables_of_the_data():
    found = strata(read_labels(DATA))
    assert [len(s.d) >= null_study.LABELS for s in found] == [True] * 3
    page = PAGE.read_text()
    assert null_study.faulty_table(found) in page
    assert null_study.healthy_table(found) in page


def test_record_wants_either_a_suite_or_the_study(tmp_path):
    from click.testing import CliRunner

    from harness.commands.record import command

    both = ["--out", str(tmp_path / "o"), "--null-study", str(tmp_path / "s")]
    for options in ([], both):
        answer = CliRunner().invoke(command, [str(MATRIX), "--matrix", *options])
        assert answer.exit_code == 2
        assert "either --out or --null-study" in answer.output
    done = tmp_path / "s.jsonl"
    names = [scenario.name for scenario in read_matrix(MATRIX)]
    rows = [label(name).model_dump_json() for name in names for _ in range(null_study.LABELS)]
    done.write_text("\n".join(rows) + "\n")
    answer = CliRunner().invoke(command, [str(MATRIX), "--matrix", "--null-study", str(done)])
    assert answer.exit_code == 0, answer.output
    assert json.loads(done.read_text().splitlines()[-1])["stratum"] == names[-1]
    assert "accepted at ratio 1.00" in answer.stdout

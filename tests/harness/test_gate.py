from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

from cases.documents import parse_record
from cases.errors import InputError
from harness.cli import cli
from harness.gate import judge, judge_threshold
from harness.policy import Policy, Threshold
from harness.ruling import Ruling
from harness.stored import read_stored
from harness.tracking import track_results

MakeResults = Callable[..., Path]
POLICY = "format: evalharness.policy/1.0\n"


def policy(**fields: Any) -> Policy:
    return parse_record({"format": "evalharness.policy/1.0", **fields}, Policy, where="gate.yaml")


@pytest.mark.parametrize(
    ("limit", "verdict"),
    [
        # the metric is 0.3 with the interval [0.2, 0.4]
        ({"max": 0.5}, "pass"),
        ({"max": 0.4}, "pass"),
        ({"max": 0.3}, "inconclusive"),
        ({"max": 0.2}, "inconclusive"),
        ({"max": 0.19}, "stop"),
        ({"min": 0.1}, "pass"),
        ({"min": 0.2}, "pass"),
        ({"min": 0.3}, "inconclusive"),
        ({"min": 0.4}, "inconclusive"),
        ({"min": 0.41}, "stop"),
        ({"max": 0.3, "by": "estimate"}, "pass"),
        ({"max": 0.29, "by": "estimate"}, "stop"),
        ({"min": 0.3, "by": "estimate"}, "pass"),
        ({"min": 0.31, "by": "estimate"}, "stop"),
    ],
)
def test_threshold(make_results: MakeResults, limit: dict[str, Any], verdict: str) -> None:
    metric = {"value": 0.3, "low": 0.2, "high": 0.4}
    result = read_stored(make_results(metrics={"misled_rate": metric}))
    ruling = judge_threshold(Threshold(metric="misled_rate", **limit), result)
    assert (ruling.verdict, ruling.found) == (verdict, "0.3 [0.2, 0.4]")


def test_no_interval_is_inconclusive_and_says_why(make_results: MakeResults) -> None:
    result = read_stored(make_results())
    ruling = judge_threshold(Threshold(metric="top1", min=0.99), result)
    assert (ruling.verdict, ruling.why) == ("inconclusive", "fewer than 6 groups")
    by_estimate = judge_threshold(Threshold(metric="top1", min=0.99, by="estimate"), result)
    assert by_estimate.verdict == "stop"


@pytest.mark.parametrize(("inconclusive", "verdict"), [("pass", "pass"), ("stop", "stop")])
def test_the_policy_says_what_inconclusive_does(
    make_results: MakeResults, inconclusive: str, verdict: str
) -> None:
    rules = policy(inconclusive=inconclusive, thresholds=[{"metric": "top1", "min": 0.5}])
    assert judge(rules, read_stored(make_results()), None).verdict == verdict


def test_unknown_metric_lists_the_valid_ones(make_results: MakeResults) -> None:
    rules = policy(thresholds=[{"metric": "accuracy", "min": 0.5}])
    with pytest.raises(InputError, match=r"must be one of misled_rate, .*found 'accuracy'"):
        judge(rules, read_stored(make_results()), None)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"thresholds": [{"metric": "misled_rate"}]},
        {"thresholds": [{"metric": "misled_rate", "max": 0.1, "min": 0.0}]},
        {"thresholds": [{"metric": "misled_rate", "max": 0.1}], "inconclusive": "maybe"},
        {"thresholds": [{"metric": "misled_rate", "max": float("nan")}]},
        {"baseline": {"alpha": 0}},
        {"baseline": {"margin": 0}},
        {"baseline": {"metric": "misled_rate"}},
    ],
)
def test_bad_policies_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"^gate\.yaml: "):
        policy(**fields)


def test_unsealed_and_unranked_results_are_refused(make_results: MakeResults) -> None:
    rules = {"thresholds": [{"metric": "misled_rate", "max": 1}]}
    unsealed = read_stored(make_results("unsealed", sealed=False))
    unranked = read_stored(make_results("unranked", ranked=False))
    with pytest.raises(InputError, match="must come from a sealed run"):
        judge(policy(**rules), unsealed, None)
    with pytest.raises(InputError, match="must be a ranked run"):
        judge(policy(**rules), unranked, None)
    assert judge(policy(require={"sealed": False}, **rules), unsealed, None).verdict == "pass"
    assert judge(policy(require={"ranked": False}, **rules), unranked, None).verdict == "pass"


def compared(policy_fields: dict[str, Any], result: Path, baseline: Path) -> Ruling:
    rules = policy(baseline=policy_fields)
    return judge(rules, read_stored(result), read_stored(baseline)).rulings[0]


def test_worse_beyond_the_margin_stops(make_results: MakeResults) -> None:
    # Eight of eight faulty cases lost 1 each, at 0.2 / 0.9 of the prevalence: -0.222 in all.
    # All signs equal in 8 groups: p = 2 / 2**8.
    faulty = tuple(f"case{number:02d}" for number in range(8))
    good, bad = make_results("good", misled=()), make_results("bad", misled=(), wrong=faulty)
    ruling = compared({"margin": 0.1}, bad, good)
    assert ruling.verdict == "stop"
    assert ruling.found == "-0.222 [-0.222, -0.222], p = 0.0078, 8 groups differ"
    assert compared({"margin": 0.3}, bad, good).verdict == "pass"
    assert compared({"margin": 0.1, "alpha": 0.005}, bad, good).verdict == "inconclusive"
    assert compared({"margin": 0.1}, good, bad).verdict == "pass"


def test_few_differing_groups_are_inconclusive_and_none_passes(make_results: MakeResults) -> None:
    good = make_results("good", misled=())
    bad = make_results("bad", misled=("case00", "case01", "case02", "case03", "case08"))
    few = compared({}, bad, good)
    assert few.verdict == "inconclusive"
    assert "5 groups differ, at least 6 are needed" in few.why
    assert compared({}, good, good).verdict == "pass"


def test_newly_misled_counts_only_what_the_baseline_was_not(make_results: MakeResults) -> None:
    baseline = read_stored(make_results("old", misled=("case00",)))
    result = read_stored(make_results("new", misled=("case00", "case01", "case09")))
    rulings = {
        limit: judge(policy(baseline={"max_newly_misled": limit}), result, baseline).rulings
        for limit in (1, 2)
    }
    assert [ruling.verdict for ruling in rulings[1] if "newly" in ruling.rule] == ["stop"]
    (ruling,) = (ruling for ruling in rulings[2] if "newly" in ruling.rule)
    assert (ruling.verdict, ruling.found, ruling.why) == ("pass", "2", "case01, case09")


@pytest.mark.parametrize(
    ("cases", "verdict", "why"),
    [
        (["case02", "case08"], "pass", "none"),
        (["case00"], "pass", "none"),  # the baseline was wrong there already
        (["case01", "case02"], "stop", "case01"),  # missed now
        (["case09"], "stop", "case09"),  # a false alarm now
    ],
)
def test_named_cases_must_stay_right(
    make_results: MakeResults, cases: list[str], verdict: str, why: str
) -> None:
    baseline = read_stored(make_results("old", misled=("case00",)))
    result = read_stored(make_results("new", misled=("case00", "case09"), wrong=("case01",)))
    report = judge(policy(baseline={"must_not_flip": cases}), result, baseline)
    (ruling,) = (ruling for ruling in report.rulings if "stay right" in ruling.rule)
    assert (ruling.verdict, ruling.why) == (verdict, why)


def test_unknown_case_is_refused(make_results: MakeResults) -> None:
    result = read_stored(make_results())
    with pytest.raises(InputError, match=r"must name cases of the suite, found.*nosuchcase"):
        judge(policy(baseline={"must_not_flip": ["nosuchcase"]}), result, result)


@pytest.mark.parametrize("field", ["suite_digest", "scoring_version"])
def test_only_equal_suites_and_scorings_are_compared(make_results: MakeResults, field: str) -> None:
    result = read_stored(make_results("new"))
    baseline = read_stored(make_results("old", **{field: "9.9"}))
    with pytest.raises(InputError, match=f"{field}: must equal .* found '9.9'"):
        judge(policy(baseline={}), result, baseline)


def test_baseline_and_its_section_come_together(make_results: MakeResults) -> None:
    result = read_stored(make_results())
    with pytest.raises(InputError, match="baseline section"):
        judge(policy(baseline={}), result, None)
    with pytest.raises(InputError, match="baseline section"):
        judge(policy(thresholds=[{"metric": "misled_rate", "max": 1}]), result, result)


def gate(tmp_path: Path, rules: str, *arguments: str) -> Result:
    (tmp_path / "gate.yaml").write_text(POLICY + rules)
    line = ["gate", "--policy", str(tmp_path / "gate.yaml"), *arguments]
    return CliRunner().invoke(cli, line)


RULES = """
thresholds:
  - {metric: misled_rate, max: 0.5}
  - {metric: recall_cause, min: 0.98}
  - {metric: top1, min: 0.5}
"""


def test_junit_has_a_test_case_a_rule(make_results: MakeResults, tmp_path: Path) -> None:
    file = tmp_path / "gate.xml"
    done = gate(tmp_path, RULES, str(make_results("a&b")), "--junit", str(file))
    assert done.exit_code == 1
    (suite,) = ElementTree.parse(file).getroot()
    assert {name: suite.get(name) for name in ("tests", "failures", "skipped", "errors")} == {
        "tests": "3",
        "failures": "1",
        "skipped": "1",
        "errors": "0",
    }
    assert [[part.tag for part in case] for case in suite] == [[], ["failure"], ["skipped"]]
    failure = suite.find("testcase/failure")
    assert failure is not None
    assert failure.get("message") == "stop: 0.875 [0.5, 0.97] (beyond the limit)"
    assert suite[0].get("classname") == "evalharness.gate.a&b"


def test_markdown_has_a_row_a_rule(make_results: MakeResults, tmp_path: Path) -> None:
    file = tmp_path / "gate.md"
    gate(tmp_path, RULES, str(make_results()), "--markdown", str(file))
    text = file.read_text()
    assert text.startswith("### evalharness gate: stop: rules on recorded_cpu\n")
    assert "| ❌ stop | `recall_cause >= 0.98 (bound)` | 0.875 [0.5, 0.97] |" in text
    assert sum(line.startswith("| ") for line in text.splitlines()) == 4  # heading and 3 rules


def test_json_and_exit_status(make_results: MakeResults, tmp_path: Path) -> None:
    rules = "thresholds: [{metric: misled_rate, max: 0.5}]"
    done = gate(tmp_path, rules, str(make_results()), "--json")
    assert done.exit_code == 0
    document = json.loads(done.stdout)
    assert (document["format"], document["verdict"]) == ("evalharness.gate/1.0", "pass")
    assert [ruling["verdict"] for ruling in document["rulings"]] == ["pass"]


def test_allow_unsealed(make_results: MakeResults, tmp_path: Path) -> None:
    rules = "thresholds: [{metric: misled_rate, max: 0.5}]"
    folder = str(make_results(sealed=False))
    assert isinstance(gate(tmp_path, rules, folder).exception, InputError)
    assert gate(tmp_path, rules, folder, "--allow-unsealed").exit_code == 0


def test_baseline_from_mlflow_is_never_the_result_itself(
    make_results: MakeResults, own_store: Path, tmp_path: Path
) -> None:
    rules = "baseline: {max_newly_misled: 0}"
    result = make_results("rules", out="new", misled=("case00", "case05"))
    track_results(result)
    alone = gate(tmp_path, rules, str(result), "--baseline", "mlflow:rules")
    assert "must hold an earlier run of rules" in str(alone.exception)
    track_results(make_results("rules", out="old", misled=("case00",)))
    done = gate(tmp_path, rules, str(result), "--baseline", "mlflow:rules", "--json")
    assert done.exit_code == 1, done.output
    newly = [r for r in json.loads(done.stdout)["rulings"] if "newly" in r["rule"]]
    assert [(ruling["found"], ruling["why"]) for ruling in newly] == [("1", "case05")]


def test_policy_of_the_documentation(make_results: MakeResults, tmp_path: Path) -> None:
    page = Path(__file__).parents[2] / "docs" / "gate.md"
    text = page.read_text().split("```yaml\n", 1)[1].split("```", 1)[0]
    text, named = re.subn(r"# must_not_flip: .*", "must_not_flip: [case04, case08]", text)
    assert named == 1
    recall = {"recall_cause_and_locus": {"value": 0.4, "low": 0.1, "high": 0.7}}
    baseline = make_results("old", misled=(), metrics=recall)
    results = {
        0: make_results("same", misled=("case01",), metrics=recall),
        1: make_results("flips", misled=("case04",), metrics=recall),
    }
    for status, folder in results.items():
        (tmp_path / "gate.yaml").write_text(text)
        line = ["gate", str(folder), "--policy", str(tmp_path / "gate.yaml")]
        done = CliRunner().invoke(cli, [*line, "--baseline", str(baseline)])
        assert done.exit_code == status, done.output

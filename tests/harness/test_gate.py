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
from harness.gate import judge
from harness.policy import Policy
from harness.ruling import Ruling
from harness.stored import read_stored
from harness.tracking import track_results

MakeResults = Callable[..., Path]
POLICY = "format: evalharness.policy/1.1\n"
# Cases 0 to 7 are faulty, 8 to 13 healthy.
HALF = ("case00", "case01", "case02", "case03", "case08", "case09", "case10")


def policy(**fields: Any) -> Policy:
    return parse_record({"format": "evalharness.policy/1.1", **fields}, Policy, where="gate.yaml")


def ruled(folder: Path, **threshold: Any) -> Ruling:
    """What a policy of one threshold says of a result."""
    return judge(policy(thresholds=[threshold]), read_stored(folder), None).rulings[0]


@pytest.mark.parametrize(
    ("limit", "verdict"),
    [
        # 7 of 14 cases in groups of one, and Student's t with 13 degrees of freedom at 5 % on one
        # side is 1.7709: t^2/n = 0.2240, centre 0.5, half width 1.7709 / 1.2240 *
        # sqrt(0.25/14 + 0.2240/(4*14)) = 0.2139, so that the bounds are 0.2861 and 0.7139.
        ({"max": 0.72}, "pass"),
        ({"max": 0.71}, "inconclusive"),
        ({"max": 0.29}, "inconclusive"),
        ({"max": 0.28}, "stop"),
        ({"min": 0.28}, "pass"),
        ({"min": 0.29}, "inconclusive"),
        ({"min": 0.71}, "inconclusive"),
        ({"min": 0.72}, "stop"),
        ({"max": 0.5, "by": "estimate"}, "pass"),
        ({"max": 0.49, "by": "estimate"}, "stop"),
        ({"min": 0.5, "by": "estimate"}, "pass"),
        ({"min": 0.51, "by": "estimate"}, "stop"),
    ],
)
def test_threshold(make_results: MakeResults, limit: dict[str, Any], verdict: str) -> None:
    ruling = ruled(make_results(misled=HALF), metric="misled_rate", **limit)
    shown = "0.5" if "by" in limit else "0.5 [0.286, 0.714]"
    assert (ruling.verdict, ruling.found) == (verdict, shown)


def test_no_interval_is_inconclusive_and_says_why(make_results: MakeResults) -> None:
    rule = {"metric": "recall_cause", "min": 0.99, "cause": "slow_link"}
    folder = make_results(wrong=("case04",))
    ruling = ruled(folder, **rule)
    assert (ruling.verdict, ruling.found) == ("inconclusive", "0.75")
    assert ruling.why == "no interval: 4 groups, at least 6 are needed"
    assert ruled(folder, **rule, by="estimate").verdict == "stop"


def test_a_metric_without_a_value_is_inconclusive(make_results: MakeResults) -> None:
    for by in ("bound", "estimate"):
        ruling = ruled(make_results(by), metric="overclaim_rate", max=0.5, by=by)
        assert (ruling.verdict, ruling.why) == ("inconclusive", "no undecidable case")


@pytest.mark.parametrize(
    ("where", "value"),
    [
        # wrong: cases 0 and 4; 0 to 3 are of the loader and cost 30 %, 4 to 7 of a link and 15 %
        ({}, "0.75"),
        ({"cause": "slow_link"}, "0.75"),
        ({"domain": "data_checkpoint"}, "0.75"),
        ({"severity": "severe"}, "0.75"),
        ({"severity": "moderate", "split": "dev"}, "0.5"),  # cases 4 and 5
        ({"split": "dev"}, "0.667"),  # cases 0 to 5
        ({"split": "public_test"}, "1"),
        ({"severity": "severe", "cause": "slow_link"}, "none"),
    ],
)
def test_thresholds_by_cause_domain_severity_and_split(
    make_results: MakeResults, where: dict[str, str], value: str
) -> None:
    splits = dict.fromkeys(("case06", "case07", "case13"), "public_test")
    folder = make_results(misled=(), wrong=("case00", "case04"), splits=splits)
    rule = {"metric": "recall_cause", "min": 0.1, "by": "estimate", **where}
    report = judge(policy(split="all", thresholds=[rule]), read_stored(folder), None)
    assert report.rulings[0].found == value
    named = [f"{key} {name}" for key, name in where.items()]
    assert all(part in report.rulings[0].rule for part in named)


def test_the_dev_split_is_looked_at_unless_another_is_named(make_results: MakeResults) -> None:
    folder = make_results(misled=("case00",), splits={"case00": "public_test"})
    rule = {"metric": "misled_rate", "max": 0, "by": "estimate"}
    for split, verdict in (
        (None, "pass"),
        ("dev", "pass"),
        ("public_test", "stop"),
        ("all", "stop"),
    ):
        fields = {"split": split} if split else {}
        report = judge(policy(thresholds=[rule], **fields), read_stored(folder), None)
        assert (report.verdict, report.splits) == (verdict, (split or "dev",))


@pytest.mark.parametrize("inconclusive", ["pass", "stop"])
def test_the_policy_says_what_inconclusive_does(
    make_results: MakeResults, inconclusive: str
) -> None:
    rules = policy(inconclusive=inconclusive, thresholds=[{"metric": "misled_rate", "max": 0.1}])
    report = judge(rules, read_stored(make_results()), None)
    assert (report.verdict, report.passed) == ("inconclusive", inconclusive == "pass")


def test_rules_share_one_error(make_results: MakeResults) -> None:
    """Alone the limit stops; beside 19 others it does not, for 5 % are then 0.25 % each."""
    folder = make_results(misled=HALF)
    alone = {"metric": "misled_rate", "max": 0.27}
    others = [{"metric": "misled_rate", "max": 0.9 + 0.001 * i} for i in range(19)]
    report = judge(policy(thresholds=[alone, *others]), read_stored(folder), None)
    assert ruled(folder, **alone).verdict == "stop"
    assert [ruling.verdict for ruling in report.rulings] == ["inconclusive"] + ["pass"] * 19
    estimates = [{**rule, "by": "estimate"} for rule in others]
    report = judge(policy(thresholds=[alone, *estimates]), read_stored(folder), None)
    assert report.rulings[0].verdict == "stop"  # limits on estimates are no tests


@pytest.mark.parametrize(
    ("fields", "field", "found"),
    [
        ({}, "", "stops nothing"),
        ({"thresholds": [{"metric": "misled_rate"}]}, "thresholds.0", "either max or min"),
        (
            {"thresholds": [{"metric": "misled_rate", "max": 0.1, "min": 0.0}]},
            "thresholds.0",
            "either max or min",
        ),
        ({"thresholds": [{"metric": "x", "max": 0.1}] * 2}, "", "state a rule once"),
        ({"thresholds": [{"metric": "x", "max": float("nan")}]}, "thresholds.0.max", "finite"),
        ({"thresholds": [{"metric": "x", "max": "much"}]}, "thresholds.0.max", "'much'"),
        ({"thresholds": [{"metric": "x", "maks": 1}]}, "thresholds.0.maks", "not permitted"),
        (
            {"thresholds": [{"metric": "x", "max": 1, "severity": "bad"}]},
            "thresholds.0.severity",
            "'bad'",
        ),
        ({"thresholds": [{"metric": "x", "max": 1}], "inconclusive": "maybe"}, "inconclusive", ""),
        ({"thresholds": [{"metric": "x", "max": 1}], "split": "test"}, "split", "'test'"),
        ({"alpha": 0.6, "baseline": {}}, "alpha", "0.6"),
        ({"baseline": {"alpha": 0}}, "baseline.alpha", "0"),
        ({"baseline": {"margin": 0}}, "baseline.margin", "0"),
        ({"baseline": {"metric": "misled_rate"}}, "baseline.metric", "'misled_rate'"),
        ({"baseline": {"max_newly_misled": -1}}, "baseline.max_newly_misled", "-1"),
        ({"baseline": {"must_not_flip": ["../x"]}}, "baseline.must_not_flip.0", "'../x'"),
        ({"format": "evalharness.policy/2.0"}, "format", "2.0"),
        ({"format": "evalharness.gate/1.0"}, "format", "evalharness.gate"),
    ],
)
def test_bad_policies_are_refused(fields: dict[str, Any], field: str, found: str) -> None:
    start = f"gate.yaml: {field}: " if field else "gate.yaml: "
    with pytest.raises(InputError) as refused:
        policy(**fields)
    assert str(refused.value).startswith(start)
    assert found in str(refused.value)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (
            {"thresholds": [{"metric": "accuracy", "min": 0.5}]},
            r"thresholds\.0\.metric: must be a metric of the result, one of .*, found 'accuracy'",
        ),
        (
            {"thresholds": [{"metric": "misled_rate", "max": 20}]},
            r"thresholds\.0\.max: must be within 0 and 1, for misled_rate is a share, found 20",
        ),
        (
            {"thresholds": [{"metric": "recall_cause", "min": -0.1}]},
            r"thresholds\.0\.min: must be within 0 and 1.*-0.1",
        ),
        (
            {"thresholds": [{"metric": "misled_rate", "max": 0.1, "cause": "gremlins"}]},
            r"thresholds\.0\.cause: must be a cause of the taxonomy, one of .*'gremlins'",
        ),
        (
            {"thresholds": [{"metric": "misled_rate", "max": 0.1, "domain": "slow_link"}]},
            r"thresholds\.0\.domain: must be a domain of the taxonomy, one of .*'slow_link'",
        ),
        (
            {"thresholds": [{"metric": "misled_rate", "max": 0.1, "split": "train"}]},
            r"thresholds\.0\.split: must be a split that the result has cases of, .*'train'",
        ),
        ({"split": "train", "baseline": {}}, r"split: must be a split .*one of all, dev.*'train'"),
        (
            {"baseline": {"must_not_flip": ["nosuchcase"]}},
            r"baseline\.must_not_flip: must name cases of the suite, found \['nosuchcase'\]",
        ),
    ],
)
def test_policies_that_name_what_there_is_not_are_refused(
    make_results: MakeResults, fields: dict[str, Any], said: str
) -> None:
    result = read_stored(make_results())
    baseline = result if "baseline" in fields else None
    with pytest.raises(InputError, match=rf"^my\.yaml: {said}"):
        judge(policy(**fields), result, baseline, "my.yaml")


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


def test_results_of_older_versions_say_how_to_mend_them(make_results: MakeResults) -> None:
    folder = make_results()
    (folder / "faults.parquet").unlink()
    with pytest.raises(InputError, match=r"faults\.parquet: must exist \(`evalharness score`"):
        ruled(folder, metric="misled_rate", max=1)


def compared(policy_fields: dict[str, Any], result: Path, baseline: Path, **whole: Any) -> Ruling:
    rules = policy(baseline=policy_fields, **whole)
    return judge(rules, read_stored(result), read_stored(baseline)).rulings[0]


def test_worse_beyond_the_margin_stops(make_results: MakeResults) -> None:
    # Eight of eight faulty cases lost 1 each, at 0.2 / 0.9 of the prevalence: -0.222 in all.
    # All signs equal in 8 groups: p = 1 / 2**8 on one side.
    faulty = tuple(f"case{number:02d}" for number in range(8))
    good, bad = make_results("good", misled=()), make_results("bad", misled=(), wrong=faulty)
    ruling = compared({"margin": 0.1}, bad, good)
    assert ruling.verdict == "stop"
    assert ruling.found == "-0.222 [-0.222, -0.222], p = 0.0039, 8 of 14 groups differ"
    assert compared({"margin": 0.3}, bad, good).verdict == "pass"
    assert compared({"margin": 0.1}, bad, good, alpha=0.003).verdict == "inconclusive"
    assert compared({"margin": 0.1}, good, bad).verdict == "pass"


def test_alpha_of_the_margin_says_how_sure_a_pass_is(make_results: MakeResults) -> None:
    # Seven of eight lost: -0.194 in all, but a suite like this might have lost all eight.
    lost = tuple(f"case{number:02d}" for number in range(7))
    good, bad = make_results("good", misled=()), make_results("bad", misled=(), wrong=lost)
    assert compared({"margin": 0.3, "alpha": 0.05}, bad, good).verdict == "pass"
    assert compared({"margin": 0.3, "alpha": 0.001}, bad, good).verdict == "stop"


def test_other_weights_of_a_false_finding(make_results: MakeResults) -> None:
    # Misled on six healthy cases of six, at 0.7 / 0.9 of the prevalence and w = 2: -1.56.
    healthy = tuple(f"case{number:02d}" for number in range(8, 14))
    good, bad = make_results("good", misled=()), make_results("bad", misled=healthy)
    ruling = compared({"metric": "net_benefit_w2_reference"}, bad, good)
    assert ruling.found.startswith("-1.56 [-1.56, -1.56], p = 0.016, 6 of 14")
    assert ruling.rule.startswith("net_benefit_w2_reference not worse")


def test_few_differing_groups_are_inconclusive_and_none_passes(make_results: MakeResults) -> None:
    good = make_results("good", misled=())
    bad = make_results("bad", misled=("case00", "case01", "case02", "case03", "case08"))
    few = compared({}, bad, good)
    assert few.verdict == "inconclusive"
    assert "5 groups differ, at least 6 are needed" in few.why
    assert compared({}, good, good).verdict == "pass"


def test_newly_misled_counts_only_what_the_baseline_was_not(make_results: MakeResults) -> None:
    splits = {"case02": "public_test"}
    baseline = read_stored(make_results("old", misled=("case00",), splits=splits))
    misled = ("case00", "case01", "case02", "case09")
    result = read_stored(make_results("new", misled=misled, splits=splits))
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
        (["case09"], "stop", "case09"),  # a false alarm now, and of another split
    ],
)
def test_named_cases_must_stay_right(
    make_results: MakeResults, cases: list[str], verdict: str, why: str
) -> None:
    splits = {"case09": "public_test"}
    baseline = read_stored(make_results("old", misled=("case00",), splits=splits))
    new = make_results("new", misled=("case00", "case09"), wrong=("case01",), splits=splits)
    report = judge(policy(baseline={"must_not_flip": cases}), read_stored(new), baseline)
    (ruling,) = (ruling for ruling in report.rulings if "stay right" in ruling.rule)
    assert (ruling.verdict, ruling.why) == (verdict, why)


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
  - {metric: recall_cause, min: 0.5, cause: slow_link}
"""
LOST = tuple(f"case{number:02d}" for number in range(1, 8))


def test_junit_has_a_test_case_a_rule(make_results: MakeResults, tmp_path: Path) -> None:
    file = tmp_path / "gate.xml"
    folder = make_results("a&b", misled=(), wrong=LOST)
    done = gate(tmp_path, RULES, str(folder), "--junit", str(file))
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
    message = failure.get("message") or ""
    assert message.startswith("stop: 0.125 [")
    assert message.endswith("(beyond the limit (one-sided error 1.67%))")
    assert suite[0].get("classname") == "evalharness.gate.a&b"


def test_markdown_has_a_row_a_rule(make_results: MakeResults, tmp_path: Path) -> None:
    file = tmp_path / "gate.md"
    gate(tmp_path, RULES, str(make_results(misled=(), wrong=LOST)), "--markdown", str(file))
    text = file.read_text()
    assert text.startswith("### evalharness gate: stop: rules on recorded_cpu\n")
    assert "| ❌ stop | `recall_cause >= 0.98 (bound)` | 0.125 [" in text
    assert sum(line.startswith("| ") for line in text.splitlines()) == 4  # heading and 3 rules


@pytest.mark.parametrize(("inconclusive", "status"), [("pass", 0), ("stop", 1)])
def test_json_and_exit_status(
    make_results: MakeResults, tmp_path: Path, inconclusive: str, status: int
) -> None:
    rules = f"inconclusive: {inconclusive}\nthresholds: [{{metric: misled_rate, max: 0.1}}]"
    file = tmp_path / "gate.json"
    done = gate(tmp_path, rules, str(make_results()), "--json", "--json-file", str(file))
    assert done.exit_code == status
    document = json.loads(done.stdout)
    assert document == json.loads(file.read_text())
    assert (document["format"], document["verdict"]) == ("evalharness.gate/2.0", "inconclusive")
    assert (document["passed"], document["splits"]) == (status == 0, ["dev"])
    assert [ruling["verdict"] for ruling in document["rulings"]] == ["inconclusive"]
    text = gate(tmp_path, rules, str(tmp_path / "out")).stdout
    assert f"inconclusive (counts as {inconclusive}): rules on recorded_cpu" in text


def test_allow_unsealed(make_results: MakeResults, tmp_path: Path) -> None:
    rules = "thresholds: [{metric: misled_rate, max: 0.5}]"
    folder = str(make_results(sealed=False))
    assert isinstance(gate(tmp_path, rules, folder).exception, InputError)
    assert gate(tmp_path, rules, folder, "--allow-unsealed").exit_code == 0


def test_uses_of_the_public_test_split_are_logged(
    make_results: MakeResults, own_store: Path, tmp_path: Path
) -> None:
    folder = str(make_results(misled=(), splits={"case07": "public_test"}))
    log = own_store / "public_test_uses.jsonl"
    limit = "{metric: misled_rate, max: 0.9"
    done = gate(tmp_path, f"thresholds: [{limit}}}]", folder)
    assert (done.exit_code, done.stderr, log.exists()) == (0, "", False)
    uses = [
        f"split: all\nthresholds: [{limit}}}]",
        f"thresholds: [{limit}, split: public_test}}]",
        "baseline: {must_not_flip: [case07]}",
    ]
    for count, rules in enumerate(uses, start=1):
        against = ["--baseline", folder] if "baseline" in rules else []
        done = gate(tmp_path, rules, folder, *against)
        assert f"use {count} of the public test split of recorded_cpu" in done.stderr
        assert f"Public test split used, time {count}." in done.stdout
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [line["diagnoser"] for line in lines] == ["rules"] * 3
    with log.open("a") as file:
        file.write('{"format": "evalh')  # an interrupted writer
    assert "use 4" in gate(tmp_path, "split: all\nthresholds: [" + limit + "}]", folder).stderr


def test_a_log_that_cannot_be_written_is_no_reason_to_stop(
    make_results: MakeResults, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "file"))
    folder = str(make_results(splits={"case07": "public_test"}))
    done = gate(tmp_path, "split: all\nthresholds: [{metric: misled_rate, max: 0.9}]", folder)
    assert done.exit_code == 0
    assert "use of the public test split is not logged" in done.stderr
    assert "Public test split used." in done.stdout


def newly(done: Result) -> list[tuple[str, str]]:
    rulings = json.loads(done.stdout)["rulings"]
    return [(rule["found"], rule["why"]) for rule in rulings if "newly" in rule["rule"]]


def test_baselines_from_mlflow(make_results: MakeResults, own_store: Path, tmp_path: Path) -> None:
    rules = "baseline: {max_newly_misled: 0}"
    result = make_results("rules", out="new", misled=("case00", "case05"))
    track_results(result)

    def against(place: str) -> Result:
        return gate(tmp_path, rules, str(result), "--baseline", place, "--json")

    # The latest run is never the result itself.
    assert "must hold an earlier run of rules" in str(against("mlflow:rules").exception)
    old = make_results("rules", out="old", misled=("case00",))
    sent = ["track", str(old), "--alias", "champion", "--json"]
    done = CliRunner().invoke(cli, sent, catch_exceptions=False)
    (run,) = json.loads(done.stdout)["runs"]
    model = "models:/evalharness.recorded_cpu.rules@champion"
    for place in ("mlflow:rules", f"runs:/{run['run_id']}", "mlflow:rules@champion", model):
        done = against(place)
        assert done.exit_code == 1, done.output
        assert newly(done) == [("1", "case05")], place
    # The alias moves to the run that is given it next.
    CliRunner().invoke(cli, ["track", str(result), "--alias", "champion"], catch_exceptions=False)
    assert newly(against("mlflow:rules@champion")) == [("0", "none")]
    for place, said in (
        ("mlflow:rules@nobody", "nobody not found"),
        ("mlflow:other@champion", "not found"),
        ("models:/rules", "must name an alias as NAME@ALIAS"),
        ("runs:/" + "a" * 32, "not found"),
        (str(tmp_path / "nowhere"), "must be or hold a results folder"),
    ):
        failed = against(place)
        assert isinstance(failed.exception, InputError), place
        assert said in str(failed.exception)


PAGE = Path(__file__).parents[2] / "docs" / "gate.md"


def test_policy_of_the_documentation(make_results: MakeResults, tmp_path: Path) -> None:
    text = PAGE.read_text().split("```yaml\n", 1)[1].split("```", 1)[0]
    text, named = re.subn(r"# must_not_flip: .*", "must_not_flip: [case04, case08]", text)
    assert named == 1
    splits = {"case06": "train", "case13": "train"}
    baseline = make_results("old", misled=(), splits=splits)
    for status, misled in ((0, "case01"), (1, "case04")):
        folder = make_results(misled, misled=(misled,), splits=splits)
        (tmp_path / "gate.yaml").write_text(text)
        line = ["gate", str(folder), "--policy", str(tmp_path / "gate.yaml"), "--json"]
        done = CliRunner().invoke(cli, [*line, "--baseline", str(baseline)])
        assert done.exit_code == status, done.output
        assert len(json.loads(done.stdout)["rulings"]) == 4 + 3


def test_policies_of_version_1_0_are_read_as_before(make_results: MakeResults) -> None:
    document = {
        "format": "evalharness.policy/1.0",
        "require": {"sealed": True, "ranked": True},
        "inconclusive": "stop",
        "thresholds": [{"metric": "misled_rate", "max": 0.2, "by": "estimate"}],
        "baseline": {
            "metric": "net_benefit_w1_reference",
            "margin": 0.05,
            "alpha": 0.05,
            "max_newly_misled": 2,
            "must_not_flip": ["case04"],
        },
    }
    old = parse_record(document, Policy, where="gate.yaml")
    result = read_stored(make_results())
    report = judge(old, result, result)
    assert [ruling.verdict for ruling in report.rulings] == ["pass"] * 4

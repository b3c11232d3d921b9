"""A gate report as text, JSON, Markdown for a pull request, and JUnit XML for CI."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any
from xml.etree import ElementTree

from harness.ruling import GateReport, Ruling

MARKS = {"pass": "✅ pass", "stop": "❌ stop", "inconclusive": "🟡 inconclusive"}


def headline(report: GateReport) -> str:
    """Say in one line what was judged against what, and how it ended."""
    against = f" against {report.baseline}" if report.baseline else ""
    counts = f" (counts as {report.inconclusive})" if report.verdict == "inconclusive" else ""
    return f"{report.verdict}{counts}: {report.result}{against} on {report.suite}"


def footnote(report: GateReport) -> str:
    """State what was looked at, what inconclusive does and what the numbers hold for."""
    digest = report.suite_digest.removeprefix("sha256:")[:12]
    use = report.public_test_use
    logged = "" if use is None else f" Public test split used{f', time {use}' if use else ''}."
    return (
        f"Split {', '.join(report.splits)}. All rules together stop a result that breaks none in"
        f" at most {report.alpha:.2%}. Inconclusive counts as {report.inconclusive}.{logged}"
        f" Suite digest {digest}, scoring {report.scoring_version}."
    )


def as_text(report: GateReport) -> str:
    """Return one line a ruling, then the verdict."""
    wide = max(len(ruling.rule) for ruling in report.rulings)
    lines = [
        f"{ruling.verdict:<13} {ruling.rule:<{wide}}  {ruling.found}  ({ruling.why})"
        for ruling in report.rulings
    ]
    return "\n".join([*lines, footnote(report), headline(report)])


def as_json(report: GateReport) -> dict[str, Any]:
    """Return the report as a versioned JSON document."""
    settled = {"verdict": report.verdict, "passed": report.passed}
    return {"format": "evalharness.gate/2.0", **settled, **asdict(report)}


def as_markdown(report: GateReport) -> str:
    """Return a heading, a table and a note, fit for a pull request's comment."""
    rows = [
        [MARKS[ruling.verdict], f"`{ruling.rule}`", ruling.found, ruling.why]
        for ruling in report.rulings
    ]
    lines = [f"### evalharness gate: {headline(report)}", ""]
    lines += ["| verdict | rule | found | why |", "|---|---|---|---|"]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join([*lines, "", footnote(report), ""])


def as_junit(report: GateReport) -> bytes:
    """Return JUnit XML: a test case a rule; inconclusive is skipped, or failed if it stops."""
    endings = [_ending(ruling, report) for ruling in report.rulings]
    suite = ElementTree.Element(
        "testsuite",
        name=f"evalharness.gate.{report.suite}",
        tests=str(len(endings)),
        failures=str(endings.count("failure")),
        errors="0",
        skipped=str(endings.count("skipped")),
    )
    for ruling, ending in zip(report.rulings, endings, strict=True):
        case = ElementTree.SubElement(
            suite, "testcase", classname=f"evalharness.gate.{report.result}", name=ruling.rule
        )
        if ending is not None:
            message = f"{ruling.verdict}: {ruling.found} ({ruling.why})"
            ElementTree.SubElement(case, ending, message=message).text = footnote(report)
    root = ElementTree.Element("testsuites")
    root.append(suite)
    ElementTree.indent(root)
    text: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return text


def _ending(ruling: Ruling, report: GateReport) -> str | None:
    if ruling.verdict == "pass":
        return None
    minds = ruling.verdict == "stop" or report.inconclusive == "stop"
    return "failure" if minds else "skipped"

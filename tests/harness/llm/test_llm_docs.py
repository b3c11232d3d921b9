"""docs/llm.md: its transcript is what a scripted model gets, its variables are those there are."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import harness
from harness.cli import cli
from harness.diagnosers.case_tools.mcp import CHECK
from harness.diagnosers.case_tools.tools import TOOLS
from harness.llm.settings import KEY, PREFIX, ModelSettings

PAGE = Path(harness.__file__).parents[1] / "docs" / "llm.md"
CASE = "484db83c2218"
MOST_LINES = 5
pytestmark = pytest.mark.skipif(not PAGE.is_file(), reason="the documentation is not installed")

SLOWER = (
    "SELECT (SELECT avg(duration_ns) FROM steps) / (SELECT avg(duration_ns) FROM reference.steps)"
    " AS slower"
)
PARTS = (
    "SELECT avg(last - first) / 1e6 AS wait_ms, avg(done - last) / 1e6 AS transfer_ms"
    " FROM (SELECT min(created_ns) AS first, max(created_ns) AS last, max(completed_ns) AS done"
    " FROM collectives GROUP BY seq)"
)
DELAYS = (
    "SELECT rank, sum(run_delay_ns) / sum(cpu_ns) AS waits FROM processes WHERE role = 'rank'"
    " GROUP BY rank ORDER BY rank"
)
DELAY = "SELECT sum(run_delay_ns) / sum(cpu_ns) FROM processes WHERE rank = 0 AND role = 'rank'"


def answer(delay: float) -> dict[str, Any]:
    says = "seconds that rank 0 waits for a core per second of CPU time"
    finding = {
        "cause": "cpu_contention_colocated",
        "locus": {"scope": "rank", "ranks": [0]},
        "confidence": 0.85,
        "evidence": [{"sql": DELAY, "value": delay, "says": says}],
    }
    return {"verdict": "faulty", "findings": [finding], "confidence": 0.85}


def render(transcript: dict[str, Any]) -> str:
    """The messages after the opening, long ones cut."""
    return "\n".join(line for said in transcript["messages"][2:] for line in lines(said))


def lines(said: dict[str, Any]) -> Iterator[str]:
    for call in said.get("tool_calls") or ():
        function = call["function"]
        yield f"model  {function['name']} {function['arguments']}"
    if said["role"] != "assistant":
        text = said["content"].splitlines()
        cut = [*text[:MOST_LINES], "..."] if len(text) > MOST_LINES else text
        yield from (f"tool   {line}".rstrip() for line in cut)


def test_transcript_is_what_a_scripted_model_gets(
    environment: None, server: Any, script: Any
) -> None:
    plays = [
        script.calls(("list_tables", {}), ("run_sql", {"sql": SLOWER})),
        script.calls(("run_sql", {"sql": PARTS}), ("run_sql", {"sql": DELAYS})),
        script.submits(answer(2.0)),
        script.submits(answer(2.62)),
    ]
    server.play = lambda request, number: plays[number - 1]
    result = CliRunner().invoke(cli, ["ask", "-d", "llm", "--case", CASE])
    assert result.exit_code == 0, result.output + repr(result.exception)
    assert result.stdout.strip() in PAGE.read_text()
    path = Path(f"results/recorded_cpu/llm/asked/transcripts/{CASE}.json")
    assert render(json.loads(path.read_text())) in PAGE.read_text()


def test_every_variable_is_documented() -> None:
    named = set(re.findall(rf"{PREFIX}\w+", PAGE.read_text()))
    assert named == {KEY, *(PREFIX + name.upper() for name in ModelSettings.model_fields)}


def test_every_tool_is_documented() -> None:
    assert all(f"`{name}`" in PAGE.read_text() for name in (*TOOLS, CHECK, "submit_diagnosis"))


def snippet(language: str, number: int) -> str:
    found = re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    return found[number]


def test_command_of_the_page_runs(environment: None, tiny_suite: Path) -> None:
    command = snippet("sh", 0).splitlines()[-1].replace("recorded_cpu", str(tiny_suite))
    program, *arguments = shlex.split(command)
    assert program == "evalharness"
    result = CliRunner().invoke(cli, [*arguments, "--no-track", "--json"])
    assert json.loads(result.stdout)[0]["outcomes"] == {"ok": 9}


def test_agent_of_the_page_runs_as_a_diagnoser(
    tiny_suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("agent.py").write_text(snippet("python", 0))
    command = snippet("sh", 2).strip().replace("recorded_cpu", str(tiny_suite))
    arguments = shlex.split(command)[1:]
    result = CliRunner().invoke(cli, [*arguments, "--no-track", "--json"])
    assert json.loads(result.stdout)[0]["outcomes"] == {"ok": 9}

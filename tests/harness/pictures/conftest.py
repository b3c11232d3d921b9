"""A judged results folder, with an ablation and stress beside it, made by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.cli import cli

DIAGNOSER = """
def diagnose(case):
    if not case.has("loader"):
        return {"verdict": "abstain"}
    grown = case.loader["cpu_ns"].mean() / case.reference.loader["cpu_ns"].mean()
    slower = case.steps["duration_ns"].mean() / case.reference.steps["duration_ns"].mean()
    if grown > 2:
        blamed = {"cause": "dataloader_cpu_bound", "locus": {"scope": "job"}, "confidence": 0.9}
        return {"verdict": "faulty", "findings": [blamed], "confidence": 0.9}
    if slower > 1.2:
        blamed = {"cause": "slow_link", "confidence": 0.6}
        return {"verdict": "faulty", "findings": [blamed], "confidence": 0.6}
    return {"verdict": "healthy", "confidence": 0.8}
"""


def metric(value: float | None, low: float | None = None, high: float | None = None) -> dict:
    return {"name": "m", "value": value, "low": low, "high": high, "n": 9, "groups": 3}


ABLATION = {
    "format": "evalharness.ablation/1.0",
    "signals": [
        {
            "signal": "loader",
            "withheld": {"recall": metric(0.5, 0.2, 0.8), "net_benefit": metric(0.1)},
            "alone": {"recall": metric(0.5), "net_benefit": metric(0.1)},
            "causes": {"dataloader_cpu_bound": metric(1.0)},
            "causes_alone": {"dataloader_cpu_bound": metric(1.0)},
        }
    ],
}
STRESS = {
    "format": "evalharness.stress/1.0",
    "degradations": [
        {
            "name": name,
            "cases": cases,
            "grades": [
                {
                    "level": level,
                    "shown": f"level {level}",
                    "turns": "inconclusive",
                    "rates": {
                        "recall": metric(0.5 - level / 2),
                        "misled": metric(level / 2),
                        "abstained": metric(0.0),
                        "failed": metric(None),
                    },
                }
                for level in (0.0, 0.5, 1.0)
            ],
        }
        for name, cases in (("noise", 9), ("clock_skew", 0))
    ],
}


@pytest.fixture(scope="session")
def judged(tiny_suite: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results folder of a diagnoser that finds loaders and takes all else for the network."""
    folder = tmp_path_factory.mktemp("judged")
    (folder / "mine.py").write_text(DIAGNOSER)
    given = ["run", "-d", f"mine={folder / 'mine.py'}:diagnose", "--suite", str(tiny_suite)]
    done = CliRunner().invoke(cli, [*given, "--out", str(folder / "results"), "--no-track"])
    assert done.exit_code == 0, done.output + repr(done.exception)
    results = folder / "results" / "tiny" / "mine"
    (results / "ablation.json").write_text(json.dumps(ABLATION))
    (results / "stress.json").write_text(json.dumps(STRESS))
    return results

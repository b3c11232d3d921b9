"""What of a result goes to MLflow, as plain dictionaries, and what comes back."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from cases.documents import canonical_json
from harness.stored import Metric, StoredResult

PARAM_LIMIT = 6000  # characters MLflow accepts in one parameter
DATASET_DIGEST_LIMIT = 36  # characters MLflow keeps of a dataset's digest


@dataclass(frozen=True)
class TrackedRun:
    """One run as MLflow gives it back."""

    run_id: str
    diagnoser: str
    started_ms: int
    tags: dict[str, str]
    metrics: dict[str, float]

    def metric(self, name: str) -> Metric:
        """Return a metric with its bounds; all None if it was not scored."""
        low, high = self.metrics.get(f"{name}_low"), self.metrics.get(f"{name}_high")
        return Metric(value=self.metrics.get(name), low=low, high=high)

    @property
    def sealed(self) -> bool:
        """Whether labels were proven out of the diagnoser's reach."""
        return self.tags.get("sealed") == "true"

    @property
    def ranked(self) -> bool:
        """Whether the run kept to the rules of a ranking."""
        return self.tags.get("ranked") == "true"


def content_key(result: StoredResult) -> str:
    """Return the digest that makes two sends of one result the same run.

    It covers what was asked, what was answered and by what rules it was judged, but not what
    a resumed run may change without asking anew, such as the number of jobs.
    """
    answers = hashlib.sha256((result.folder / "answers.jsonl").read_bytes()).hexdigest()
    summary = result.summary
    judged = [summary.suite, summary.suite_digest, summary.scoring_version, summary.diagnoser]
    return hashlib.sha256(canonical_json([result.run["key"], answers, judged])).hexdigest()


def run_params(run: dict[str, Any]) -> dict[str, str]:
    """Flatten run.json into parameters.

    >>> run_params({"format": "evalharness.run/1.0", "limits": {"time_s": 60}, "tags": [1]})
    {'limits.time_s': '60', 'tags': '[1]'}
    """
    pairs = (pair for key, value in run.items() if key != "format" for pair in _flat(key, value))
    return {_name(key): value[:PARAM_LIMIT] for key, value in pairs}


def _flat(key: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for part, inner in value.items():
            yield from _flat(f"{key}.{part}", inner)
    elif value is not None:
        yield key, value if isinstance(value, str) else json.dumps(value)


def run_metrics(result: StoredResult) -> dict[str, float]:
    """Return every number of the summary: `name`, `name_low`, `name_high`, buckets, floors, costs.

    A metric that could not be computed is left out, never sent as 0.
    """
    summary = result.summary
    found: dict[str, float | None] = {}
    for name, metric in summary.metrics.items():
        found |= {name: metric.value, f"{name}_low": metric.low, f"{name}_high": metric.high}
    for floor, values in summary.floors.items():
        found |= {f"floor/{floor}/{name}": value for name, value in values.items()}
    found |= dict(_counts("bucket", summary.buckets))
    found |= {f"cases/{name}": n for name, n in summary.composition.items()}
    found |= dict(_counts("timing", summary.timing)) | dict(_counts("cost", summary.cost))
    return {_name(name): float(value) for name, value in found.items() if value is not None}


def _counts(key: str, value: Any) -> Iterator[tuple[str, float]]:
    if isinstance(value, dict):
        for part, inner in value.items():
            yield from _counts(f"{key}/{part}", inner)
    elif isinstance(value, int | float):
        yield key, value


def run_tags(result: StoredResult, key: str) -> dict[str, str]:
    """Return the tags by which results are found, grouped and set apart."""
    summary = result.summary
    return {
        "content_key": key,
        "suite": summary.suite,
        "suite_digest": summary.suite_digest,
        "scoring_version": summary.scoring_version,
        "diagnoser": summary.diagnoser,
        "diagnoser_digest": summary.diagnoser_digest,
        "isolation": summary.isolation.level,
        "sealed": json.dumps(summary.isolation.sealed),
        "ranked": json.dumps(summary.ranked),
        "labels": summary.labels,
    }


def _name(text: str) -> str:
    """Return `text` with the characters MLflow refuses in names replaced.

    >>> _name("ac@3 (all)")
    'ac_3 _all_'
    """
    return re.sub(r"[^\w./ -]", "_", text)

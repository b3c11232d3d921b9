"""The same questions asked again: how often does a diagnoser that is not deterministic flip?"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cases.documents import read_json
from harness.results import RUN
from scorers import Metric, Response, Scores
from scorers.rates import rate_bounds

REPEATS = "repeats"


def repeat_folder(results: Path, number: int) -> Path:
    """Folder of one repetition's answers; the first asking, number 1, is the result itself."""
    return results / REPEATS / str(number)


def finished_repeats(results: Path, key: str) -> list[Path]:
    """Return the folders of the repetitions that ended, if they belong to the run `key`."""
    found = sorted(results.glob(f"{REPEATS}/*/{RUN}"), key=lambda path: int(path.parent.name))
    return [path.parent for path in found if read_json(path).get("key") == key]


def flips(scores: Sequence[Scores], responses: Sequence[Mapping[str, Response]]) -> dict[str, Any]:
    """Say how alike several askings came out.

    Args:
        scores: Outcomes of each asking.
        responses: The answers of each, by case.

    Returns:
        askings; metrics, by name: flip_rate, the chance that two askings about a case end in
        different buckets, and answer_flip_rate, that they blame something else; flipped, the
        buckets of each case that had several; misled_rate, of each asking.
    """
    cases = scores[0].cases
    buckets = [dict(zip(s.cases["case_id"], s.cases["bucket"], strict=True)) for s in scores]
    ended = {case: [own[case] for own in buckets] for case in cases["case_id"]}
    said = {case: [_said(own[case]) for own in responses] for case in cases["case_id"]}
    metrics = {
        "flip_rate": flip_rate("flip_rate", ended, cases),
        "answer_flip_rate": flip_rate("answer_flip_rate", said, cases),
    }
    return {
        "askings": len(scores),
        "metrics": metrics,
        "flipped": {case: own for case, own in ended.items() if len(set(own)) > 1},
        "misled_rate": [float(s.cases["misled"].mean()) for s in scores],
    }


def flip_rate(name: str, said: Mapping[str, Sequence[Hashable]], cases: pd.DataFrame) -> Metric:
    """Mean over cases of the share of pairs of askings that differ.

    Args:
        name: Name of the figure.
        said: What each asking came to, by case; at least two askings.
        cases: Table of the cases, with their groups.
    """
    values = np.array([differing(said[case]) for case in cases["case_id"]], dtype=np.float64)
    groups = np.unique(cases["group"].to_numpy(str), return_inverse=True)[1]
    bounds = rate_bounds(values, groups)
    return Metric.bounded(name, float(values.mean()), bounds, len(values), int(groups.max()) + 1)


def differing(said: Sequence[Hashable]) -> float:
    """Return the share of pairs that differ.

    >>> differing("ab"), differing("aa")
    (1.0, 0.0)
    """
    pairs = len(said) * (len(said) - 1)
    alike = sum(said.count(one) - 1 for one in said)
    return 1 - alike / pairs


def _said(response: Response) -> Hashable:
    """Return what an answer says, whatever its confidence, evidence and order are."""
    if response.diagnosis is None:
        return response.outcome
    blamed = sorted(
        (f.cause, f.role, f.locus.model_dump_json() if f.locus else "") for f in response.findings
    )
    return response.diagnosis.verdict, tuple(blamed)

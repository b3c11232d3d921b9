"""The table `requests`: what was asked while the recording went on, or was still open."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.extensions import ExtensionArray

from injectors.sim.serving.request import Request

TIMES = ("arrival_ns", "scheduled_ns", "first_token_ns", "finished_ns")


def request_table(requests: Iterable[Request], begin_ns: int) -> pd.DataFrame:
    """Return the rows, numbered from 0 in the order of arrival; times from `begin_ns` on."""
    there = [r for r in requests if r.finished_ns < 0 or r.finished_ns >= begin_ns]
    columns: dict[str, Any] = {"request": range(len(there))}
    for name in TIMES:
        at = np.array([getattr(request, name) for request in there], np.int64)
        columns[name] = pd.array(at - begin_ns, dtype="Int64")
        columns[name][at < 0] = pd.NA
    columns |= {
        "prompt_tokens": [request.prompt_tokens for request in there],
        "generation_tokens": [request.generated for request in there],
        "cached_tokens": [request.cached_tokens for request in there],
        "preemptions": [request.preemptions for request in there],
        "request_class": [request.request_class for request in there],
        "tenant": _tenants(there),
        "engine": [request.engine for request in there],
    }
    return pd.DataFrame(columns)


def _tenants(requests: Sequence[Request]) -> ExtensionArray:
    known = [-1 if request.tenant is None else request.tenant for request in requests]
    found = pd.array(np.array(known, np.int64), dtype="Int64")
    found[np.array(known) < 0] = pd.NA
    return found

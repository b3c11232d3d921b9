"""Trivia: what no mechanism changes must not tell healthy cases from the others."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from cases.bundle import Suite
from cases.case import Case, Recording
from cases.documents import read_text
from cases.kineto.compressed import gunzip
from cases.layout import CASE_FILE
from cases.tables import SIGNALS
from cases.trace_files import MAX_UNPACKED_BYTES
from harness.audit.classifier import Separation, separation
from harness.judge import Truth

BINDING_CASES = 200
AUC_LIMIT = 0.60
ALPHA = 0.01
BASE_TIME = re.compile(rb'"baseTimeNanoseconds"\s*:\s*(\d+)')
ID_CHARACTERS = 10


def trivia_separation(
    suite: Suite, truths: dict[str, Truth], features: pd.DataFrame
) -> Separation | None:
    """Tell healthy cases from all others by trivia alone, see `separation`.

    Undecidable ones are among the others: beside them, a healthy case with as little recorded
    is not given away by what is missing.
    """
    judged = list(suite.case_ids)
    positive = np.array([truths[case_id].verdict != "healthy" for case_id in judged])
    groups = np.array([truths[case_id].group for case_id in judged])
    return separation(features.loc[judged], positive, groups)


def passes(found: Separation | None) -> bool:
    """Whether trivia give nothing away: the AUC's bound in a large suite, else the test."""
    if found is None:
        return True
    if found.cases >= BINDING_CASES:
        return found.auc_high <= AUC_LIMIT
    return found.p_value >= ALPHA


def trivia_features(suite: Suite, case: Case) -> dict[str, object]:
    """Describe a case by trivia: its id, place, words, versions, and how its files were written.

    Sizes of content are left out on purpose: a mechanism that acts changes how well a signal
    compresses, and that is a symptom, not a leak.
    """
    info, folder = case.info, suite.case_folder(case.info.id)
    document = read_text(folder / CASE_FILE)
    listed = list(suite.info.cases)
    features: dict[str, object] = {f"id_{i}": ord(c) for i, c in enumerate(info.id[:ID_CHARACTERS])}
    features |= {f"has_{signal}": float(case.has(signal)) for signal in SIGNALS}
    features |= {
        "first_is_letter": float(info.id[0].isalpha()),
        "id_length": len(info.id),
        "place_sorted": suite.case_ids.index(info.id),
        "place_listed": listed.index(info.id),
        "title": info.title,
        "title_length": len(info.title),
        "objective_length": len(info.objective or ""),
        "parameters": len(info.workload.parameters),
        "config": len(info.environment.config),
        "variables": len(info.environment.variables),
        "versions": str(sorted(info.environment.versions.items())),
        "hardware": str(sorted(info.environment.hardware.items())),
        "document_keys": " ".join(re.findall(r'"(\w+)":', document)),
        "document_indent": len(document) - len(re.sub(r"\n +", "\n", document)),
        "permissions": (folder / CASE_FILE).stat().st_mode,
    }
    features |= _run_trivia("", case)
    return features | (_run_trivia("reference.", case.reference) if case.reference else {})


def _run_trivia(prefix: str, run: Recording) -> dict[str, object]:
    found: dict[str, object] = {f"{prefix}traces": len(run.trace_ranks)}
    for name, path in sorted(run.table_paths.items()):
        with pq.ParquetFile(path) as file:
            groups, written = file.metadata.num_row_groups, file.metadata.created_by
            found[f"{prefix}written.{name}"] = f"{written} {file.metadata.format_version} {groups}"
    for rank in run.trace_ranks[:1]:
        path = run.kineto_path(rank)
        content = gunzip(path.read_bytes(), path, MAX_UNPACKED_BYTES)
        base = BASE_TIME.search(content)
        found[f"{prefix}trace.base_time"] = float(base[1]) if base else 0.0
        found[f"{prefix}trace.header"] = " ".join(
            re.findall(r'"(\w+)":', content[:400].decode(errors="replace"))
        )
    return found


def feature_table(suite: Suite) -> pd.DataFrame:
    """Trivia of all cases, one row per case id."""
    rows = {case_id: trivia_features(suite, suite.case(case_id)) for case_id in suite.case_ids}
    return pd.DataFrame.from_dict(rows, orient="index")

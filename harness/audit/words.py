"""Word leaks: does anything that a diagnoser can read name the answer?"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow.compute as pc

from cases.case import Case, Recording
from cases.documents import read_json
from cases.kineto.compressed import gunzip
from cases.layout import CASE_FILE
from cases.tables import TABLES
from cases.taxonomy import Taxonomy
from cases.trace_files import MAX_UNPACKED_BYTES

WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
JSON_STRING = re.compile(rb'"((?:[^"\\]|\\.)*)"')
STEMS = re.compile(
    r"inject|fault(?!y?hdl)|decoy|health|unhealth|throttl|undecid|straggl|degrad|slow|culprit|"
    r"anomal|bottleneck|contend|contention|oversubscri|starv|witness|scenario|sabotag|"
    r"competitor|noisy|misconfig|chaos"
)
# What real frameworks print in every job, healthy or not. Each with where it comes from.
ALLOWED = re.compile(
    r"slow_conv|slow_transpose|"  # ATen's reference convolutions: aten::_slow_conv2d_forward
    r"slow_?tests?|"  # torch's own configuration names
    r"anomaly_mode|(?:is|set)_anomaly\w*enabled|"  # every backward asks for autograd's debug mode
    r"graph_capture_health_check|"  # every optimizer step of torch
    r"clocks_throttle_reasons|"  # NVML's old name of event reasons
    r"cpu:gloo,cuda:nccl|cuda:nccl|"  # torch's name of the backends of a process group
    r"Fp8KVCacheDataType|"  # a parameter of vLLM's kernel that writes keys and values
    r"page[ _-]?faults?|"  # a counter of the kernel
    r"fault[_ ]?toleran\w*",  # torchrun's and torchft's banners
    re.IGNORECASE,
)


@dataclass(frozen=True)
class WordLeak:
    """One readable string that names an answer."""

    case_id: str
    place: str
    word: str
    text: str

    def __str__(self) -> str:
        return f"{self.case_id} {self.place}: {self.word!r} in {self.text!r}"


def word_leaks(case: Case, folder: Path, taxonomy: Taxonomy) -> list[WordLeak]:
    """Find every distinct string of a case's public half that names an answer."""
    phrases = forbidden_phrases(taxonomy)
    return [
        WordLeak(case.info.id, place, word, text[:80])
        for place, texts in public_strings(case, folder)
        for text in sorted(texts)
        if (word := leaked_word(text, phrases))
    ]


def leaked_word(text: str, phrases: Iterable[str]) -> str | None:
    """Return the first forbidden word or phrase of `text`, None if it is clean.

    Case, underscores and CamelCase make no difference; what frameworks print is allowed.

    >>> leaked_word("SlowLink on rank 3", ["slow link"])
    'slow link'
    >>> leaked_word("aten::_slow_conv2d_forward", []) is None
    True
    >>> leaked_word("default", []) is None
    True
    """
    words = [word.lower() for word in WORDS.findall(ALLOWED.sub(" ", text))]
    line = f" {' '.join(words)} "
    for phrase in phrases:
        if f" {phrase} " in line:
            return phrase
    return next((word for word in words if STEMS.match(word)), None)


def forbidden_phrases(taxonomy: Taxonomy) -> tuple[str, ...]:
    """Causes, and the mechanisms and domains of two words or more, as spaced lower case."""
    spaced = (" ".join(WORDS.findall(name)) for name in taxonomy.nodes)
    return tuple(phrase for phrase in spaced if " " in phrase)


def public_strings(case: Case, folder: Path) -> Iterator[tuple[str, set[str]]]:
    """Yield (place, distinct strings) of all that a diagnoser can read of a case."""
    yield CASE_FILE, set(_strings(read_json(folder / CASE_FILE)))
    yield from _run_strings("", case)
    if case.reference:
        yield from _run_strings("reference.", case.reference)


def _run_strings(prefix: str, run: Recording) -> Iterator[tuple[str, set[str]]]:
    for name, table in TABLES.items():
        for column in (key for key, (kind, _) in table.columns.items() if kind == "text"):
            values = pc.unique(run.arrow(name)[column]).drop_null()
            yield f"{prefix}{name}.{column}", {str(value) for value in values.to_pylist()}
    for rank in run.trace_ranks:
        path = run.kineto_path(rank)
        content = gunzip(path.read_bytes(), path, MAX_UNPACKED_BYTES)
        # Names, arguments and metadata alike; the distinct ones are few.
        raw = set(JSON_STRING.findall(content))
        yield f"{prefix}traces.rank{rank}", {json.loads(b'"' + text + b'"') for text in raw}


def _strings(document: object) -> Iterator[str]:
    if isinstance(document, str):
        yield document
    elif isinstance(document, dict):
        for key, value in document.items():
            yield key
            yield from _strings(value)
    elif isinstance(document, list):
        for value in document:
            yield from _strings(value)

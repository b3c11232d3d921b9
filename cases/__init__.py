"""The domain: records, taxonomy, bundles, signal tables, traces, and `Case` over them.

The names that a diagnoser's author needs are here, imported on first use, so that
`import cases` alone stays light:

    from cases import Case, Diagnosis, Evidence, Finding, Locus

`cases.truth` holds the labels' records and is never shown to a diagnoser.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cases.case import Case
    from cases.schema import Diagnosis, Evidence, Finding, Locus

__all__ = ["Case", "Diagnosis", "Evidence", "Finding", "Locus"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'cases' must have {name!r}, it offers {', '.join(__all__)}")
    module = importlib.import_module("cases.case" if name == "Case" else "cases.schema")
    return getattr(module, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

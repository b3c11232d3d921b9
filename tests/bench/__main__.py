"""Measure the project's own speed: `python -m tests.bench [MODULE ...]` prints one table.

A figure above its limit is reported and does not fail: machines differ, tests must not.
"""

from __future__ import annotations

import importlib
import sys

MODULES = (
    "kineto",
    "scoring",
    "overhead",
    "sampling",
    "simulator",
    "emission",
    "startup",
    "suites",
)


def main() -> None:
    """Run every benchmark, or those named, and print figure | value | limit | met."""
    print(f"{'figure':60} | {'value':>9} | {'limit':>9} | met")
    for name in sys.argv[1:] or MODULES:
        for figure in importlib.import_module(f"tests.bench.{name}").measure():
            met = "yes" if figure.met else "NO"
            values = f"{figure.value:9.3g} | {figure.limit:9.3g}"
            print(f"{figure.name:60} | {values} | {met}", flush=True)


if __name__ == "__main__":
    main()

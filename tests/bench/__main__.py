"""Measure the project's own speed: `python -m tests.bench` prints one table.

A figure above its limit is reported and does not fail: machines differ, tests must not.
"""

from __future__ import annotations

import importlib

MODULES = ("kineto", "scoring", "overhead", "sampling", "simulator", "emission", "startup")


def main() -> None:
    """Run every benchmark and print figure | value | limit | met."""
    print(f"{'figure':60} | {'value':>9} | {'limit':>9} | met")
    for name in MODULES:
        for figure in importlib.import_module(f"tests.bench.{name}").measure():
            met = "yes" if figure.met else "NO"
            print(f"{figure.name:60} | {figure.value:9.3g} | {figure.limit:9.3g} | {met}")


if __name__ == "__main__":
    main()

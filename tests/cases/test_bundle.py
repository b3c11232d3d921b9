"""Bundles: written whole or not at all, and never trusted when read."""

from __future__ import annotations

from pathlib import Path

from cases.bundle import Suite


def test_suite_verifies(tiny_suite: Path) -> None:
    suite = Suite.open(tiny_suite)
    suite.verify()
    assert len(suite.case_ids) == 9

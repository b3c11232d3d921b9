"""Witnesses of causes in data loading and checkpoints: cause -> (query, what it says)."""

from __future__ import annotations

DATA: dict[str, tuple[str, str]] = {}

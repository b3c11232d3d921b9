"""Witnesses of causes in the model and the training framework: cause -> (query, what it says)."""

from __future__ import annotations

FRAMEWORK: dict[str, tuple[str, str]] = {}

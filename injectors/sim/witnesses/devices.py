"""Witnesses of causes in GPUs and their links: cause -> (query, what it says)."""

from __future__ import annotations

DEVICES: dict[str, tuple[str, str]] = {}

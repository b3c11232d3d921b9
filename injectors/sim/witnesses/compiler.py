"""Witnesses of causes in compilation, kernels and device memory: cause -> (query, what it says)."""

from __future__ import annotations

COMPILER: dict[str, tuple[str, str]] = {}

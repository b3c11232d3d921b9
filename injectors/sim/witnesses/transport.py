"""Witnesses of causes in NCCL and the network: cause -> (query, what it says)."""

from __future__ import annotations

TRANSPORT: dict[str, tuple[str, str]] = {}

"""Witnesses of causes in the hosts' CPUs: cause -> (query, what it says)."""

from __future__ import annotations

HOSTS: dict[str, tuple[str, str]] = {}

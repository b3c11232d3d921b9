"""Versions of the software that simulated jobs run, and what an upgrade brings."""

from __future__ import annotations

from collections.abc import Mapping

# Versions that go together, newest first.
RELEASES: tuple[dict[str, str], ...] = (
    {"torch": "2.8.0", "cuda": "12.8", "nccl": "2.27.3", "driver": "570.133.20"},
    {"torch": "2.7.1", "cuda": "12.6", "nccl": "2.26.2", "driver": "560.35.03"},
    {"torch": "2.6.0", "cuda": "12.4", "nccl": "2.21.5", "driver": "550.144.03"},
    {"torch": "2.5.1", "cuda": "12.4", "nccl": "2.21.5", "driver": "550.90.07"},
)


def release(key: int) -> dict[str, str]:
    """Return the versions of a group's job, by the group's key: any but the newest ones."""
    return dict(RELEASES[1 + key % (len(RELEASES) - 1)])


def upgraded(versions: Mapping[str, str]) -> dict[str, str]:
    """Return the first newer versions with another NCCL; the newest where none are given.

    >>> upgraded(RELEASES[3])["nccl"], upgraded({})["torch"]
    ('2.26.2', '2.8.0')
    """
    known = [one["torch"] for one in RELEASES]
    place = known.index(versions["torch"]) if versions.get("torch") in known else 0
    newer = [one for one in RELEASES[:place] if one["nccl"] != versions["nccl"]]
    return dict(newer[-1] if newer else RELEASES[0])

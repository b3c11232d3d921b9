"""Where a job runs, in few words: a thousand ranks would fill a model's memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cases.schema import RankPlace, Topology

MOST_IN_FULL = 16


def described(topology: Topology) -> str:
    """Return a line for each host (and pipeline stage on it), and one for each link.

    >>> from cases.schema import Link
    >>> ranks = tuple(RankPlace(rank=n, host="host0", gpu=f"host0/gpu{n}") for n in range(4))
    >>> print(described(Topology(ranks=ranks, links=(Link(name="a-b", ranks=(0, 3)),))))
    host0: ranks 0-3 on host0/gpu0 to host0/gpu3
    link a-b (ethernet): ranks 0, 3
    """
    groups: dict[tuple[str, int | None], list[RankPlace]] = {}
    for place in topology.ranks:
        groups.setdefault((place.host, place.stage), []).append(place)
    lines = [_host(host, stage, places) for (host, stage), places in groups.items()]
    lines += [f"link {x.name} ({x.kind}): ranks {spans(x.ranks)}" for x in topology.links]
    return "\n".join(lines)


def _host(host: str, stage: int | None, places: list[RankPlace]) -> str:
    of_stage = "" if stage is None else f" (stage {stage})"
    gpus = [place.gpu for place in places if place.gpu is not None]
    on = f" on {gpus[0]} to {gpus[-1]}" if len(gpus) > 1 else "".join(f" on {g}" for g in gpus)
    return f"{host}: ranks {spans(place.rank for place in places)}{of_stage}{on}"


def spans(numbers: Iterable[int]) -> str:
    """Write numbers with neighbours taken together.

    >>> spans([0, 1, 2, 3, 8, 5]), spans([])
    ('0-3, 5, 8', 'none')
    """
    return ", ".join(_spans(sorted(numbers))) or "none"


def _spans(numbers: list[int]) -> Iterator[str]:
    start = 0
    for index, number in enumerate(numbers):
        if index + 1 == len(numbers) or numbers[index + 1] != number + 1:
            first = numbers[start]
            yield str(first) if first == number else f"{first}-{number}"
            start = index + 1

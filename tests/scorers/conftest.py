"""A tree of eight causes and short ways to write labels and answers.

host_network   / network_path : slow_link, lossy_link
               / host_cpu     : cpu_contention
gpu_hardware   / thermal      : gpu_throttle, power_cap
cuda_nccl      / collectives  : collective_wait, undersized_buckets
data_checkpoint/ loader       : slow_loader
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from cases.schema import (
    Decoy,
    Diagnosis,
    Fault,
    Finding,
    Interval,
    Link,
    Locus,
    RankPlace,
    Topology,
)
from scorers import Label, Response

TREE = {
    "host_network": {"network_path": ("slow_link", "lossy_link"), "host_cpu": ("cpu_contention",)},
    "gpu_hardware": {"thermal": ("gpu_throttle", "power_cap")},
    "cuda_nccl": {"collectives": ("collective_wait", "undersized_buckets")},
    "data_checkpoint": {"loader": ("slow_loader",)},
}


class SmallTree:
    def __init__(self):
        self.parents = dict.fromkeys(TREE)
        self.causes = {}
        for domain, mechanisms in TREE.items():
            for mechanism, causes in mechanisms.items():
                self.parents[mechanism] = domain
                for cause in causes:
                    self.parents[cause] = mechanism
                    self.causes[cause] = cause
        self.nodes = frozenset(self.parents)

    def ancestors(self, name):
        above = self.parents[name]
        return () if above is None else (above, *self.ancestors(above))

    def covers(self, node, cause):
        return node == cause or node in self.ancestors(cause)


def at(*ranks):
    return Locus(scope="rank", ranks=ranks)


def topology(ranks=4):
    """Two ranks a host, one GPU and one pipeline stage each, a ring of links."""
    places = tuple(
        RankPlace(rank=r, host=f"host{r // 2}", gpu=f"gpu{r % 2}", stage=r // 2)
        for r in range(ranks)
    )
    links = tuple(
        Link(name=f"link{r}", ranks=(r, (r + 1) % ranks)) for r in range(ranks if ranks > 1 else 0)
    )
    return Topology(ranks=places, links=links)


def fault(cause="slow_link", where=None, lost=0.2, **fields):
    interval = Interval(value=lost, low=lost / 2, high=lost * 2)
    return Fault(cause=cause, locus=where or at(0), lost_fraction=interval, **fields)


def decoy(*looks_like):
    return Decoy(name="odd", looks_like=looks_like)


def label(*faults, case_id="case0", group="g0", verdict=None, ranks=4, **fields):
    given = {"decoys": (), "candidates": (), "missing_signals": (), "split": "dev", **fields}
    return Label(
        case_id=case_id,
        group=group,
        verdict=verdict or ("faulty" if faults else "healthy"),
        faults=faults,
        topology=topology(ranks),
        **given,
    )


def undecidable(case_id="case0", group="g0"):
    return label(
        case_id=case_id,
        group=group,
        verdict="undecidable",
        candidates=("slow_link", "lossy_link"),
        missing_signals=("network.retransmits",),
    )


def finding(cause="slow_link", where=None, confidence=0.5, **fields):
    return Finding(cause=cause, locus=where, confidence=confidence, **fields)


def says(*findings, case_id="case0", seconds=1.0, confidence=0.5, supported=None):
    verdict = "faulty" if findings else "healthy"
    diagnosis = Diagnosis(verdict=verdict, findings=findings, confidence=confidence)
    return Response(case_id, "ok", diagnosis, seconds, supported)


def abstains(case_id="case0", **fields):
    return Response(case_id, "ok", Diagnosis(verdict="abstain", **fields), 1.0)


def fails(outcome="error", case_id="case0"):
    return Response(case_id, outcome, None, None)


@pytest.fixture(scope="session")
def tree():
    return SmallTree()


@pytest.fixture(scope="session")
def make():
    """The builders above by name."""
    return SimpleNamespace(
        at=at,
        topology=topology,
        fault=fault,
        decoy=decoy,
        label=label,
        undecidable=undecidable,
        finding=finding,
        says=says,
        abstains=abstains,
        fails=fails,
    )

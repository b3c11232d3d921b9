"""What the job prints and how it is set up, as numbers."""

from __future__ import annotations

import re

from cases.case import Case, Recording

SPOKEN: dict[str, str] = {
    "over_sockets": r"NCCL INFO.*via NET/Socket",
    "over_host_memory": r"NCCL INFO.*via SHM",
    "collectives_set": r"NCCL INFO.*NCCL_(ALGO|PROTO|M(AX|IN)_NCHANNELS|NTHREADS|BUFFSIZE)",
    "set_by_environment": r"set by environment",
    "left_eager": r"recompile_limit",
    "saves": r"saved checkpoint",
    "saves_beside": r"saving checkpoint",
    "too_many_workers": r"This DataLoader will create",
    "warns": r"(?i)warn|slow|deprecat",
}
USUAL_VARIABLES = {"NCCL_DEBUG", "OMP_NUM_THREADS", "MASTER_ADDR", "MASTER_PORT"}


def spoken(run: Recording) -> dict[str, float]:
    """How many different lines match each pattern of `SPOKEN`."""
    lines = [line for line in run.arrow("logs")["message"].unique().to_pylist() if line is not None]
    return {
        name: float(sum(bool(re.search(pattern, line)) for line in lines))
        for name, pattern in SPOKEN.items()
    }


def setup(case: Case) -> dict[str, float]:
    """The job's size and kind."""
    ranks = case.info.topology.ranks
    variables = set(case.info.environment.variables) - USUAL_VARIABLES
    return {
        "ranks": float(len(ranks)),
        "hosts": float(len({place.host for place in ranks})),
        "serves": float(case.info.kind == "inference"),
        "audit": float(case.reference is None),
        "on_gpu": float(ranks[0].gpu is not None),
        "unusual_variables": float(len(variables)),
    }

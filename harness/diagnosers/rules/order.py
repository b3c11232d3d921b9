"""The decision list in order: the first rule whose facts hold is the answer.

What the job itself says or a device states outright comes first, then who takes the hosts' cores,
then data, then how transfers changed, then what a step does that it did not; last what only the
shape of the lost time shows.
"""

from __future__ import annotations

from cases.case import Case
from harness.diagnosers.rules.audits import AUDITS
from harness.diagnosers.rules.cores import LINKS, LOADING, NEIGHBOURS, OPERATORS
from harness.diagnosers.rules.data import DATA
from harness.diagnosers.rules.devices import DEVICES
from harness.diagnosers.rules.framework import COUNTS, EVENTS, HOST_TIME, KERNELS, STAGES
from harness.diagnosers.rules.hosts import HOSTS, PAUSES
from harness.diagnosers.rules.network import LOSSES, NETWORK, WORDS
from harness.diagnosers.rules.rule import Rule
from harness.diagnosers.rules.serving import SERVING

QUOTAS = ("cgroup_cpu_throttle", "thread_oversubscription", "worker_affinity_pinned")
TRAINING: tuple[Rule, ...] = (
    *WORDS,
    *DEVICES,
    *HOSTS,
    *EVENTS,
    *DATA,
    *LOSSES,
    *COUNTS,
    *STAGES,
    *NETWORK,
    *HOST_TIME,
    *PAUSES,
    *KERNELS,
)
ON_CORES: tuple[Rule, ...] = (
    *(rule for rule in HOSTS if rule.cause in QUOTAS),
    *NEIGHBOURS,
    *EVENTS,
    *LOADING,
    *DATA,
    *(rule for rule in COUNTS if rule.cause not in {other.cause for other in OPERATORS}),
    *OPERATORS,
    *STAGES,
    *LINKS,
    *HOST_TIME,
    *PAUSES,
    *(rule for rule in HOSTS if rule.cause == "monitoring_interference"),
)
SERVERS: tuple[Rule, ...] = (*SERVING, *WORDS, *DEVICES, *HOSTS, *EVENTS, *COUNTS, *KERNELS)


def rules_for(case: Case) -> tuple[Rule, ...]:
    """The list for a job of this kind."""
    if case.reference is None:
        return AUDITS
    on_cores = case.info.topology.ranks[0].gpu is None
    if case.info.kind == "inference":
        return (*SERVING, *ON_CORES) if on_cores else SERVERS
    return ON_CORES if on_cores else TRAINING

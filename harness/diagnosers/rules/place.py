"""Where a rule's cause sits."""

from __future__ import annotations

import pandas as pd

from cases.schema import JOB, Locus
from harness.diagnosers.features import Facts
from harness.diagnosers.features.places import locate
from harness.diagnosers.rules.rule import Rule

RING = "ring:"


def place(facts: Facts, rule: Rule) -> Locus:
    """The ranks, or what they stand for, that a rule's metric sets apart.

    `ring:` before a metric: the link from the host that stands out to the next one, as rings go
    over hosts. A link without a metric: all of them.
    """
    links = facts.case.info.topology.links
    if rule.scope == "link" and links and rule.place.startswith(RING):
        link = ring_link(facts, rule.place.removeprefix(RING))
        return Locus(scope="link", links=(link,)) if link else JOB
    if rule.scope == "link" and links and not rule.place:
        return Locus(scope="link", links=tuple(link.name for link in links))
    return locate(facts.case, rule.scope, facts.likely(rule.place)) if rule.place else JOB


def ring_link(facts: Facts, metric: str) -> str | None:
    """The link between the host whose ranks stand out most and the next one."""
    hosts = [place.host for place in facts.places]
    ring = list(dict.fromkeys(hosts))
    means = pd.Series(facts.likely(metric)).groupby(hosts).mean()
    sender = ring.index(str(means.idxmax()))
    ends = {ring[sender], ring[(sender + 1) % len(ring)]}
    for link in facts.case.info.topology.links:
        if {hosts[rank] for rank in link.ranks} == ends:
            return link.name
    return None

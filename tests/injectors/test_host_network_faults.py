"""Where faults of hosts and networks sit, and which jobs can't show them."""

import pytest
from pydantic import ValidationError

from injectors.faults import FAULTS
from injectors.public import topology
from injectors.scenario import Scenario


def scenario(fault, parameters, **more):
    return Scenario.model_validate(
        {
            "name": "one",
            "workload": "language_model",
            "ranks": 4,
            "arms": {"a": {"fault": fault, "parameters": parameters}},
            "cases": [{"arm": "a"}],
            **more,
        }
    )


NIC = {"host": 1, "rate_mbit_per_s": 100}
LINK = {"rank": 0, "rate_mbit_per_s": 100}


@pytest.mark.parametrize(
    ("fault", "parameters", "more", "reason"),
    [
        ("nic_degraded", NIC, {}, "at least 3 hosts"),
        ("nic_degraded", NIC, {"hosts": 2}, "at least 3 hosts"),
        ("nic_degraded", {**NIC, "host": 3}, {"hosts": 3}, "host must be below 3"),
        ("nic_degraded", NIC, {"hosts": 5}, "hosts must be at most 4"),
        ("slow_link", LINK, {"hosts": 3}, "rank at the other end"),
        ("slow_link", {**LINK, "peer": 1}, {"hosts": 3}, "different hosts"),
        ("slow_link", {**LINK, "peer": 1}, {}, "at least 3 hosts"),
        ("network_congestion", {}, {}, "link_mbit_per_s"),
        ("network_congestion", {"target": 4}, {"link_mbit_per_s": 800}, "below 4"),
        ("network_congestion", {}, {"link_mbit_per_s": 800, "hosts": 2}, "different interfaces"),
    ],
)
def test_jobs_that_cannot_show_the_cause_are_refused_with_the_reason(
    fault, parameters, more, reason
):
    with pytest.raises(ValidationError, match=reason):
        scenario(fault, parameters, **more)


def test_ranks_of_a_host_share_its_links():
    job = scenario("nic_degraded", NIC, hosts=3, link_mbit_per_s=800)
    place = topology(job, devices=0)
    assert [rank.host for rank in place.ranks] == ["host0", "host0", "host1", "host2"]
    assert {link.name: link.ranks for link in place.links} == {
        "host0-host1": (0, 1, 2),
        "host0-host2": (0, 1, 3),
        "host1-host2": (2, 3),
    }
    assert {link.kind for link in place.links} == {"ethernet 800 Mbit/s"}
    assert job.needs() == {"network_shaping"}


@pytest.mark.parametrize(
    ("fault", "parameters", "more", "names"),
    [
        ("nic_degraded", NIC, {"hosts": 3}, {"hosts": ("host1",)}),
        ("slow_link", {**LINK, "peer": 3}, {"hosts": 3}, {"links": ("host0-host2",)}),
        ("slow_link", LINK, {"hosts": 2}, {"links": ("host0-host1",)}),
        ("slow_link", LINK, {}, {"links": ("rank0-switch",)}),
        (
            "network_congestion",
            {"source": 1, "target": 2},
            {"link_mbit_per_s": 800},
            {"links": ("rank1-switch", "rank2-switch")},
        ),
        ("cgroup_cpu_throttle", {"cores": 0.5, "rank": 2}, {}, {"ranks": (2,)}),
        ("cgroup_cpu_throttle", {"cores": 0.5}, {}, {"scope": "job"}),
        ("process_suspended", {"rank": 3, "stopped_fraction": 0.3}, {}, {"ranks": (3,)}),
        ("gpu_noisy_neighbor", {"rank": 1}, {}, {"ranks": (1,)}),
    ],
)
def test_locus(fault, parameters, more, names):
    job = scenario(fault, parameters, **more)
    locus = FAULTS[fault].model_validate(parameters).locus(topology(job, devices=0))
    assert {name: getattr(locus, name) for name in names} == names


def test_a_gpu_is_named_where_there_is_one():
    job = scenario("gpu_noisy_neighbor", {"rank": 1})
    locus = FAULTS["gpu_noisy_neighbor"](rank=1).locus(topology(job, devices=2))
    assert locus.gpus == ("host0/gpu1",)

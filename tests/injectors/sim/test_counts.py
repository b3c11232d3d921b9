from __future__ import annotations

from pathlib import Path

from cases.bundle import Suite
from injectors.build import Places
from injectors.sim.counts import counts


def test_every_case_is_counted_once_by_each_of_its_properties(small_suite: Path) -> None:
    target = Places(small_suite, small_suite.parents[1] / "labels" / small_suite.name)
    found, cases = counts(target), len(Suite.open(small_suite).case_ids)
    for name in ("verdict", "split", "workload", "kind", "question", "shape", "ranks", "withheld"):
        assert sum(found[name].values()) == cases, name
    assert found["workload"] == {"ddp_transformer": cases - 4, "vision": 4}
    assert found["groups"] == {"all": 3}
    assert sum(found["cause"].values()) == sum(
        int(count) * cases for count, cases in found["faults"].items()
    )
    hidden = {name: n for name, n in found["withheld"].items() if name != "nothing"}
    assert hidden == {"all_but_progress, healthy": 3, "all_but_progress, undecidable": 3}


def test_refusals_are_counted_by_their_reason(small_suite: Path) -> None:
    target = Places(small_suite, small_suite.parents[1] / "labels" / small_suite.name)
    assert all(count > 0 for count in counts(target)["refused"].values())

"""A group of cases of a server, from the scenario to what is written."""

from __future__ import annotations

from pathlib import Path

from cases.truth import Counterfactual
from injectors.build import Places
from injectors.scenario import Scenario
from injectors.sim.backend import Group
from injectors.sim.counterfactual import SEEDS
from injectors.write_group import write_group

SCENARIO = {
    "name": "server",
    "workload": "llm_serving",
    "machine": "h100",
    "ranks": 2,
    "steps": 20,
    "parameters": {"engines": 2, "layers": 8, "generation_tokens": 96, "max_concurrency": 24},
    "arms": {"few": {"fault": "unbatched_decoding", "parameters": {"max_num_seqs": 3}}},
    "cases": [{"arm": "healthy"}, {"arm": "few"}],
}


def test_a_server_with_too_few_seats_becomes_a_case_and_its_twin(tmp_path: Path) -> None:
    group = Group(Scenario.model_validate(SCENARIO))
    made = group.make()
    assert made.refused == {}
    twin, slow = made.cases
    assert twin.truth.verdict == "healthy" and slow.truth.verdict == "faulty"
    validation = slow.truth.validation
    assert isinstance(validation, Counterfactual)
    assert [len(of) for of in validation.seconds.values()] == [SEEDS, SEEDS]
    cost = slow.truth.faults[0].lost_fraction
    assert 0.3 < cost.low < cost.value < cost.high < 0.9
    assert slow.info.kind == "inference"
    assert {"requests", "engine"} <= {*slow.tables}
    waited = [case.tables["engine"]["num_requests_waiting"].mean() for case in (twin, slow)]
    assert waited[1] > waited[0] + 5
    line = write_group(made, group.digest, Places(tmp_path / "cases", tmp_path / "labels"))
    assert line.refused == {}  # its witness is true on it, and not on the twin
    assert sorted(line.made) == sorted(path.stem for path in (tmp_path / "labels").iterdir())

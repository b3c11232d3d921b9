"""Which cases a witness must be false on."""

from cases.schema import Decoy
from cases.taxonomy import Taxonomy
from harness.judge import load_truths
from injectors.rivals import rivals


def test_rivals_are_confusable_causes_and_lookalike_decoys(tiny_suite, tiny_ids):
    truths, taxonomy = load_truths(tiny_suite), Taxonomy.load()
    roles = {case_id: role for role, case_id in tiny_ids.items()}
    loader = truths[tiny_ids["loader_dev"]]
    contention = truths[tiny_ids["contention_train"]]
    assert contention.faults[0].cause in taxonomy.confusable(loader.faults[0].cause)
    found = {roles[case_id] for case_id in rivals(loader, truths, taxonomy)}
    assert found == {role for role in tiny_ids if role.startswith("contention")}
    found = {roles[case_id] for case_id in rivals(contention, truths, taxonomy)}
    decoys = {roles[case_id] for case_id, truth in truths.items() if truth.decoys}
    assert found == {role for role in tiny_ids if role.startswith("loader")} | decoys


def test_an_acceptable_name_is_no_rival(tiny_suite, tiny_ids):
    truths, taxonomy = load_truths(tiny_suite), Taxonomy.load()
    loader = truths[tiny_ids["loader_dev"]]
    cause = truths[tiny_ids["contention_train"]].faults[0].cause
    lenient = loader.faults[0].model_copy(update={"acceptable": (cause,)})
    assert rivals(loader.model_copy(update={"faults": (lenient,)}), truths, taxonomy) == []


def test_a_cause_that_costs_too_little_beside_another_makes_no_rival(tiny_suite, tiny_ids):
    truths, taxonomy = load_truths(tiny_suite), Taxonomy.load()
    loader, other = truths[tiny_ids["loader_dev"]], truths[tiny_ids["contention_train"]]
    # Not confusable any more, but for what its decoy looks like.
    fault = other.faults[0].model_copy(update={"cause": loader.faults[0].cause})
    for name, expected in (("below_threshold", []), ("hidden_slow_read", ["other"])):
        decoy = Decoy(name=name, looks_like=(loader.faults[0].cause,))
        beside = other.model_copy(update={"faults": (fault,), "decoys": (decoy,)})
        assert rivals(loader, {"other": beside}, taxonomy) == expected
    quiet = other.model_copy(
        update={
            "verdict": "healthy",
            "faults": (),
            "decoys": (Decoy(name="below_threshold", looks_like=(loader.faults[0].cause,)),),
        }
    )
    assert rivals(loader, {"other": quiet}, taxonomy) == ["other"]

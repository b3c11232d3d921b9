"""Which cases a witness must be false on."""

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

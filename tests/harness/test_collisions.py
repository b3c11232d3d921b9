"""What is left of undecidable cases does not tell their candidates apart, and what is taken does.

The whole study is in docs/simulator.md; here is the pattern that takes the fewest seconds.
"""

from harness.audit.collisions import LIMIT, collisions
from tests.studies import collisions as study

PATTERN, GROUPS = "everything_changed_together", 40


def test_candidates_of_undecidable_cases_collide():
    (found,) = study.study(PATTERN, GROUPS)
    assert found.groups == GROUPS
    assert found.collides, found


def test_with_nothing_withheld_the_same_candidates_are_told_apart(monkeypatch):
    monkeypatch.setattr("injectors.sim.collisions.withhold", lambda run, pattern: run)
    (found,) = collisions(list(study.seen(study.study_matrix(), PATTERN, 10, 0)))
    assert min(found.forest, found.linear) > 0.9 > LIMIT and not found.collides

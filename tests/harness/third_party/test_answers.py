from __future__ import annotations

from cases.schema import JOB, MAX_ROOTS, Locus
from harness.diagnosers.third_party.answers import Said, answer


def test_what_all_ranks_show_is_the_jobs() -> None:
    said = [Said("input_pipeline", 0.4, rank=0), Said("input_pipeline", 0.6, rank=1)]
    (finding,) = answer(said, ranks=2).findings
    assert (finding.locus, finding.confidence) == (JOB, 0.6)


def test_a_place_that_the_tool_names_is_kept_apart() -> None:
    place = Locus(scope="rank", ranks=(3,))
    said = [Said("gpu_clocks", 0.4, locus=place), Said("gpu_clocks", 0.6)]
    assert [finding.locus for finding in answer(said, ranks=4).findings] == [JOB, place]


def test_the_surest_statements_are_kept() -> None:
    said = [
        Said("slow_link", number / 10, locus=Locus(scope="rank", ranks=(number,)))
        for number in range(MAX_ROOTS + 2)
    ]
    found = answer(said).findings
    assert len(found) == MAX_ROOTS
    assert found[0].confidence == (MAX_ROOTS + 1) / 10


def test_a_share_stays_a_share() -> None:
    assert answer([Said("slow_link", 0.5, lost_fraction=1.7)]).findings[0].lost_fraction == 1.0
    assert answer([Said("slow_link", 0.5)]).findings[0].lost_fraction is None

import pytest

from cases.schema import JOB, Locus
from scorers.locus import covers_half, is_right, kind_of, named


@pytest.fixture
def right(make):
    def decide(found, true, ranks=4):
        topology, kind = make.topology(ranks), kind_of(true)
        return is_right(named(found, kind, topology), named(true, kind, topology), kind, topology)

    return decide


@pytest.mark.parametrize(
    ("locus", "ranks"),
    [
        (JOB, {0, 1, 2, 3}),
        (Locus(scope="rank", ranks=(2,)), {2}),
        (Locus(scope="host", hosts=("host1",)), {2, 3}),
        (Locus(scope="stage", stages=(0,)), {0, 1}),
        (Locus(scope="gpu", gpus=("host1/gpu1",)), {3}),
        (Locus(scope="gpu", gpus=("gpu1",)), {1, 3}),
        (Locus(scope="worker", workers=("rank3/worker1",)), {3}),
        (Locus(scope="link", links=("link3",)), {3, 0}),
        (Locus(scope="op", ops=("aten::mm",)), set()),
        (Locus(scope="host", hosts=("nowhere",)), {"host nowhere"}),
    ],
)
def test_loci_resolve_to_ranks(make, locus, ranks):
    assert named(locus, "rank", make.topology(4)) == ranks


@pytest.mark.parametrize(
    ("found", "true", "ranks", "expected"),
    [
        ((0,), (0,), 4, True),
        ((0, 1), (0,), 4, True),  # Jaccard 1/2, 1 - 1/3 = 0.67
        ((0, 1), (0,), 2, False),  # Jaccard 1/2, but 1 - 1/1 = 0: that names everything
        ((0, 1), (0,), 3, True),  # 1 - 1/2 = 0.5
        ((0, 1, 2), (0,), 8, False),  # Jaccard 1/3
        ((0,), (0, 1), 4, True),  # Jaccard 1/2, 1/2 - 0
        ((0, 2), (0, 1), 4, False),  # Jaccard 1/3
        ((0, 1, 3), (0, 1, 2), 4, False),  # Jaccard 1/2, 2/3 - 1
        ((1,), (0,), 4, False),
        ((0,), (0, 1), 2, True),  # N = |L|: the second term is 0
        ((9,), (0,), 4, False),
        ((0, 1, 9), (0, 1), 2, True),  # a rank that is not there, but the second term is 0
    ],
)
def test_ranks_need_overlap_beyond_chance(make, right, found, true, ranks, expected):
    assert right(make.at(*found), make.at(*true), ranks) is expected


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (JOB, True),
        (Locus(scope="rank", ranks=(0, 1, 2, 3)), True),
        (Locus(scope="host", hosts=("host0", "host1")), True),
        (Locus(scope="rank", ranks=(0, 1, 2)), False),
        (Locus(scope="op", ops=("aten::mm",)), False),
    ],
)
def test_a_job_wide_fault_needs_the_whole_job(right, found, expected):
    assert right(found, JOB) is expected


@pytest.mark.parametrize("found", [JOB, Locus(scope="host", hosts=("host0",))])
def test_in_a_job_of_one_rank_every_way_to_name_it_is_right(make, right, found):
    assert right(found, make.at(0), ranks=1)
    assert right(make.at(0), JOB, ranks=1)


@pytest.mark.parametrize(
    ("found", "true", "expected"),
    [
        (Locus(scope="link", links=("link0",)), Locus(scope="link", links=("link0",)), True),
        (Locus(scope="link", links=("link1",)), Locus(scope="link", links=("link0",)), False),
        (Locus(scope="rank", ranks=(0, 1)), Locus(scope="link", links=("link0",)), False),
        (
            Locus(scope="link", links=("link0", "link1", "link2", "link3")),
            Locus(scope="link", links=("link0", "link1")),
            False,  # every link named: Jaccard 1/2, but 1 - 2/2 = 0
        ),
        (Locus(scope="op", ops=("a", "b")), Locus(scope="op", ops=("a",)), True),
        (Locus(scope="op", ops=("a", "b", "c")), Locus(scope="op", ops=("a",)), False),
        (
            Locus(scope="request_class", request_classes=("long", "short")),
            Locus(scope="request_class", request_classes=("long",)),
            False,
        ),
        (
            Locus(scope="segment", segment={"driver": "1", "nccl": "2"}),
            Locus(scope="segment", segment={"nccl": "2", "driver": "1"}),
            True,
        ),
        (
            Locus(scope="segment", segment={"driver": "1"}),
            Locus(scope="segment", segment={"driver": "2"}),
            False,
        ),
    ],
)
def test_other_places_match_by_name(right, found, true, expected):
    assert right(found, true) is expected


def test_covering_means_half_of_the_true_places():
    assert covers_half(frozenset({0}), frozenset({0, 1}))
    assert not covers_half(frozenset({0}), frozenset({0, 1, 2}))


def segment(**columns):
    return Locus(scope="segment", segment=columns)


@pytest.mark.parametrize(
    ("found", "true", "expected"),
    [
        (segment(driver="550.90.07"), segment(driver="550.90.07"), True),
        (segment(driver="550.54.15"), segment(driver="550.90.07"), False),
        (segment(framework="550.90.07"), segment(driver="550.90.07"), False),
        (segment(config="wide", driver="1"), segment(driver="1", config="wide"), True),
        (segment(driver="1"), segment(driver="1", config="wide"), False),
        (segment(config="wide"), segment(driver="1", config="wide"), False),
        (segment(driver="1", config="wide"), segment(driver="1"), False),
        (segment(driver="1", config="base"), segment(driver="1", config="wide"), False),
        (Locus(scope="host", hosts=("node7",)), segment(machine="node7"), True),
        (Locus(scope="host", hosts=("node7", "node8")), segment(machine="node7"), False),
        (Locus(scope="host", hosts=("node7",)), segment(machine="node7", config="wide"), False),
        (Locus(scope="gpu", gpus=("165001",)), segment(gpu_serial="165001"), True),
        (Locus(scope="gpu", gpus=("node7/165001",)), segment(gpu_serial="165001"), True),
        (Locus(scope="gpu", gpus=("165002",)), segment(gpu_serial="165001"), False),
        (JOB, segment(driver="1"), False),
        (Locus(scope="rank", ranks=(0,)), segment(machine="node7"), False),
    ],
)
def test_a_segment_needs_every_column_and_value(right, found, true, expected):
    assert right(found, true) is expected


@pytest.mark.parametrize("true", [JOB, Locus(scope="rank", ranks=(0,))])
def test_a_segment_names_no_ranks(right, true):
    assert not right(segment(machine="host0"), true)

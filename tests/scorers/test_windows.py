import pytest

from cases.schema import Window
from scorers import score
from scorers.windows import onset_error, overlap


def windows(*pairs):
    return tuple(Window(start_ns=start, end_ns=end) for start, end in pairs)


def test_overlap_by_hand():
    assert overlap(windows((0, 4)), windows((0, 4))) == 1
    assert overlap(windows((0, 2)), windows((2, 4))) == 0
    assert overlap((), windows((2, 4))) == 0
    # Burst by burst: 1 + 1 of 0..2, 4..6 and 5..7 together: 2 + 3.
    assert overlap(windows((1, 2), (5, 7)), windows((0, 2), (4, 6))) == 2 / 5
    # Windows that overlap each other count once.
    assert overlap(windows((0, 3), (1, 4)), windows((0, 4))) == 1


def test_only_faults_with_windows_count_and_misses_are_zero(make, tree):
    label = make.label(
        make.fault("slow_link", windows=windows((0, 2))),
        make.fault("gpu_throttle", windows=windows((0, 2))),
        make.fault("slow_loader"),
    )
    answer = make.says(make.finding("slow_link", make.at(0), windows=windows((0, 1))))
    metric = score([label], {"case0": answer}, tree).metrics["window_iou"]
    assert (metric.value, metric.n) == (0.25, 2)
    bare = score([make.label(make.fault())], {"case0": make.says()}, tree).metrics["window_iou"]
    assert (bare.value, bare.note) == (None, "no fault has windows")


def test_onset_by_hand():
    true = windows((4, 6), (8, 9))
    assert onset_error(windows((4, 5)), true, 10) == 0
    assert onset_error(windows((7, 9), (6, 8)), true, 10) == 0.2  # the first window's start
    assert onset_error(windows((1, 9)), true, 10) == 0.3
    assert onset_error((), true, 10) == 1
    assert onset_error(windows((90, 95)), true, 10) == 1  # beyond the end it is capped
    assert onset_error(windows((4, 5)), true, None) is None


def test_onset_of_faults_that_were_missed_is_off_by_the_whole_run(make, tree):
    label = make.label(
        make.fault("slow_link", windows=windows((20, 60))),
        make.fault("gpu_throttle", windows=windows((50, 60))),
        make.fault("slow_loader"),
        duration_ns=100,
    )
    answer = make.says(make.finding("slow_link", make.at(0), windows=windows((30, 70))))
    metric = score([label], {"case0": answer}, tree).metrics["onset_error"]
    assert (metric.value, metric.n) == (pytest.approx((0.1 + 1) / 2), 2)


def test_onset_needs_a_run_of_known_length(make, tree):
    label = make.label(make.fault(windows=windows((0, 2))))
    metric = score([label], {"case0": make.says()}, tree).metrics["onset_error"]
    assert metric.note == "no fault has windows in a run of known length"

from cases.schema import Window
from scorers import score
from scorers.windows import overlap


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

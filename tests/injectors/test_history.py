"""The loop's records: garbage for the cyclic collector alone, gone when not wanted."""

import gc

from injectors.recorder.knobs import Knobs
from injectors.workloads.history import KEPT, History


def collections_of_the_oldest_generation():
    return gc.get_stats()[2]["collections"]


def test_records_make_the_collector_walk_the_heap_and_are_dropped_afterwards():
    knobs = Knobs()
    history, other = History(knobs, 1), History(knobs, 0)
    gc.collect()
    objects, before = len(gc.get_objects()), collections_of_the_oldest_generation()
    with knobs.turned(history_records=50_000, history_rank=1):
        for _ in range(40):
            history.note()
            other.note()
        assert collections_of_the_oldest_generation() > before + 1
        assert len(gc.get_objects()) > objects + KEPT * 50_000
        assert not other._kept
    history.note()
    assert len(gc.get_objects()) < objects + 50_000

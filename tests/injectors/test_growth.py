"""Growth of a process's counters, from readings small enough to add up by hand."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cases.tables import TABLES
from injectors.recorder.growth import process_growth
from injectors.recorder.procfs import IO_COUNTERS, THREAD_COUNTERS, ProcessCounters

IO = {"read_bytes": 100, "write_bytes": 30}
BEFORE = ProcessCounters({"1": dict.fromkeys(THREAD_COUNTERS, 50), "2": {"cpu_ns": 900}}, IO)
COUNTS = st.integers(0, 2**62)
READINGS = st.builds(
    ProcessCounters,
    st.dictionaries(
        st.sampled_from("123"), st.dictionaries(st.sampled_from(THREAD_COUNTERS), COUNTS)
    ),
    st.dictionaries(st.sampled_from(sorted(IO_COUNTERS)), COUNTS),
)


def cpu_ns(**threads: int | None) -> int | None:
    """Growth of `cpu_ns` since BEFORE; None stands for a thread that could not be read."""
    read = {name[1:]: {} if value is None else {"cpu_ns": value} for name, value in threads.items()}
    return process_growth(ProcessCounters(read, IO), BEFORE)["cpu_ns"]


def test_growth_is_summed_over_threads() -> None:
    assert cpu_ns(t1=57, t2=903) == 7 + 3
    assert cpu_ns(t1=57) == 7  # the second has ended
    assert cpu_ns(t1=57, t2=None) == 7  # it ended while it was read
    assert cpu_ns(t1=57, t2=903, t3=4) == 7 + 3 + 4  # a third has begun


def test_what_is_not_known_is_none() -> None:
    assert cpu_ns(t1=49, t2=903) is None  # it went backwards
    assert cpu_ns(t1=None, t2=None) is None
    late = ProcessCounters({"2": dict.fromkeys(THREAD_COUNTERS, 901)}, {})
    assert process_growth(late, BEFORE) == {
        "cpu_ns": 1,
        "run_delay_ns": None,  # not read before, though the thread was there
        "voluntary_switches": None,
        "involuntary_switches": None,
        "read_bytes": None,
        "write_bytes": None,
    }


def test_all_of_a_new_process_is_growth() -> None:
    new = ProcessCounters({"1": {"cpu_ns": 5}, "2": {"cpu_ns": 6}}, IO)
    found = process_growth(new, None)
    assert (found["cpu_ns"], found["read_bytes"], found["run_delay_ns"]) == (11, 100, None)


@given(READINGS, st.none() | READINGS)
def test_growth_is_never_negative(now: ProcessCounters, before: ProcessCounters | None) -> None:
    found = process_growth(now, before)
    assert tuple(found) == TABLES["processes"].growth
    assert all(value is None or value >= 0 for value in found.values())

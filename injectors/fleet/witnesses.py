"""Queries that show a fault in the `jobs` table: its mechanism, in one segment, beside jobs alike.

Every query compares a job with the mean of the jobs of the reference period that are alike in what
confounds, and then one value of the segment's columns with all others. It names no value, so it
would find the mechanism in any segment of these columns, and must find it nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

ALIKE = ("model", "config", "gpu_model", "ranks", "input_size")
LEAST_SIZE = 5
# Measures of a job, each divided by its mean over the jobs alike of the reference period.
MEASURES = {
    "cycles": "compute_ns * sm_clock_mhz",
    "tensor": "tensor_active_percent * step_ns * sm_clock_mhz",
    "computing": "compute_ns",
    "moved": "pcie_rx_bytes_per_s * step_ns / 1e9 + 1e6",
    "exposed": "communication_ns",
    "copying": "copy_ns",
    "reading": "loader_read_ns",
    "decoding": "loader_cpu_ns",
    "clock": "sm_clock_mhz",
    "allowed": "power_limit_w",
}
# Shares of jobs, or means over them, as they stand.
OFF_TENSOR = "CASE WHEN tensor > 0.965 THEN 0 ELSE 1 END"  # beyond a job's noise
HOT = "CASE WHEN event_reasons & 32 > 0 THEN 1 ELSE 0 END"
GIVEN_UP = "CASE WHEN recompiles >= 8 THEN 1 ELSE 0 END"
NARROW = "CASE WHEN pcie_width < 16 THEN 1 ELSE 0 END"
FULL = "1.0 * memory_used_bytes / memory_total_bytes"
WAITING = "1.0 * data_wait_ns / step_ns"
KNOWN = (
    "CASE WHEN gpu_serial IN (SELECT gpu_serial FROM reference.jobs WHERE gpu_serial IS NOT NULL)"
    " THEN 1 ELSE 0 END"
)


@dataclass(frozen=True)
class Query:
    """The parts of one query.

    Attributes:
        measures: Which of MEASURES it uses.
        holds: What must be true of a segment: `x_in` is the mean of x over its jobs, `x_out` that
            over all others.
        says: What it shows.
        shares: Further x, with their expressions.
        jobs: Which jobs count.
        alike: Columns in which jobs must agree to be compared.
    """

    measures: tuple[str, ...]
    holds: str
    says: str
    shares: Mapping[str, str] = field(default_factory=dict)
    jobs: str = "true"
    alike: tuple[str, ...] = ALIKE


QUERIES: dict[str, Query] = {
    "kernel_regression": Query(
        ("cycles", "tensor", "moved"),
        "cycles_in > 1.04 * cycles_out",
        "jobs of the segment need more GPU cycles a step than jobs alike, with as much work on the"
        " tensor cores, compiled as before and nothing paged to the host",
        jobs=f"{OFF_TENSOR} = 0 AND recompiles < 8 AND moved < 1.03",
    ),
    "precision_fallback": Query(
        ("cycles", "tensor"),
        "off_in > 0.8 AND cycles_in > 1.04 * cycles_out",
        "jobs of the segment do less of the same work on the tensor cores, and need more cycles",
        {"off": OFF_TENSOR},
        jobs="recompiles < 8",
    ),
    "recompile_limit_eager_fallback": Query(
        ("cycles",),
        "given_up_in > 0.8 AND cycles_in > 1.04 * cycles_out",
        "jobs of the segment ran into the limit of 8 recompilations and need more cycles a step",
        {"given_up": GIVEN_UP},
    ),
    "vram_sysmem_spill": Query(
        ("computing", "moved"),
        "moved_in > 3 * moved_out AND computing_in > 1.03 * computing_out AND full_in > 0.85",
        "with memory nearly full, jobs of the segment move far more bytes over the bus and compute"
        " longer",
        {"full": FULL},
    ),
    "nccl_tuning_regression": Query(
        ("exposed",),
        "exposed_in > 1.12 * exposed_out",
        "jobs of the segment communicate longer for the same bytes",
        jobs="ranks > 1 AND pcie_width >= 16",
    ),
    "thermal_throttle": Query(
        ("clock",),
        "hot_in > 0.5 AND clock_in < 0.97",
        "the segment's clocks are below its own of the reference period, with the thermal bit",
        {"hot": HOT},
        alike=("machine", "model"),
    ),
    "power_cap": Query(
        ("clock", "allowed"),
        "allowed_in < 0.95 AND clock_in < 0.96 * clock_out",
        "the segment's power limit is lower than it was for these cards, and so are its clocks",
        alike=("gpu_model", "model"),
    ),
    "gpu_silicon_variability": Query(
        ("clock", "allowed"),
        "clock_in < 0.86 AND allowed_in > 0.99 AND hot_in < 0.1 AND known_in = 0",
        "a GPU that is new runs far below its peers' clocks at their power limit, and not for heat",
        {"hot": HOT, "known": KNOWN},
        alike=("gpu_model", "model"),
    ),
    "pcie_downgrade": Query(
        ("copying",),
        "narrow_in > 0.8 AND copying_in > 1.5",
        "the segment's link is narrow under load and its copies take longer",
        {"narrow": NARROW},
    ),
    "storage_fetch_stall": Query(
        ("reading", "decoding"),
        "reading_in > 1.5 * reading_out AND decoding_in < 1.2 * decoding_out"
        " AND waiting_in > 0.03 + waiting_out",
        "loaders of the segment read longer for the same bytes, and its jobs wait for data",
        {"waiting": WAITING},
    ),
    "dataloader_cpu_bound": Query(
        ("reading", "decoding"),
        "decoding_in > 1.5 * decoding_out AND reading_in < 1.2 * reading_out"
        " AND waiting_in > 0.03 + waiting_out",
        "loaders of the segment compute longer for the same samples, and its jobs wait for data",
        {"waiting": WAITING},
    ),
}


def witness_sql(cause: str, columns: Sequence[str]) -> tuple[str, str]:
    """Return the query that shows `cause` in a segment of `columns`, and what it says."""
    query = QUERIES[cause]
    alike, keys = ", ".join(query.alike), ", ".join(columns)
    named = " AND ".join(f"{column} IS NOT NULL" for column in columns)
    usual = ", ".join(f"avg({MEASURES[name]}) AS usual_{name}" for name in query.measures)
    ratios = ", ".join(f"({MEASURES[name]}) / usual_{name} AS {name}" for name in query.measures)
    known = " AND ".join(f"{name} IS NOT NULL" for name in query.measures)
    shares = {**{name: name for name in query.measures}, **query.shares}
    means = ", ".join(_means(name, what) for name, what in shares.items())
    totals = ", ".join(f"sum({what}) AS all_{name}" for name, what in shares.items())
    text = f"""
        WITH alike AS (SELECT {alike}, {usual} FROM reference.jobs GROUP BY {alike}),
        compared AS (SELECT *, {ratios} FROM jobs JOIN alike USING ({alike})),
        counted AS (SELECT * FROM compared WHERE {known} AND {query.jobs}),
        totals AS (SELECT count(*) AS everyone, {totals} FROM counted),
        segments AS (SELECT {means} FROM counted, totals WHERE {named} GROUP BY {keys}
        HAVING count(*) >= {LEAST_SIZE})
        SELECT count(*) FROM segments WHERE {query.holds}
    """
    return " ".join(text.split()), query.says


def _means(name: str, what: str) -> str:
    """Mean over the segment's jobs, and over all others (null where there are none)."""
    others = f"(any_value(all_{name}) - sum({what})) / nullif(any_value(everyone) - count(*), 0)"
    return f"avg({what}) AS {name}_in, {others} AS {name}_out"

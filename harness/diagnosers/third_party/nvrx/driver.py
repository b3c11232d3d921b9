"""Scores ranks as nvidia-resiliency-ext does, and asks its report for stragglers.

In a job its ranks exchange the least of their medians; here they are all at hand, so that the
exchange is a minimum over them. Scores and thresholds are its own.
"""

import gzip
import json
import math
import statistics
import sys
from pathlib import Path
from typing import Any

THRESHOLD = 0.75  # its own default of all four


def main(asked: str, told: str) -> None:
    """Write the ranks that it calls stragglers, by GPU and by section, with all scores."""
    from nvidia_resiliency_ext.straggler.reporting import Report, ReportGenerator

    request = json.loads(Path(asked).read_text())
    scores = ReportGenerator(["relative_perf_scores"])
    kernels = {
        int(rank): scores._filter_out_nccl_kernels(summaries(kernel_times_us(path)))
        for rank, path in request["traces"].items()
    }
    sections = {int(rank): summaries(times) for rank, times in request["sections"].items()}
    best, best_sections = least(kernels), least(sections)
    gpu = {rank: scores._compute_gpu_perf_score(own, best) for rank, own in kernels.items()}
    by_section: dict[str, dict[int, float]] = {}
    for rank, own in sections.items():
        shared = {name: own[name] for name in own if not math.isnan(best_sections[name])}
        found = scores._compute_sections_perf_scores(shared, best_sections)
        for name, score in found.items():
            by_section.setdefault(name, {})[rank] = score
    report = Report(
        gpu_relative_perf_scores=gpu,
        section_relative_perf_scores=by_section,
        gpu_individual_perf_scores={},
        section_individual_perf_scores={},
        rank_to_node={int(rank): host for rank, host in request["hosts"].items()},
        local_section_summaries={},
        local_kernel_summaries={},
        generate_report_elapsed_time=0.0,
        gather_on_rank0=True,
        rank=0,
    )
    named = report.identify_stragglers(gpu_rel_threshold=THRESHOLD, section_rel_threshold=THRESHOLD)
    said = {
        "gpus": sorted(who.rank for who in named["straggler_gpus_relative"]),
        "sections": {
            name: sorted(who.rank for who in found)
            for name, found in named["straggler_sections_relative"].items()
        },
        "gpu_scores": {
            str(rank): None if math.isnan(score) else score for rank, score in gpu.items()
        },
    }
    Path(told).write_text(json.dumps(said))


def kernel_times_us(path: str) -> dict[str, list[float]]:
    """Times of each kernel of a trace, as its own recorder takes them from CUPTI."""
    with gzip.open(path) as file:
        events = json.load(file)["traceEvents"]
    times: dict[str, list[float]] = {}
    for event in events:
        if event.get("cat") == "kernel" and "dur" in event:
            times.setdefault(event["name"], []).append(event["dur"])
    return times


def summaries(times: dict[str, list[float]]) -> dict[str, dict[Any, float]]:
    """The statistics that its scores are made of."""
    from nvidia_resiliency_ext.straggler.statistics import Statistic

    return {
        name: {
            Statistic.MED: statistics.median(values),
            Statistic.AVG: statistics.fmean(values),
            Statistic.NUM: len(values),
        }
        for name, values in times.items()
        if min(values) > 0
    }


def least(by_rank: dict[int, dict[str, dict[Any, float]]]) -> dict[str, float]:
    """The least median over the ranks of what all ranks have; of the rest NaN, as there."""
    from nvidia_resiliency_ext.straggler.statistics import Statistic

    names = {name for own in by_rank.values() for name in own}
    return {
        name: min(own[name][Statistic.MED] for own in by_rank.values())
        if all(name in own for own in by_rank.values())
        else math.nan
        for name in sorted(names)
    }


if __name__ == "__main__":
    main(*sys.argv[1:])

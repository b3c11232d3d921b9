"""Asks HolisticTraceAnalysis for what its documentation calls the analyses of a job's time."""

import json
import sys
from pathlib import Path


def main(asked: str, told: str) -> None:
    """Write its tables, row by row."""
    from hta.trace_analysis import TraceAnalysis

    traces = json.loads(Path(asked).read_text())["traces"]
    files = {int(rank): path for rank, path in traces.items()}
    analysis = TraceAnalysis(trace_files=files, trace_dir="")
    idle, _ = analysis.get_idle_time_breakdown(
        ranks=sorted(files), visualize=False, visualize_pctg=False
    )
    overlap = analysis.get_comm_comp_overlap(visualize=False)
    said = {
        "temporal": analysis.get_temporal_breakdown(visualize=False).to_dict("records"),
        "overlap": overlap.to_dict("records"),
        "idle": idle.to_dict("records"),
    }
    Path(told).write_text(json.dumps(said, default=float))


if __name__ == "__main__":
    main(*sys.argv[1:])

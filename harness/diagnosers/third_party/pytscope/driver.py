"""Writes the run that pytscope would have recorded and does what `pytscope analyze` does."""

import json
import sys
from dataclasses import asdict
from pathlib import Path


def main(asked: str, told: str) -> None:
    """Write its findings; without steps and traces it finds nothing to analyse."""
    from pytscope.analyzers.convergence import analyze_convergence
    from pytscope.analyzers.distributed import analyze_distributed, is_multirank, load_multirank
    from pytscope.analyzers.efficiency import analyze_efficiency
    from pytscope.analyzers.memory import analyze_memory
    from pytscope.analyzers.timing import analyze_timing
    from pytscope.analyzers.trace import analyze_trace_file
    from pytscope.core.store import RunStore
    from pytscope.diagnosis import DiagnosisContext, run_diagnosis

    request = json.loads(Path(asked).read_text())
    traces = request["traces"]
    if not request["steps"] and not traces:  # "No steps or trace found", exit status 1
        Path(told).write_text(json.dumps({"refused": "No steps or trace found"}))
        return
    run = write_run(Path("run"), request["steps"])
    distributed = None
    if is_multirank(run):  # as pytscope.cli.cmd_analyze
        ranks = load_multirank(run)
        distributed = analyze_distributed(ranks)
        store = ranks[min(ranks)]
    else:
        store = RunStore.load(run)
    findings = run_diagnosis(
        DiagnosisContext(
            timing=analyze_timing(store.steps),
            memory=analyze_memory(store.steps),
            convergence=analyze_convergence(store.steps),
            steps=store.steps,
            distributed=distributed,
            trace=analyze_trace_file(traces[min(traces, key=int)]) if traces else None,
            efficiency=analyze_efficiency(store.steps),
        )
    )
    straggler = distributed.straggler.rank if distributed and distributed.straggler else None
    said = {"findings": [asdict(finding) for finding in findings], "straggler": straggler}
    Path(told).write_text(json.dumps(said))


def write_run(folder: Path, steps: dict[str, list[dict[str, object]]]) -> Path:
    """Write a run folder in its format: `steps.jsonl`, in `rank<N>/` where there are several."""
    folder.mkdir()
    for rank, records in steps.items():
        place = folder / f"rank{rank}" if len(steps) > 1 else folder
        place.mkdir(exist_ok=True)
        lines = [json.dumps(record) for record in records]
        (place / "steps.jsonl").write_text("\n".join(lines) + "\n")
    return folder


if __name__ == "__main__":
    main(*sys.argv[1:])

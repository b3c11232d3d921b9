"""Lays out a run folder for each trace and calls `frx analyze FOLDER --json` on it."""

import csv
import gzip
import io
import json
import shutil
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

COLUMNS = ("index", "utilization.gpu", "utilization.memory", "memory.used", "memory.total")
NOTHING = "No trace data found in bundle"


def main(asked: str, told: str) -> None:
    """Write what it says of each rank; a trace in which it finds no data is `refused`."""
    request = json.loads(Path(asked).read_text())
    said = {
        rank: analyse(Path(f"rank{rank}"), path, request["gpu_samples"][rank])
        for rank, path in request["traces"].items()
    }
    Path(told).write_text(json.dumps(said))


def analyse(folder: Path, trace: str, samples: list[list[object]]) -> dict[str, object]:
    """Call it as from a shell, and keep the parts of its result that hold its diagnoses."""
    (folder / "profiler").mkdir(parents=True)
    with (
        gzip.open(trace) as packed,
        (folder / "profiler" / "profiler_trace.json").open("wb") as file,
    ):
        shutil.copyfileobj(packed, file)
    with (folder / "gpu_metrics.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        writer.writerows(samples)
    status, printed, complaint = frx("analyze", str(folder), "--json")
    shutil.rmtree(folder)
    if status and NOTHING in complaint:
        return {"refused": NOTHING}
    if status:
        raise RuntimeError(complaint)
    result = json.loads(printed)["result"]
    return {name: pick(result[name]) for name in ("run", "steady_state")}


def frx(*arguments: str) -> tuple[int, str, str]:
    """Call its command line in this process; returns status, output and complaints."""
    from fournex.cli import main as command_line

    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as errors:
        status = command_line(list(arguments))
    return status or 0, out.getvalue(), errors.getvalue()


def pick(scope: dict[str, dict[str, object]]) -> dict[str, object]:
    """What its report shows of one of its two scopes."""
    return {
        "diagnosis": scope["diagnosis"],
        "bottlenecks": scope["bottlenecks"],
        "step_count": scope["step_count"],
    }


if __name__ == "__main__":
    main(*sys.argv[1:])

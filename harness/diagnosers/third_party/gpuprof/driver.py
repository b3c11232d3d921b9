"""Fills gpuprof's database and runs its rules on every rank, and its comparison of ranks."""

import gzip
import json
import sqlite3
import sys
from pathlib import Path
from typing import Any

DATABASE = "gpuprof.db"
GROUP = "case"
TOP = 25  # kernels that its own recorder keeps of a trace


def main(asked: str, told: str) -> None:
    """Write the insights by rank with the rule that gave each, and those on the group."""
    from gpuprof import insights
    from gpuprof.store import apply_schema

    request = json.loads(Path(asked).read_text())
    connection = sqlite3.connect(DATABASE)
    apply_schema(connection)
    ranks = sorted(map(int, request["steps"]))
    for rank in ranks:
        fill(connection, request, rank, len(ranks))
    connection.commit()
    said: dict[str, Any] = {"ranks": {}}
    for rank in ranks:
        context = insights._build_ctx(connection, rank + 1)  # as insights.analyze
        context.db_path = DATABASE
        found = [(rule.__name__, rule(context)) for rule in insights.RULES]
        said["ranks"][str(rank)] = [
            {"rule": name, "severity": insight["severity"], "title": insight["title"]}
            for name, insight in found
            if insight
        ]
    group = insights.analyze_group(DATABASE, GROUP) if len(ranks) > 1 else {"insights": []}
    said["group"] = [insight["title"] for insight in group["insights"]]
    Path(told).write_text(json.dumps(said))


def fill(connection: sqlite3.Connection, request: dict[str, Any], rank: int, size: int) -> None:
    """Write one rank's run."""
    run = rank + 1
    connection.execute(
        "INSERT INTO runs (id, name, started_at, gpu_name, group_id, rank, world_size, meta_json)"
        " VALUES (?, ?, 0, ?, ?, ?, ?, '{}')",
        (run, request["name"], request["gpu"], GROUP, rank, size),
    )
    insert(connection, "steps", run, request["steps"][str(rank)])
    insert(connection, "samples", run, request["samples"].get(str(rank), []))
    host = request["host_samples"].get(request["hosts"][str(rank)], [])
    insert(connection, "host_samples", run, joined(host, request["workers"].get(str(rank), [])))
    if path := request["traces"].get(str(rank)):
        connection.execute(
            "INSERT INTO traces (run_id, step, kernels_json) VALUES (?, 0, ?)",
            (run, json.dumps(top_kernels(path))),
        )


def insert(
    connection: sqlite3.Connection, table: str, run: int, rows: list[dict[str, Any]]
) -> None:
    """Write rows whose names are those of its columns."""
    if rows:
        names = ["run_id", *rows[0]]
        marks = ", ".join("?" * len(names))
        statement = f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marks})"
        connection.executemany(statement, [(run, *row.values()) for row in rows])


def joined(host: list[dict[str, Any]], workers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Host samples with the workers' of the same time, which its sampler takes at once."""
    at = {sample["t"]: sample for sample in workers}
    nothing = dict.fromkeys(("children_cpu_percent", "max_child_cpu_percent", "n_children"))
    return [{**sample, **nothing, **at.get(sample["t"], {})} for sample in host]


def top_kernels(path: str) -> list[dict[str, Any]]:
    """The kernels that take most time in a trace, in its form (`gpuprof._kernels`)."""
    with gzip.open(path) as file:
        events = json.load(file)["traceEvents"]
    totals: dict[str, list[float]] = {}
    for event in events:
        if event.get("cat") == "kernel" and "dur" in event:
            totals.setdefault(event["name"], []).append(event["dur"])
    found = [
        {"name": name, "count": len(times), "self_device_us": sum(times), "self_cpu_us": 0.0}
        for name, times in totals.items()
    ]
    return sorted(found, key=lambda kernel: -float(str(kernel["self_device_us"])))[:TOP]


if __name__ == "__main__":
    main(*sys.argv[1:])

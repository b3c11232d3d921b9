"""Fills nvsonar's sessions with samples, as its thread would, and lets them conclude."""

import json
import sys
from pathlib import Path
from typing import Any


def main(asked: str, told: str) -> None:
    """Write by rank its state, its patterns, and in what the device stands out of its host's."""
    said: dict[str, Any] = {}
    for devices in json.loads(Path(asked).read_text())["hosts"].values():
        said |= conclude({int(rank): samples for rank, samples in devices.items()})
    Path(told).write_text(json.dumps(said))


def conclude(devices: dict[int, list[dict[str, Any]]]) -> dict[str, Any]:
    """Run one session, the devices of one host; its summary is `Session._analyze`."""
    from nvsonar.analysis import TemporalAnalyzer, classify, detect_outliers
    from nvsonar.session import GPUSnapshot, Session

    session = Session(gpu_indices=sorted(devices))
    for index, samples in devices.items():
        session._temporals[index] = TemporalAnalyzer(window_size=120)
        session._snapshots[index] = []
        for number, sample in enumerate(samples):  # as Session._collect_loop
            metrics = metrics_of(sample)
            session._temporals[index].update(metrics)
            snapshot = GPUSnapshot(float(number), metrics, classify(metrics))
            session._snapshots[index].append(snapshot)
    result = session._analyze(duration=float(max(map(len, devices.values()))))
    latest = {i: snaps[-1].metrics for i, snaps in session._snapshots.items() if snaps}
    outliers = detect_outliers(latest) if len(latest) > 1 else []
    return {
        str(summary.gpu_index): {
            "state": summary.dominant_bottleneck,
            "confidence": confidence(session, summary),
            "patterns": [
                {"name": pattern.name, "severity": pattern.severity}
                for pattern in session._temporals[summary.gpu_index].detect()
            ],
            "outliers": [
                {"metric": outlier.metric, "severity": outlier.severity}
                for outlier in outliers
                if outlier.gpu_index == summary.gpu_index
            ],
        }
        for summary in result.gpu_summaries
    }


def confidence(session: Any, summary: Any) -> float:
    """Its mean confidence in the state that it calls dominant."""
    said = [
        snapshot.bottleneck.confidence
        for snapshot in session._snapshots[summary.gpu_index]
        if snapshot.bottleneck.bottleneck.value == summary.dominant_bottleneck
    ]
    return float(sum(said) / len(said))


def metrics_of(sample: dict[str, Any]) -> Any:
    """One snapshot; reasons for low clocks are decoded by its own table."""
    from nvsonar.monitor.hardware import ECCInfo, PCIeInfo
    from nvsonar.monitor.metrics import Metrics
    from nvsonar.monitor.throttle import REASONS, ThrottleReason, ThrottleStatus

    values = dict(sample)
    mask = values.pop("event_reasons") or 0
    active = [ThrottleReason(bit, **info) for bit, info in REASONS.items() if mask & bit]
    return Metrics(
        **values,
        max_gpu_clock=None,
        fan_speed=None,
        throttle=ThrottleStatus(mask, active),
        pcie=PCIeInfo(0, 0, 0, 0, None, None),  # 0 is its "not available"
        ecc=ECCInfo(0, 0, False),
    )


if __name__ == "__main__":
    main(*sys.argv[1:])

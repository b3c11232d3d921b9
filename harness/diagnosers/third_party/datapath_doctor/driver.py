"""Runs datapath-doctor's rules on all samples of each rank, and its comparison of ranks."""

import json
import sys
from dataclasses import asdict
from pathlib import Path


def main(asked: str, told: str) -> None:
    """Write by rank its findings and its diagnosis, and the rank whose input is slowest."""
    from datapath_doctor.correlation import correlate_findings
    from datapath_doctor.distributed import analyze_distributed
    from datapath_doctor.models import StepSample

    samples = [StepSample(**row) for row in json.loads(Path(asked).read_text())["samples"]]
    found = analyze_distributed(samples)
    ranks = {}
    for rank, findings in found.per_rank_findings.items():
        diagnosis = correlate_findings(findings)
        ranks[rank] = {
            "findings": [finding.to_dict() for finding in findings],
            "diagnosis": asdict(diagnosis) if diagnosis else None,
        }
    straggler = asdict(found.straggler) if found.straggler else None
    waits = any(sample.data_wait_s is not None for sample in samples)
    Path(told).write_text(json.dumps({"ranks": ranks, "straggler": straggler, "waits": waits}))


if __name__ == "__main__":
    main(*sys.argv[1:])

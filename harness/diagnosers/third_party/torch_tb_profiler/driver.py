"""Parses every trace as the plugin does in TensorBoard, and takes its recommendations."""

import json
import sys
import tempfile
from pathlib import Path


def main(asked: str, told: str) -> None:
    """Write the recommendations by rank, as the plugin words them (HTML)."""
    from torch_tb_profiler.profiler.data import RunProfileData

    said = {}
    for rank, path in json.loads(Path(asked).read_text())["traces"].items():
        with tempfile.TemporaryDirectory() as cache:
            found = RunProfileData.parse(f"rank{rank}", "1", path, cache)
        said[rank] = list(found.recommendations)
    Path(told).write_text(json.dumps(said))


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Calls gpu-idle on every trace of a case, as `gpu-idle trace.json --json` does."""

import gzip
import json
import shutil
import sys
from pathlib import Path


def main(asked: str, told: str) -> None:
    """Write what it says of each rank; what it refuses for want of steps is told as `refused`."""
    import analyzer  # the module that gpu-idle installs

    said = {}
    for rank, path in json.loads(Path(asked).read_text())["traces"].items():
        plain = Path(f"rank{rank}.json")  # it reads no compressed traces
        with gzip.open(path) as packed, plain.open("wb") as file:
            shutil.copyfileobj(packed, file)
        try:
            said[rank] = analyzer.analyze(plain)
        except ValueError as error:
            if "no ProfilerStep annotations" not in str(error):
                raise
            said[rank] = {"refused": str(error)}
        plain.unlink()
    Path(told).write_text(json.dumps(said))


if __name__ == "__main__":
    main(*sys.argv[1:])

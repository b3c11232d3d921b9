"""Diagnosers that nobody here wrote, as they are: a table, so that a name needs no import.

Each tool has a folder:

driver.py           run by the tool's own interpreter, which has the tool and nothing of ours:
                    a request in (paths of a case's files, numbers of its tables), the tool's raw
                    output out, both as JSON
translate.py        a pure function from the raw output to a `Diagnosis`, and the table it goes by
inputs.py           only where the tool reads no recording of ours: what it is given instead
requirements.txt    everything that is installed for it, pinned by version and hash
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

FOLDER = Path(__file__).parent
REQUIREMENTS = "requirements.txt"
PYTHON = "python"  # the setting that says where a tool's interpreter is


@dataclass(frozen=True)
class Tool:
    """One tool of others.

    Attributes:
        module: Its folder here; `diagnose` of that package asks it.
        release: The distribution and version that is asked, `name==version`.
        licence: Of the tool.
        reads: `trace` where it reads the profiler's traces itself, `tables` where an adapter
            computes what it is given from a case's tables.
        about: One line for listings.
    """

    module: str
    release: str
    licence: str
    reads: Literal["trace", "tables"]
    about: str

    @property
    def package(self) -> str:
        """Where its adapter is imported from."""
        return f"{__name__}.{self.module}"

    @property
    def folder(self) -> Path:
        """The adapter's folder."""
        return FOLDER / self.module

    @property
    def lock(self) -> Path:
        """What is installed for it."""
        return self.folder / REQUIREMENTS


TOOLS: dict[str, Tool] = {
    "gpu-idle": Tool(
        "gpu_idle",
        "gpu-idle==0.1.0",
        "MIT",
        "trace",
        "Names loader, small kernels or copies where the GPU idles.",
    ),
}

"""Diagnosers that nobody here wrote, as they are: a table, so that a name needs no import.

Each tool has a folder:

__init__.py         `diagnose`, an `Adapter`: what it needs and what it is given
driver.py           run by the tool's own interpreter, which has the tool and nothing of ours:
                    a request in (paths of a case's files, numbers of its tables), the tool's raw
                    output out, both as JSON
translate.py        a pure function from the raw output to a `Diagnosis`, and the table it goes by
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
        imports: The module that its driver calls, which must be importable once installed.
        licence: Of the tool.
        reads: `trace` where it reads the profiler's traces itself, `tables` where an adapter
            computes what it is given from a case's tables, `both` where it takes either.
        about: One line for listings.
    """

    module: str
    release: str
    imports: str
    licence: str
    reads: Literal["trace", "tables", "both"]
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
        "analyzer",
        "MIT",
        "trace",
        "Names loader, small kernels or copies where the GPU idles.",
    ),
    "pytscope": Tool(
        "pytscope",
        "pytscope==0.2.1",
        "pytscope.diagnosis",
        "MIT",
        "both",
        "Judges phases of steps, ranks against each other and exposed communication.",
    ),
    "fournex": Tool(
        "fournex",
        "fournex==0.3.1",
        "fournex.cli",
        "MIT",
        "trace",
        "Names the bound of a step: input, copy, sync, launches or memory.",
    ),
    "torch-tb-profiler": Tool(
        "torch_tb_profiler",
        "torch-tb-profiler==0.4.3",
        "torch_tb_profiler.profiler.data",
        "BSD-3-Clause",
        "trace",
        "Recommends what to try: loader, communication, precision, memory.",
    ),
    "hta": Tool(
        "hta",
        "HolisticTraceAnalysis==0.5.0",
        "hta.trace_analysis",
        "MIT",
        "trace",
        "Measures idle time and overlap of several ranks; the limits are ours.",
    ),
    "nvrx": Tool(
        "nvrx",
        "nvidia-resiliency-ext==0.4.1",
        "nvidia_resiliency_ext.straggler.reporting",
        "Apache-2.0",
        "both",
        "Scores ranks by their kernels and sections and names slow ones.",
    ),
    "nvsonar": Tool(
        "nvsonar",
        "nvsonar==2.4.0",
        "nvsonar.session",
        "Apache-2.0",
        "tables",
        "Judges samples of NVML: clocks, power, memory, starvation, outliers.",
    ),
    "gpuprof": Tool(
        "gpuprof",
        "gpuprof==0.7.1",
        "gpuprof.insights",
        "MIT",
        "both",
        "23 rules over steps, devices, hosts and kernels.",
    ),
    "airun": Tool(
        "airun",
        "airun-profiler==0.1.7",
        "airun.cli.main",
        "Apache-2.0",
        "tables",
        "The negative control: the same evidence whatever it is given.",
    ),
    "traceml-ai": Tool(
        "traceml",
        "traceml-ai==0.5.0",
        "traceml_ai.diagnostics.step_time.api",
        "Apache-2.0",
        "tables",
        "Names what steps wait for, and the rank that others wait for.",
    ),
    "datapath-doctor": Tool(
        "datapath_doctor",
        "datapath-doctor==0.2.1",
        "datapath_doctor.engine",
        "Apache-2.0",
        "tables",
        "Says why training waits for data: decoding, storage, workers, checkpoints.",
    ),
}

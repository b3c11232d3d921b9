"""The workloads that run for real on CPU cores, as simulated jobs: the twins of recordings."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from cases.errors import ScenarioError
from injectors.sim.job import Job, Loader
from injectors.sim.machine import MACHINES
from injectors.sim.program import Program
from injectors.sim.twin import Speeds, Twin
from injectors.sim.workloads.cpu.image_classifier import compile_image_classifier
from injectors.sim.workloads.cpu.language_model import compile_language_model
from injectors.sim.workloads.cpu.pipeline import compile_pipeline
from injectors.sim.workloads.cpu.sharded import compile_mixture, compile_recommendation
from injectors.sim.workloads.cpu.translation import translate
from injectors.workloads.image_classifier import ImageClassifier
from injectors.workloads.language_model import LanguageModel
from injectors.workloads.mixture_of_experts import MixtureOfExperts
from injectors.workloads.pipeline import Pipeline
from injectors.workloads.recommendation import Recommendation

if TYPE_CHECKING:
    from injectors.scenario import Scenario

MEGABIT_BYTES = 125_000


def set_up(job: Job, scenario: Scenario, speeds: Speeds | None = None) -> None:
    """Fill in what is ordinary for a real scenario's job, on a machine of given speeds."""
    link = scenario.link_mbit_per_s
    job.twin = Twin(
        pinned=scenario.pinned,
        cores=scenario.cores,
        hosts=scenario.hosts,
        link_bytes_per_s=round(link * MEGABIT_BYTES) if link else 0,
        settings=scenario.settings(),
        speeds=speeds or Speeds(),
    )
    if isinstance(job.workload, Pipeline):
        job.places = replace(job.places, data=1, pipeline=job.places.ranks)
    _run_on(job, job.twin)
    job.loader = Loader(workers=0, read_bytes=0, requests=0, decode_ns=0, worker_cores=1)
    translate(job)


def _run_on(job: Job, twin: Twin) -> None:
    """Let the job's machine be what the speeds say."""
    speeds, machine = twin.speeds, MACHINES["cpu"]
    rate = speeds.collective_bytes_per_s
    job.machine = replace(
        machine,
        cores=twin.cores,
        cpu_flops_per_s=speeds.flops_per_s,
        cpu_memory_bytes_per_s=speeds.memory_bytes_per_s,
        nic_latency_ns=speeds.collective_ns,
        nic_bytes_per_s=min(rate, twin.link_bytes_per_s or rate),
    )
    job.host.op_ns = speeds.op_ns


def compile_cpu(job: Job) -> Program:
    """Write the step of a twin; raises ScenarioError for workloads that have none."""
    workload = job.workload
    if isinstance(workload, LanguageModel):
        return compile_language_model(job, workload)
    if isinstance(workload, ImageClassifier):
        return compile_image_classifier(job, workload)
    if isinstance(workload, Pipeline):
        return compile_pipeline(job, workload)
    if isinstance(workload, MixtureOfExperts):
        return compile_mixture(job, workload)
    if isinstance(workload, Recommendation):
        return compile_recommendation(job, workload)
    raise ScenarioError("can't be simulated on CPU cores", where=workload.title)

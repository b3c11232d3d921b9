"""Simulated workloads by what they have in common, for faults that need it."""

from __future__ import annotations

GRADIENT_BUCKETS = ("ddp_transformer", "vision", "diffusion", "recommender")
TRANSFORMERS = (
    "ddp_transformer",
    "fsdp_transformer",
    "tensor_parallel_transformer",
    "pipeline_transformer",
    "moe_transformer",
)
LOADER_BOUND = ("vision", "diffusion", "recommender")
TRAINING = (*TRANSFORMERS, *LOADER_BOUND)
SERVING = ("llm_serving", "disaggregated_serving")

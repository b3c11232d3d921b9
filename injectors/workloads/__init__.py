"""Workloads by name."""

from injectors.workloads.base import Context, Program, Workload
from injectors.workloads.image_classifier import ImageClassifier
from injectors.workloads.language_model import LanguageModel
from injectors.workloads.mixture_of_experts import MixtureOfExperts
from injectors.workloads.pipeline import Pipeline
from injectors.workloads.recommendation import Recommendation
from injectors.workloads.serving import InferenceServer

WORKLOADS: dict[str, type[Workload]] = {
    "image_classifier": ImageClassifier,
    "inference_server": InferenceServer,
    "language_model": LanguageModel,
    "mixture_of_experts": MixtureOfExperts,
    "pipeline": Pipeline,
    "recommendation": Recommendation,
}

__all__ = ["WORKLOADS", "Context", "ImageClassifier", "LanguageModel", "Program", "Workload"]

"""Workloads by name."""

from injectors.workloads.base import Context, Program, Workload
from injectors.workloads.image_classifier import ImageClassifier
from injectors.workloads.language_model import LanguageModel

WORKLOADS: dict[str, type[Workload]] = {
    "image_classifier": ImageClassifier,
    "language_model": LanguageModel,
}

__all__ = ["WORKLOADS", "Context", "ImageClassifier", "LanguageModel", "Program", "Workload"]

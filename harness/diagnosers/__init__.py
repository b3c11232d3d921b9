"""The bundled diagnosers: a table, so that a name needs no import to be known.

They run where any diagnoser runs and import only `cases`, numpy and scikit-learn.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Bundled:
    """One bundled diagnoser.

    Attributes:
        module, function: Where it is; its module's `NEEDS` says what it cannot do without.
        about: One line for listings.
        settings: Whether it is told what is common in the train split.
        model: Whether it talks to a language model, so that it needs an endpoint.
    """

    module: str
    about: str
    function: str = "diagnose"
    settings: bool = False
    model: bool = False


DIAGNOSERS: dict[str, Bundled] = {
    "silent": Bundled("harness.diagnosers.silent", "Says nothing about any case."),
    "constant": Bundled(
        "harness.diagnosers.constant", "Always blames the commonest cause.", settings=True
    ),
    "random": Bundled(
        "harness.diagnosers.random", "Draws its answer from how common each is.", settings=True
    ),
    "shotgun": Bundled(
        "harness.diagnosers.shotgun", "Blames the commonest causes all at once.", settings=True
    ),
    "forest": Bundled(
        "harness.diagnosers.forest.shipped",
        "Decision trees over documented numbers, trained on simulated cases.",
    ),
    "rules": Bundled(
        "harness.diagnosers.rules", "A decision list that walks the step: the model solution."
    ),
    "llm": Bundled(
        "harness.diagnosers.llm.diagnoser", "A language model that queries the case.", model=True
    ),
}
FLOORS = ("silent", "constant", "random", "shotgun")
ORACLE = "oracle"  # answers from the labels, so it is computed by the harness and never run

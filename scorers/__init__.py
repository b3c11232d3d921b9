"""Pure functions from (labels, responses) to outcomes, metrics, intervals and comparisons.

    scores = score(labels, responses, Taxonomy.load())
    scores.metrics["misled_rate"].value

No module here reads a file, a clock or unseeded randomness.
"""

from scorers.compare import Comparison, compare
from scorers.inputs import Label, Outcome, Response, Tree, validate
from scorers.metric import Metric
from scorers.scores import SCORING_VERSION, Scores, score

__all__ = [
    "SCORING_VERSION",
    "Comparison",
    "Label",
    "Metric",
    "Outcome",
    "Response",
    "Scores",
    "Tree",
    "compare",
    "score",
    "scoring_version",
    "validate",
]

scoring_version = SCORING_VERSION

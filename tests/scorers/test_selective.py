import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from scorers import score
from scorers.selective import areas, augrc, risk_coverage


def table(confidences, wrong, groups=None, answered=True):
    groups = range(len(confidences)) if groups is None else groups
    return pd.DataFrame(
        {
            "group": pd.Categorical(list(groups)),
            "confidence": np.asarray(confidences, dtype=float),
            "bucket": ["misled" if error else "found" for error in wrong],
            "answered": answered,
        }
    )


def area(*arguments, **others):
    return augrc(table(*arguments, **others)).value


def test_by_hand():
    # The surest of four is wrong: it is kept at 3.5 of 4 coverages; 3.5 / 16.
    assert area([0.9, 0.7, 0.5, 0.3], [1, 0, 0, 0]) == 3.5 / 16
    assert area([0.9, 0.7, 0.5, 0.3], [0, 0, 0, 1]) == 0.5 / 16
    # Equal ones stand in any order: on average at 2 of 4.
    assert area([0.5] * 4, [1, 0, 0, 0]) == 2 / 16
    assert area([0.9, 0.1], [1, 1]) == 0.5
    assert area([0.9, 0.1], [0, 0]) == 0


def test_as_its_authors_write_it():
    # (1 - AUROC) accuracy (1 - accuracy) + (1 - accuracy)^2 / 2, of Traub et al.
    rng = np.random.default_rng(2)
    sure = np.round(rng.random(200), 1)
    wrong = rng.random(200) < 0.7 - 0.5 * sure
    accuracy, auroc = 1 - wrong.mean(), roc_auc_score(~wrong, sure)
    theirs = (1 - auroc) * accuracy * (1 - accuracy) + (1 - accuracy) ** 2 / 2
    assert area(sure, wrong) == pytest.approx(theirs)


def test_what_was_not_answered_is_kept_last_and_never_wrong():
    # Two of four answered, of which the surer is wrong.
    frame = table([0.2, 0.1, np.nan, 0.9], [1, 0, 0, 1], answered=[True, True, False, False])
    assert augrc(frame).value == 3.5 / 16


def test_silence_has_the_best_area_and_says_so_in_coverage(make, tree):
    labels = [make.label(make.fault(), case_id="case0"), make.undecidable("case1")]
    silent = {x.case_id: make.abstains(x.case_id) for x in labels}
    metrics = score(labels, silent, tree).metrics
    assert (metrics["augrc"].value, metrics["coverage"].value) == (0, 0)


def test_only_found_and_quiet_are_right(make, tree):
    labels = [make.label(make.fault(), case_id="case0"), make.label(case_id="case1")]
    labels += [make.undecidable("case2")]
    healthy = {x.case_id: make.says(case_id=x.case_id) for x in labels}
    # Missed, quiet, dismissed, equally sure: two of three wrong.
    assert score(labels, healthy, tree).metrics["augrc"].value == pytest.approx(1 / 3)


rows = st.lists(
    st.tuples(st.sampled_from([0.1, 0.5, 0.9]), st.booleans(), st.integers(0, 7)),
    min_size=1,
    max_size=20,
)


@given(rows=rows)
def test_leaving_a_group_out_is_computed_exactly(rows):
    sure, wrong, groups = (np.array(column) for column in zip(*rows, strict=True))
    groups = np.unique(groups, return_inverse=True)[1]
    ranks = np.unique(sure, return_inverse=True)[1]
    whole, without = areas(ranks, wrong, groups)
    assert whole == pytest.approx(area(sure, wrong))
    for group, left in enumerate(without):
        kept = groups != group
        if kept.any():
            assert left == pytest.approx(area(sure[kept], wrong[kept]))
        else:
            assert np.isnan(left)


def test_the_curve_by_hand():
    curve = risk_coverage(table([0.9, 0.5, 0.5, 0.1], [0, 1, 0, 1]))
    assert curve["coverage"].tolist() == [0, 0.25, 0.75, 1]
    assert curve["generalised_risk"].tolist() == [0, 0, 0.25, 0.5]


def test_no_case_no_figure():
    assert augrc(table([], [])).note == "no case"


def test_an_interval_needs_twenty_groups() -> None:
    confidence, wrong = [0.9, 0.8, 0.7, 0.6] * 5, [True, False, False, True] * 5
    assert augrc(table(confidence, wrong)).low is not None
    few = augrc(table(confidence[:19], wrong[:19]))
    assert few.low is None and few.note == "no interval: 19 groups, at least 20 are needed"

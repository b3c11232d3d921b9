"""Precision, recall and F1 against scikit-learn, where each case has one fault and one finding."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import f1_score, precision_score, recall_score

from cases.schema import JOB
from scorers import score

CAUSES = ("cpu_contention", "gpu_throttle", "lossy_link", "slow_link", "slow_loader")
cases = st.lists(
    st.tuples(st.sampled_from([*CAUSES, "nothing"]), st.sampled_from([*CAUSES, "nothing"])),
    min_size=1,
    max_size=60,
)


@settings(max_examples=40, deadline=None)
@given(cases=cases)
def test_over_all_and_by_cause(make, tree, cases):
    labels, answers = [], {}
    for i, (true, said) in enumerate(cases):
        name = f"case{i:02d}"
        faults = [] if true == "nothing" else [make.fault(true, JOB)]
        findings = [] if said == "nothing" else [make.finding(said, JOB)]
        labels.append(make.label(*faults, case_id=name, group=name))
        answers[name] = make.says(*findings, case_id=name)
    metrics = score(labels, answers, tree).metrics
    true, said = zip(*cases, strict=True)
    whole = {"labels": CAUSES, "average": "micro", "zero_division": 0}
    for name, theirs in [
        ("recall", recall_score),
        ("precision", precision_score),
        ("f1", f1_score),
    ]:
        for level in ("cause", "cause_and_locus"):
            ours = metrics[f"{name}_{level}"].value
            if ours is not None:
                assert ours == pytest.approx(theirs(true, said, **whole))
        by_cause = theirs(true, said, labels=CAUSES, average=None, zero_division=0)
        for cause, expected in zip(CAUSES, by_cause, strict=True):
            metric = metrics.get(f"{name}_of_{cause}")
            if metric is not None and metric.value is not None:
                assert metric.value == pytest.approx(expected)

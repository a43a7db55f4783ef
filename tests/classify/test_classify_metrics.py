"""Metrics of classification against their definitions."""

import numpy as np
import pytest
from scipy.special import log_softmax as scipy_log_softmax

from dcme_w2v.classify.metrics import (
    Measures,
    best_classes,
    best_threshold,
    log_softmax,
    ndcg,
    propensity_gains,
)

RANDOM = np.random.default_rng(3)


def measured(log_p, labels, multilabel=False, threshold=0.5, pieces=1):
    measures = Measures(log_p.shape[1], multilabel, threshold)
    for part in np.array_split(np.arange(len(labels)), pieces):
        measures.add(log_p[part], [labels[i] for i in part])
    return measures.result()


@pytest.mark.parametrize("multilabel, ties", [(False, False), (True, False), (True, True)])
def test_measures_equal_scikit_learns(multilabel, ties):
    """Added in pieces; the last two classes are neither true nor predicted."""
    sklearn = pytest.importorskip("sklearn.metrics")
    log_p = log_softmax(RANDOM.normal(size=(60, 9)) - 9 * (np.arange(9) > 6))
    log_p = log_p.round(1) if ties else log_p
    labels = [list(RANDOM.choice(7, 1 + multilabel * (i % 3), replace=False)) for i in range(60)]
    best, wanted = log_p.argmax(axis=1), np.zeros(log_p.shape, dtype=int)
    for row, own in zip(wanted, labels, strict=True):
        row[own] = 1
    predicted = (log_p >= np.log(0.2)) * int(multilabel)
    predicted[np.arange(60), best] = 1
    found = measured(log_p, labels, multilabel, 0.2, pieces=7)
    for average in ("micro", "macro"):
        figures = sklearn.precision_recall_fscore_support(
            wanted, predicted, labels=range(7), average=average, zero_division=0
        )
        for name, figure in zip(("precision", "recall", "f1"), figures[:3], strict=True):
            assert found[f"{average}_{name}"] == pytest.approx(figure)
    if multilabel:
        expected = {
            "exact_match": sklearn.accuracy_score(wanted, predicted),
            "coverage": sklearn.coverage_error(wanted, log_p),
            "label_ranking_average_precision": sklearn.label_ranking_average_precision_score(
                wanted, log_p
            ),
        }
        if not ties:  # averaged over orders of ties by scikit-learn
            expected["ndcg_at_5"] = sklearn.ndcg_score(wanted, log_p, k=5)
            assert ndcg(log_p, wanted > 0).mean() == pytest.approx(expected["ndcg_at_5"])
    else:
        classes = {"labels": range(9)}
        expected = {
            "accuracy": sklearn.accuracy_score(np.ravel(labels), best),
            "top5_accuracy": sklearn.top_k_accuracy_score(np.ravel(labels), log_p, k=5, **classes),
            "log_likelihood": -sklearn.log_loss(np.ravel(labels), np.exp(log_p), **classes),
        }
    assert {name: found[name] for name in expected} == pytest.approx(expected)


def test_precision_of_the_first_labels():
    log_p = np.log([[0.4, 0.1, 0.3, 0.2], [0.1, 0.2, 0.3, 0.4]])
    found = measured(log_p, [[0, 3], [0]], multilabel=True)
    assert found["precision_at_1"] == 0.5
    assert found["precision_at_3"] == pytest.approx((2 / 3 + 0) / 2)
    assert found["r_precision_at_3"] == 0.5 and "r_precision_at_1" not in found


def test_the_best_threshold_has_the_highest_f1():
    log_p = log_softmax(2 * RANDOM.normal(size=(80, 6)))
    labels = [[int(row.argmax()), int(np.argsort(row)[-2])] for row in log_p]
    best = best_threshold(log_p, labels, np.ones(80))
    figures = {t: measured(log_p, labels, True, t)["micro_f1"] for t in (best, 0.05, 0.2, 0.5)}
    assert max(figures.values()) == pytest.approx(figures[best])


def test_the_most_probable_label_is_part_of_every_threshold():
    log_p = np.log(np.tile([0.5, 0.2, 0.3], (4, 1)))
    log_p[0, 1:] = np.log([0.4, 0.1])  # F1 2/3 of the first label alone, 4/7 of the first five
    assert best_threshold(log_p, [[0, 1], [], [], []], np.ones(4)) == pytest.approx(0.35)


def test_rare_labels_count_more_in_the_propensity_scored_precision():
    counts, documents = [50, 5, 1], 100
    scale = (np.log(documents) - 1) * 2.5**0.55
    gains = 1 + scale * (np.array([50, 5, 1, 0]) + 1.5) ** -0.55
    assert propensity_gains(counts, documents) == pytest.approx(gains)
    measures = Measures(3, True, gains=propensity_gains(counts, documents))
    measures.add(np.log([[0.5, 0.3, 0.2], [0.2, 0.5, 0.3]]), [[0, 2], [2, -1]])
    found = measures.result()
    assert found["propensity_precision_at_1"] == pytest.approx(gains[0] / (gains[2] + gains[3]))
    assert found["propensity_precision_at_3"] == pytest.approx(
        (gains[0] + 2 * gains[2]) / (gains[0] + 2 * gains[2] + gains[3])
    )
    assert (propensity_gains(counts, 1) == 1).all()  # log N below 1


@pytest.mark.parametrize("shape", [(3000, 50), (2, 100_000)])
def test_log_softmax_of_more_numbers_than_are_taken_at_a_time(shape):
    scores = RANDOM.normal(size=shape)
    given = scores.copy()
    found = log_softmax(scores)
    np.testing.assert_allclose(found, scipy_log_softmax(scores, axis=1))
    assert (scores == given).all()


def test_best_classes_are_the_first_of_all_sorted_and_ties_go_to_the_lower_number():
    scores = np.random.default_rng(2).normal(size=(40, 30))
    scores[:, 7] = scores[:, 20] = scores.max(axis=1) + 1
    order = np.argsort(-scores, axis=1, kind="stable")
    for count in (1, 2, 5, 30):
        best, found = best_classes(scores, count)
        assert (best == order[:, :count]).all()
        assert (found == np.take_along_axis(scores, order[:, :count], axis=1)).all()

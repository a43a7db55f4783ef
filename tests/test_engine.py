"""The run engine through its bindings; tests/c/test_resume.c stops and resumes every objective."""

import sys

import numpy as np
import pytest
from scipy.sparse import random as random_matrix

from dcme_w2v.classify.options import ClassifyOptions, resolved
from dcme_w2v.classify.trainer import ClassifierTrainer

DOCUMENTS, FEATURES, CLASSES = 600, 50, 20


def trainer(objective="dcme", **options):
    """A classifier before training; equal each time."""
    rng = np.random.default_rng(1)
    matrix = random_matrix(DOCUMENTS, FEATURES, 0.2, "csr", np.float32, rng)
    labels = np.arange(DOCUMENTS, dtype=np.int32) % CLASSES
    given = ClassifyOptions(objective=objective, threads=1, epochs=2, batch=8, **options)
    wanted = resolved(given, CLASSES)
    return ClassifierTrainer(matrix, np.arange(DOCUMENTS), labels, CLASSES, wanted)


def test_views_of_the_state_keep_the_run_open():
    run = trainer()._core
    before = sys.getrefcount(run)
    views = run.state()
    assert sys.getrefcount(run) > before
    views.clear()
    assert sys.getrefcount(run) == before


def test_a_stop_before_an_epoch_leaves_it_unfinished():
    run = trainer()._core
    run.stop()
    assert not run.epoch(0)
    assert (run.unfinished(), run.progress()["trained"]) == (0, 0)
    with pytest.raises(ValueError, match="not finished"):
        run.epoch(1)
    assert run.epoch(0)
    assert (run.unfinished(), run.progress()["trained"]) == (-1, DOCUMENTS)


def test_rows_that_are_not_finite_are_found_by_their_numbers():
    learning = trainer()
    learning.weights.table[3, 5] = np.inf
    run = learning._core
    assert not run.is_finite(0, FEATURES + 1)
    assert not run.is_finite(3, 4)
    assert run.is_finite(0, 3) and run.is_finite(4, FEATURES + 1)

"""The run engine through its bindings; tests/c/test_resume.c stops and resumes every objective."""

import sys

import numpy as np
from scipy.sparse import random as random_matrix

from dcme_w2v.classify.options import ClassifyOptions, resolved
from dcme_w2v.classify.trainer import ClassifierTrainer

DOCUMENTS, FEATURES, CLASSES = 600, 50, 20


def trainer(objective="dcme", **options):
    """A classifier before training; equal each time."""
    rng = np.random.default_rng(1)
    matrix = random_matrix(DOCUMENTS, FEATURES, 0.2, format="csr", dtype=np.float32, rng=rng)
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

"""The weights of a classifier on disk: round trips, without a second table in memory."""

import sys

import numpy as np
import pytest
from helpers import arrays_in, python

from dcme_w2v.classify import trainer
from dcme_w2v.classify.model import Classifier
from dcme_w2v.classify.options import ClassifyOptions
from dcme_w2v.classify.trainer import Weights
from dcme_w2v.numeric.arrays import drop_pages
from dcme_w2v.training.trainer import new_table


def classifier(density, features=50, classes=37):
    """A classifier whose classes have another order in the core."""
    random = np.random.default_rng(0)
    weights = Weights(features, classes, 0.1, random.permutation(classes))
    table = random.normal(size=(features + 1, classes)) * (random.random(classes) < density)
    weights.set(table.astype(np.float32))
    names = [f"c{i}" for i in range(classes)]
    return Classifier(names, None, ClassifyOptions(), weights=weights), table.astype(np.float32)


@pytest.mark.bits
@pytest.mark.parametrize("rows_at_once", [1, 7, 1000])
@pytest.mark.parametrize("density, files", [
    (0, {"starts", "columns", "values"}),
    (0.3, {"starts", "columns", "values"}),
    (1, None),
])  # fmt: skip
def test_weights_round_trip_in_any_block_size(monkeypatch, density, files, rows_at_once):
    monkeypatch.setattr(trainer, "WEIGHTS_AT_ONCE", 37 * rows_at_once)
    model, table = classifier(density)
    np.testing.assert_array_equal(model.weights.get(), table)
    model.save("model")
    wanted = {f"weights_{one}" for one in files} if files else {"weights"}
    assert arrays_in("model").keys() >= wanted
    np.testing.assert_array_equal(Classifier.load("model").weights.get(), table)
    if files is None:
        assert arrays_in("model")["weights"] == table.tobytes()


MEASURED = """
import resource, sys
import numpy as np
from dcme_w2v.classify.model import Classifier
from dcme_w2v.classify.options import ClassifyOptions
from dcme_w2v.classify.trainer import Weights
import scipy.sparse._csr
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
path, action, share, classes = sys.argv[1], sys.argv[2], float(sys.argv[3]), 2000
before = peak()
if action == "load":
    weights = Classifier.load(path).weights
else:
    random = np.random.default_rng(0)
    weights = Weights(4500, classes, 0.1, random.permutation(classes))
    for row in weights.table:
        row[:classes] = random.random(classes, dtype=np.float32) < share
    names = [f"c{i}" for i in range(classes)]
    Classifier(names, None, ClassifyOptions(), weights=weights).save(path)
print((peak() - before) / weights.table.nbytes)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the unit of ru_maxrss")
@pytest.mark.parametrize("share", [0.4, 1])
def test_saving_and_loading_need_no_second_table(share):
    for action in ("save", "load"):
        done = python("-c", MEASURED, "model", action, share, check=True)
        assert float(done.stdout) < 1.5, action


def test_only_pages_of_files_are_released():
    table = new_table(100, 32)
    table[:] = 3
    drop_pages(table[10:])
    assert (table == 3).all()
    np.save("x.npy", table)
    for mode in ("r", "c"):
        mapped = np.load("x.npy", mmap_mode=mode)
        if mode == "c":
            mapped[:] = 4
        part = np.asarray(mapped[20:])
        drop_pages(part)
        assert (part == (3 if mode == "r" else 4)).all()

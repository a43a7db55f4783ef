"""Equal bits: what docs/reference/promises.md says about results, kind by kind of model."""

import ast
import copy
import json
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from data import DOCS, make_texts, word_vectors
from scipy.sparse import csr_matrix
from threadpoolctl import threadpool_info, threadpool_limits

from dcme_w2v import (
    SCDV,
    FusedFeatures,
    LatentClassModel,
    MaxentClassifier,
    SentenceEncoder,
    TextClassifier,
)
from dcme_w2v.cli.main import run
from dcme_w2v.formats import artifact
from dcme_w2v.numeric.parallel import one_blas_thread

TEXTS = [text.decode() for text in make_texts()]
LABELS = np.arange(len(TEXTS)) % 3


def rows(features=70):
    """Return dense rows, and a label of three for each."""
    found = np.random.default_rng(3).normal(size=(len(TEXTS), features)) + LABELS[:, None] / 4
    return csr_matrix(found.astype(np.float32))


# ---- threads ----

RESULTS = Path(__file__).parent.parent / "results.py"


def digests(blas_threads, threads):
    """Return the digests of results in a process with so many threads of BLAS, and of fits."""
    environment = os.environ | {"OPENBLAS_NUM_THREADS": str(blas_threads)}
    command = [sys.executable, "-W", "ignore", str(RESULTS), str(threads)]
    return json.loads(subprocess.check_output(command, env=environment))


@pytest.mark.bits
def test_results_do_not_depend_on_threads():
    wanted, found = digests(1, 1), digests(2, 3)
    assert len(wanted) > 9
    assert [name for name in wanted if found[name] != wanted[name]] == []


def blas_threads():
    """Return how many threads each library has now."""
    return {one["filepath"]: one["num_threads"] for one in threadpool_info()
            if one["user_api"] == "blas"}  # fmt: skip


def test_the_threads_of_blas_are_restored_by_the_last_user():
    with threadpool_limits(2, "blas"):
        before = blas_threads()
        first, second = one_blas_thread(), one_blas_thread()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert set(blas_threads().values()) == {1}
        second.__exit__(None, None, None)
        assert blas_threads() == before
        assert 2 in before.values()


# ---- what is saved ----


def fused(path):
    """Fit a classifier from few labels."""
    Path("docs.tsv").write_text(DOCS, encoding="utf-8")
    assert run(f"fuse fit docs.tsv --unlabeled docs.tsv --no-choose --output {path}".split()) == 0


SAVED = {
    "words": lambda path: word_vectors().save(path),
    "scdv": lambda path: SCDV(word_vectors(), clusters=3, iterations=3)
    .fit(TEXTS)
    .model_.save(path),
    "latent": lambda path: LatentClassModel(latent=3).fit(rows(), LABELS)._model.save(path),
    "clusters": lambda path: LatentClassModel(latent=3).fit(rows())._model.save(path),
    "texts": lambda path: TextClassifier().fit(TEXTS, LABELS).save(path),
    "fused": fused,
}


@pytest.mark.bits
@pytest.mark.parametrize("kind", SAVED)
def test_arrays_are_saved_as_they_lie_in_memory(kind, monkeypatch):
    """A product has other bits in another layout, and what is read from a file is in C order."""
    seen, write = {}, artifact.tensor_pieces
    monkeypatch.setattr(
        artifact,
        "tensor_pieces",
        lambda arrays, *more: write(seen.setdefault("arrays", arrays), *more),
    )
    SAVED[kind]("model.safetensors")
    arrays = {name: one for name, one in seen["arrays"].items() if isinstance(one, np.ndarray)}
    assert [name for name, one in arrays.items() if not one.flags.c_contiguous] == []
    assert arrays or kind == "words"


# ---- copies ----

COPIED = {
    "MaxentClassifier": (MaxentClassifier, rows(), {}),
    "MaxentClassifier sgd": (MaxentClassifier, rows(), {"solver": "sgd"}),
    "MaxentClassifier ns": (MaxentClassifier, rows(), {"objective": "ns"}),
    "LatentClassModel": (LatentClassModel, rows(), {"lsa": 20, "epochs": 5}),
    "FusedFeatures": (FusedFeatures, abs(rows()), {"rounds": 1}),
    "TextClassifier": (TextClassifier, TEXTS, {}),
    "TextClassifier softmax": (TextClassifier, TEXTS, {"loss": "softmax"}),
    "TextClassifier dcme": (TextClassifier, TEXTS, {"objective": "dcme", "features": 1000}),
    "SCDV": (SCDV, TEXTS, {"vectors": word_vectors(), "clusters": 3}),
    "SentenceEncoder": (SentenceEncoder, TEXTS, {"vectors": word_vectors(), "pooling": "usif"}),
}


@pytest.mark.bits
@pytest.mark.parametrize("kind", COPIED)
@pytest.mark.filterwarnings("ignore::dcme_w2v.errors.DcmeWarning")
def test_copies_give_the_same_bits(kind):
    estimator, X, options = COPIED[kind]
    model = estimator(**options).fit(X, MANY if kind in ORDERED else FEW)
    copies = [pickle.loads(pickle.dumps(model)), copy.deepcopy(model), copy.copy(model)]
    if estimator is TextClassifier:
        model.save("m")
        copies.append(TextClassifier.load("m"))
    for name in ("predict_log_proba", "transform"):
        if hasattr(model, name):
            wanted = getattr(model, name)(X)
            for one in copies:
                assert abs(getattr(one, name)(X) - wanted).max() == 0


# Classes whose columns are ordered by similarity, which takes more than a cache line of them.
ORDERED = ("MaxentClassifier sgd", "TextClassifier dcme")
NAMES = np.array(list("abcdefghijklmnopqrst"))
MANY, FEW = NAMES[np.arange(len(TEXTS)) % 20], NAMES[LABELS]

# ---- the page ----

PROMISES = {
    "a model is saved, and loaded from its file": [
        "test_arrays_are_saved_as_they_lie_in_memory",
        "test_a_saved_model_is_loaded_bit_identically",
        "test_copies_give_the_same_bits",
    ],
    "a Python object is pickled or copied": [
        "test_copies_give_the_same_bits",
        "test_a_pickled_classifier_learns_as_the_original",
    ],
    "a killed training is resumed from its `--checkpoint`": [
        "test_a_signal_saves_and_resume_continues",
        "test_a_stopped_run_resumes_to_the_same_bytes",
    ],
    "`--threads`": [
        "test_results_do_not_depend_on_threads",
        "test_deterministic_is_the_same_for_any_threads",
    ],
    "the number of threads of BLAS (`OPENBLAS_NUM_THREADS`)": [
        "test_results_do_not_depend_on_threads",
    ],
    "the processor, with the same instruction set": ["test_results_do_not_depend_on_threads"],
    "the number of workers of a cluster": [
        "test_any_number_of_workers_writes_the_same_bytes",
        "test_workers_give_the_same_bytes_as_one_process",
    ],
    "the number of queries at a time": ["test_equal_words_are_in_order_of_frequency"],
}


def test_each_row_of_the_page_has_tests():
    root = Path(__file__).parents[2]
    text = (root / "docs" / "reference" / "promises.md").read_text(encoding="utf-8")
    table = text.partition("## Equal results")[2].partition("\n## ")[0]
    assert re.findall(r"^\| (.*?) \|", table, re.MULTILINE)[1:] == [*PROMISES]
    files = (root / "tests").glob("*/test_*.py")
    tests = {
        node.name
        for file in files
        for node in ast.parse(file.read_bytes()).body
        if isinstance(node, ast.FunctionDef)
        and "pytest.mark.bits" in map(ast.unparse, node.decorator_list)  # run by `make test-bits`
    }
    assert {name for names in PROMISES.values() for name in names} - tests == set()

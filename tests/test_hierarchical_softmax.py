"""Hierarchical softmax: flags, unsupported options and odd vocabularies.

Its steps and tree are compared with a reference in `test_objectives`.
"""

import numpy as np
import pytest
from helpers import manifest, write_corpus

import dcme_w2v as dw

QUICK = {"dim": 6, "epochs": 1, "min_count": 1, "threads": 1, "sample": 0.0}


@pytest.fixture
def corpus(here):
    return write_corpus(here / "corpus.txt")


@pytest.mark.parametrize("negative", ["", "-negative 0"])
def test_the_flag_of_word2vec(corpus, negative, cli):
    cli(f"train -train {corpus} -output v.bin -hs 1 -size 8 -iter 1 -threads 1 {negative}")
    assert "warning" not in cli.err
    options = manifest("v.bin")["options"]
    assert (options["objective"], options["negative"], options["vectors"]) == ("hs", 0, "input")


def test_starts_from_the_input_vectors_of_another_objective(corpus):
    """At a rate near 0, vectors and the zeros of the nodes do not change, so the loss of a path is
    its length: context vectors were not used as vectors of nodes."""
    slow = QUICK | {"objective": "hs", "lr": 1e-5}
    first = QUICK | {"epochs": 5, "lr": 0.5, "vectors": "input"}
    found = dw.train(corpus, **first, output_tables="tables")
    started, fresh = dw.train(corpus, **slow, init="tables"), dw.train(corpus, **slow)
    np.testing.assert_allclose(started.vectors, found.vectors, atol=1e-4)
    assert started.context is None
    assert started.manifest["loss"] == pytest.approx(fresh.manifest["loss"], rel=0.003)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("words, objective", [(1, "hs"), (2, "hs"), (3, "hs"), (1, "ns")])
def test_vocabularies_of_few_words(words, objective, threads):
    lines = [[f"w{i % words}", f"w{(i + 1) % words}"] for i in range(50)]
    found = dw.train(lines, **QUICK | {"threads": threads}, objective=objective)
    assert len(found) == words and np.isfinite(found.vectors).all()

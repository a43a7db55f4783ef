"""Hierarchical softmax: flags, unsupported options and odd vocabularies.

Its steps and tree are compared with a reference in `test_objectives`.
"""

import numpy as np
import pytest
from helpers import manifest, write_corpus

import dcme_w2v as dw
from dcme_w2v.cli.main import run

QUICK = {"dim": 6, "epochs": 1, "min_count": 1, "threads": 1, "sample": 0.0}


@pytest.fixture
def corpus(tmp_path):
    return write_corpus(tmp_path / "corpus.txt")


@pytest.mark.parametrize("negative", [[], ["-negative", "0"]])
def test_the_flag_of_word2vec(tmp_path, corpus, negative, capsys):
    output = tmp_path / "v.bin"
    line = f"-train {corpus} -output {output} -hs 1 -size 8 -iter 1 -threads 1".split()
    assert run(["train", *line, *negative]) == 0
    assert "warning" not in capsys.readouterr().err
    options = manifest(output)["options"]
    assert (options["objective"], options["negative"], options["vectors"]) == ("hs", 0, "input")


def test_starts_from_the_input_vectors_of_another_objective(tmp_path, corpus):
    """At a rate near 0, vectors and the zeros of the nodes do not change, so the loss of a path is
    its length: context vectors were not used as vectors of nodes."""
    tables, slow = tmp_path / "tables", QUICK | {"objective": "hs", "lr": 1e-5}
    first = QUICK | {"epochs": 5, "lr": 0.5, "vectors": "input"}
    found = dw.train(corpus, **first, output_tables=tables)
    started = dw.train(corpus, **slow, init=tables)
    np.testing.assert_allclose(started.vectors, found.vectors, atol=1e-4)
    assert started.context is None
    fresh = dw.train(corpus, **slow)
    assert started.manifest["loss"] == pytest.approx(fresh.manifest["loss"], rel=0.003)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("words", [1, 2, 3])
def test_vocabularies_of_few_words(words, threads):
    lines = [[f"w{i % words}", f"w{(i + 1) % words}"] for i in range(50)]
    found = dw.train(lines, **QUICK | {"threads": threads}, objective="hs")
    assert len(found) == words and np.isfinite(found.vectors).all()


def test_counts_that_make_a_deep_tree():
    """Fibonacci numbers: every path is one node longer than that of the next word."""
    counts = [1, 1]
    while len(counts) < 18:
        counts.append(counts[-1] + counts[-2])
    tokens = [f"w{i}" for i, count in enumerate(counts) for _ in range(count)]
    order = np.random.default_rng(1).permutation(len(tokens))
    lines = [[tokens[i] for i in part] for part in np.array_split(order, 200)]
    options = QUICK | {"epochs": 3, "threads": 2}
    losses = dw.train(lines, **options, objective="hs").manifest["loss"]
    shares = np.array(counts) / sum(counts)
    entropy = -(shares * np.log(shares)).sum()
    assert losses == pytest.approx(entropy, rel=0.2)

"""`dcme-w2v merge`: merges models of parts of a corpus; errors name the difference."""

from pathlib import Path

import numpy as np
import pytest
from helpers import write_corpus
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_matrix, save_npz

import dcme_w2v as dw
from dcme_w2v.classify.model import Classifier
from dcme_w2v.words.tables import load_tables

FLAGS = "--dim 6 --epochs 1 --sample 0 --threads 1 --quiet --read-vocab voc"

BOTH = "merge one two --output both"


@pytest.fixture
def parts(here, cli):
    """Two models of different parts of a corpus, one vocabulary; the second part lacks a word."""
    for name, seed, lines in (("one.txt", 1, 300), ("two.txt", 2, 60)):
        write_corpus(here / name, lines, seed)
    text = Path("two.txt").read_text()
    Path("two.txt").write_text(text.replace("fish7 ", ""))
    cli("vocab one.txt two.txt --output voc --min-count 3")
    for name in ("one", "two"):
        cli(f"train {name}.txt --output {name}.npy --output-tables {name} {FLAGS}")


def test_rows_are_weighted_by_the_counts_of_each_part(parts, cli):
    cli(BOTH)
    one, two, both = load_tables("one"), load_tables("two"), load_tables("both")
    assert (one.corpus_counts != one.vocabulary.counts).any()
    assert_array_equal(both.vocabulary.counts, one.vocabulary.counts)
    assert_array_equal(both.corpus_counts, one.corpus_counts + two.corpus_counts)
    for row, shares in enumerate(zip(one.corpus_counts, two.corpus_counts, strict=True)):
        wanted = np.average([one.input[row], two.input[row]], axis=0, weights=shares)
        assert_allclose(both.input[row], wanted, rtol=1e-5, atol=1e-7)
    lacked = list(both.vocabulary).index("fish7")
    assert two.corpus_counts[lacked] == 0 and two.input[lacked].any()
    assert_array_equal(both.output[lacked], one.output[lacked])


def test_a_tree_of_merges_equals_one_merge(parts, cli):
    cli(f"train one.txt two.txt --output o --output-tables three {FLAGS}")
    cli(BOTH)
    cli("merge both three --output tree")
    cli("merge one two three --output flat")
    tree, flat = load_tables("tree"), load_tables("flat")
    assert_array_equal(tree.corpus_counts, flat.corpus_counts)
    assert_allclose(tree.input, flat.input, rtol=1e-4, atol=1e-6)


def test_vectors_with_counts_are_merged(parts, cli):
    one, two = dw.Vectors.load("one.npy"), dw.Vectors.load("two.npy")
    counts = 3 * np.asarray(one.counts)
    dw.Vectors(two.words, two.vectors, counts, manifest=two.manifest).save("more.npy")
    cli("merge one.npy more.npy --output both.npy")
    both = dw.Vectors.load("both.npy")
    assert_allclose(both.vectors, (one.vectors + 3 * two.vectors) / 4, atol=1e-6)
    assert_array_equal(both.counts, one.counts + counts)


def test_differences_between_models_are_named(parts, cli):
    cli("vocab one.txt --output one.voc --min-count 4")
    line = f"train two.txt --output o --output-tables other {FLAGS}"
    for message, flags in {
        "has other words than one": "--read-vocab one.voc",
        "has 7 dimensions and one has 6": "--dim 7",
        "has --window 3 and one 5": "--window 3",
        "has --seed 2 and one 1": "--seed 2",
    }.items():
        cli(f"{line} {flags}")
        assert f"other: {message}" in cli.error("merge one other --output both")
    cli(f"{line} --threads 2")
    cli("merge one other --output both")


def test_invalid_input_is_one_line_of_error(parts, cli):
    Path("empty").mkdir()
    cli("convert one.npy one.bin")
    np.save("two/corpus_counts.npy", np.full(len(load_tables("two").input), -1))
    for line, message in (
        ("one --output both", "at least two"),
        ("one two.npy --output both", "of one kind"),
        ("one empty --output both", "is not a model"),
        ("one.npy one.bin --output both.npy", "one.bin: has no counts; give .npy files"),
        ("one.npy nothing --output both.npy", "nothing"),
        ("one two --output both", "a count is negative"),
    ):
        assert message in cli.error(f"merge {line}")
    assert not Path("both").exists() and not Path("both.npy").exists()


@pytest.fixture
def classifier(here, cli):
    def learn(name, rows, labels, flags=""):
        save_npz(f"{name}.npz", csr_matrix(np.asarray(rows, dtype=np.float32)))
        Path(f"{name}.y").write_text("\n".join(labels) + "\n")
        train = f"classify train {name}.npz --labels {name}.y --output {name}"
        cli(f"{train} --quiet --threads 1 --loss softmax {flags}")

    return learn


def test_classifiers_are_weighted_by_documents(classifier, cli):
    random = np.random.default_rng(1)
    first, second = random.uniform(0.5, 1, (30, 5)), random.uniform(0.5, 1, (10, 5))
    first[:, 3], second[:, 4] = 0, 0  # a feature that one part lacks
    classifier("one", first, "xyz" * 10)
    classifier("two", second, "xyzzx" * 2)
    cli(BOTH)
    one, two, both = (Classifier.load(name).weights.get() for name in ("one", "two", "both"))
    assert_allclose(both[[0, 5]], (3 * one + two)[[0, 5]] / 4, rtol=1e-5)
    assert_array_equal(both[3], two[3])
    assert_array_equal(both[4], one[4])
    assert Classifier.load("both").counts.tolist() == [40, 40, 40, 10, 30, 40]
    for message, *changes in (
        ("three: has other classes than one", first, "xyw" * 10),
        ("has 4 features and one has 5", first[:, :4], "xyz" * 10),
        ("has --epochs 3 and one", first, "xyz" * 10, "--epochs 3"),
        ("three: is of low rank", first, "xyz" * 10, "--rank 2"),
    ):
        classifier("three", *changes)
        assert message in cli.error("merge one three --output both")


def test_classifiers_of_text_need_the_same_features(here, cli):
    for name, word in (("one", "aa"), ("two", "bb")):
        text = "".join(f"{label}\t{label}{label} {word}\n" for label in "xyxyxy")
        Path(f"{name}.tsv").write_text(text)
        line = f"classify train {name}.tsv --quiet --threads 1 --output {name}"
        cli(line)
        cli(f"{line}hash --hashing 64 --weighting log")
    assert "two: has other features than one" in cli.error(BOTH)
    cli("merge onehash twohash --output both")
    cli("classify test both one.tsv")

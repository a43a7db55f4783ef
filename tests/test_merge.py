"""`dcme-w2v merge`: merges models of parts of a corpus; errors name the difference."""

import json
from pathlib import Path

import numpy as np
import pytest
from helpers import refused, write_corpus
from scipy.sparse import csr_matrix, save_npz

import dcme_w2v as dw
from dcme_w2v.classify.model import Classifier
from dcme_w2v.cli.main import run
from dcme_w2v.words.tables import load_tables

FLAGS = "--dim 6 --epochs 1 --sample 0 --threads 1 --quiet --read-vocab voc"


@pytest.fixture
def parts(tmp_path, monkeypatch):
    """Two models of different parts of a corpus, one vocabulary; the second part lacks a word."""
    monkeypatch.chdir(tmp_path)
    for name, seed, lines in (("one.txt", 1, 300), ("two.txt", 2, 60)):
        write_corpus(tmp_path / name, lines, seed)
    text = (tmp_path / "two.txt").read_text()
    (tmp_path / "two.txt").write_text(text.replace("fish7 ", ""))
    assert run(["vocab", "one.txt", "two.txt", "--output", "voc", "--min-count", "3"]) == 0
    for name in ("one", "two"):
        line = f"train {name}.txt --output {name}.npy --output-tables {name} {FLAGS}"
        assert run(line.split()) == 0
    return tmp_path


def merged(*sources, output="both"):
    return run(["merge", *map(str, sources), "--output", output])


def error_of(capsys, *sources, code=2, output="both"):
    capsys.readouterr()
    assert merged(*sources, output=output) == code
    return refused(capsys, code)


def test_rows_are_weighted_by_the_counts_of_each_part(parts):
    assert merged("one", "two") == 0
    one, two, both = load_tables("one"), load_tables("two"), load_tables("both")
    assert (one.corpus_counts != one.vocabulary.counts).any()
    np.testing.assert_array_equal(both.vocabulary.counts, one.vocabulary.counts)
    np.testing.assert_array_equal(both.corpus_counts, one.corpus_counts + two.corpus_counts)
    weights = [one.corpus_counts, two.corpus_counts]
    for row in range(len(both.vocabulary)):
        shares = [counts[row] for counts in weights]
        wanted = np.average([one.input[row], two.input[row]], axis=0, weights=shares)
        np.testing.assert_allclose(both.input[row], wanted, rtol=1e-5, atol=1e-7)
    lacked = list(both.vocabulary).index("fish7")
    assert two.corpus_counts[lacked] == 0 and two.input[lacked].any()
    np.testing.assert_array_equal(both.output[lacked], one.output[lacked])


def test_a_tree_of_merges_equals_one_merge(parts):
    line = f"train one.txt two.txt --output o --output-tables three {FLAGS}"
    assert run(line.split()) == 0
    assert merged("one", "two") == merged("both", "three", output="tree") == 0
    assert merged("one", "two", "three", output="flat") == 0
    tree, flat = load_tables("tree"), load_tables("flat")
    np.testing.assert_array_equal(tree.corpus_counts, flat.corpus_counts)
    np.testing.assert_allclose(tree.input, flat.input, rtol=1e-4, atol=1e-6)


def test_vectors_with_counts_are_merged(parts):
    for name in ("one", "two"):
        line = f"train {name}.txt --output own-{name}.npy --save-vocab {name}.voc {FLAGS}"
        assert run(line.split()) == 0
    own = dw.Vectors.load("own-two.npy")
    counts = np.asarray(own.counts) * 3
    dw.Vectors(own.words, own.vectors, counts, manifest=own.manifest).save("own-two.npy")
    assert merged("own-one.npy", "own-two.npy", output="both.npy") == 0
    one, both = dw.Vectors.load("own-one.npy"), dw.Vectors.load("both.npy")
    np.testing.assert_allclose(both.vectors, (one.vectors + 3 * own.vectors) / 4, atol=1e-6)
    np.testing.assert_array_equal(both.counts, 4 * np.asarray(one.counts))


def test_differences_between_models_are_named(parts, capsys):
    others = {
        "has other words than one": "--read-vocab one.voc",
        "has 7 dimensions and one has 6": "--dim 7",
        "has --window 3 and one 5": "--window 3",
        "has --seed 2 and one 1": "--seed 2",
    }
    assert run(["vocab", "one.txt", "--output", "one.voc", "--min-count", "4"]) == 0
    for message, flags in others.items():
        line = f"train two.txt --output o --output-tables other {FLAGS} {flags}"
        assert run(line.split()) == 0
        assert f"other: {message}" in error_of(capsys, "one", "other")
    line = f"train two.txt --output o --output-tables other {FLAGS} --threads 2"
    assert run(line.split()) == 0
    assert merged("one", "other") == 0


def test_invalid_input_is_one_line_of_error(parts, capsys):
    assert "at least two" in error_of(capsys, "one")
    assert "of one kind" in error_of(capsys, "one", "two.npy")
    (parts / "empty").mkdir()
    assert "is not a model" in error_of(capsys, "one", "empty", code=1)
    assert run(["convert", "one.npy", "one.bin"]) == 0
    err = error_of(capsys, "one.npy", "one.bin", code=1, output="both.npy")
    assert "one.bin: has no counts; give .npy files" in err
    assert "nothing" in error_of(capsys, "one.npy", "nothing", code=1, output="both.npy")
    assert not (parts / "both").exists() and not (parts / "both.npy").exists()
    head = json.loads((parts / "two" / "model.json").read_text())
    np.save(parts / "two" / "corpus_counts.npy", np.full(len(load_tables("two").input), -1))
    assert head and "a count is negative" in error_of(capsys, "one", "two", code=1)


def classifier(name, rows, labels, *flags):
    save_npz(f"{name}.npz", csr_matrix(np.asarray(rows, dtype=np.float32)))
    Path(f"{name}.labels").write_text("\n".join(labels) + "\n")
    line = f"classify train {name}.npz --labels {name}.labels --output {name} --quiet --threads 1"
    assert run([*line.split(), *flags]) == 0


def test_classifiers_are_weighted_by_documents(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(1)
    first, second = random.uniform(0.5, 1, (30, 5)), random.uniform(0.5, 1, (10, 5))
    first[:, 3], second[:, 4] = 0, 0  # a feature that one part lacks
    classifier("one", first, ["x", "y", "z"] * 10)
    classifier("two", second, ["x", "y", "z", "z", "x"] * 2)
    assert merged("one", "two") == 0
    one, two, both = (Classifier.load(name).weights.get() for name in ("one", "two", "both"))
    np.testing.assert_allclose(both[0], (3 * one[0] + two[0]) / 4, rtol=1e-5)
    np.testing.assert_allclose(both[5], (3 * one[5] + two[5]) / 4, rtol=1e-5)
    np.testing.assert_array_equal(both[3], two[3])
    np.testing.assert_array_equal(both[4], one[4])
    assert Classifier.load("both").counts.tolist() == [40, 40, 40, 10, 30, 40]
    classifier("three", first, ["x", "y", "w"] * 10)
    assert "three: has other classes than one" in error_of(capsys, "one", "three")
    classifier("three", first[:, :4], ["x", "y", "z"] * 10)
    assert "has 4 features and one has 5" in error_of(capsys, "one", "three")
    classifier("three", first, ["x", "y", "z"] * 10, "--epochs", "3")
    assert "has --epochs 3 and one" in error_of(capsys, "one", "three")
    classifier("three", first, ["x", "y", "z"] * 10, "--rank", "2")
    assert "three: is of low rank" in error_of(capsys, "one", "three")


def test_classifiers_of_text_need_the_same_features(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name, word in (("one", "aa"), ("two", "bb")):
        text = "".join(f"{label}\t{label}{label} {word}\n" for label in "xyxyxy")
        Path(f"{name}.tsv").write_text(text)
        for flags in ("", " --hashing 64 --weighting log"):
            line = f"classify train {name}.tsv --output {name}{flags[3:7]} --quiet --threads 1"
            assert run((line + flags).split()) == 0
    assert "two: has other features than one" in error_of(capsys, "one", "two")
    assert merged("onehash", "twohash") == 0
    assert run(["classify", "test", "both", "one.tsv"]) == 0

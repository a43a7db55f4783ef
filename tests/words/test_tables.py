"""Vectors that are written: input, context, their sum, or the sum at unit length."""

import pytest
from helpers import manifest, unit_rows
from numpy.testing import assert_allclose, assert_array_equal

import dcme_w2v as dw
from dcme_w2v.words.options import TrainOptions, vectors_of

LINES = [f"w{i % 7} w{i % 5} w{i % 3} w{i % 11}" for i in range(200)]
OPTIONS = {"dim": 6, "epochs": 1, "min_count": 1, "threads": 1}
CBOW, SKIPGRAM = TrainOptions(model="cbow"), TrainOptions(model="skipgram")
KINDS = ("sum", "input", "context", "unit-sum")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A corpus, and the two tables of a run on it."""
    corpus = tmp_path_factory.mktemp("tables") / "c.txt"
    corpus.write_text("\n".join(LINES) + "\n")
    made = dw.train(corpus, **OPTIONS, output_vectors="input")
    return corpus, made.vectors, made.context.vectors


def expected(input, output, kind):
    return {
        "input": input,
        "context": output,
        "sum": input + output,
        "unit-sum": unit_rows(input) + unit_rows(output),
    }[kind]


@pytest.mark.bits
@pytest.mark.parametrize("kind", KINDS)
def test_the_file_and_python_have_the_same_vectors(files, kind):
    corpus, input, output = files
    vectors = dw.train(corpus, **OPTIONS, output_vectors=kind, output="v.safetensors")
    wanted = expected(input, output, kind)
    assert_allclose(dw.Vectors.load("v.safetensors").vectors, wanted, rtol=1e-6, atol=1e-7)
    assert_array_equal(vectors.vectors, dw.Vectors.load("v.safetensors").vectors)
    assert_array_equal(vectors.context.vectors, output)
    assert manifest("v.safetensors")["options"]["output_vectors"] == kind


def test_the_default_is_the_sum_for_cbow():
    assert vectors_of(CBOW) == "sum"
    assert vectors_of(TrainOptions(objective="hs")) == vectors_of(SKIPGRAM) == "input"


@pytest.mark.parametrize("kind", KINDS)
def test_likelihood_uses_both_tables_of_any_vectors(files, kind):
    corpus, *_ = files
    made = dw.train(corpus, **OPTIONS, output_vectors=kind)
    if kind in ("context", "unit-sum"):
        with pytest.raises(dw.errors.UsageError, match=f"vectors={kind}"):
            dw.eval_likelihood(made, corpus)
        return
    expected = dw.eval_likelihood(dw.train(corpus, **OPTIONS, output_vectors="input"), corpus)
    assert dw.eval_likelihood(made, corpus) == pytest.approx(expected, rel=1e-5)


@pytest.fixture(scope="module")
def folder(files, tmp_path_factory):
    path = tmp_path_factory.mktemp("folder") / "tables"
    dw.train(files[0], **OPTIONS, output_tables=path)
    return path


def test_a_folder_has_both_tables(files, folder):
    _, input, output = files
    found = dw.Vectors.load(folder)
    assert_array_equal(found.vectors, input)
    assert_array_equal(found.context.vectors, output)
    assert found.counts.sum() == 800 and found.manifest["options"]["dim"] == 6
    assert len(dw.Vectors.load(folder, limit=3)) == 3


UNCHANGED = {**OPTIONS, "lr": 1e-12, "output_vectors": "input"}


@pytest.mark.parametrize("start", ["file", "input", "sum"])
def test_training_continues_from_both_tables(files, folder, start):
    """From a file, and from objects."""
    corpus, input, output = files
    init = folder if start == "file" else dw.train(corpus, **OPTIONS, output_vectors=start)
    v = dw.train(corpus, **UNCHANGED, init=init)
    assert_allclose(v.vectors, input, atol=1e-6)
    assert_allclose(v.context.vectors, output, atol=1e-6)

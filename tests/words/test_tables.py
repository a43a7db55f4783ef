"""Vectors that are written: input, context, their sum, or the sum at unit length."""

import json
from pathlib import Path

import numpy as np
import pytest
from helpers import manifest, unit_rows
from numpy.testing import assert_allclose, assert_array_equal

import dcme_w2v as dw
from dcme_w2v.words.defaults import vectors_of
from dcme_w2v.words.options import TrainOptions

LINES = [f"w{i % 7} w{i % 5} w{i % 3} w{i % 11}" for i in range(200)]
OPTIONS = {"dim": 6, "epochs": 1, "min_count": 1, "threads": 1}
CBOW, SKIPGRAM = TrainOptions(model="cbow"), TrainOptions(model="skipgram")
KINDS = ("sum", "input", "context", "unit-sum")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A corpus, and the two tables of a run on it."""
    folder = tmp_path_factory.mktemp("tables")
    corpus = folder / "c.txt"
    corpus.write_text("\n".join(LINES) + "\n")
    tables = {"output": folder / "in.safetensors", "output_context": folder / "out.safetensors"}
    dw.train(corpus, **OPTIONS, **tables, vectors="input")
    return corpus, *(dw.Vectors.load(path).vectors for path in tables.values())


def expected(input, output, kind):
    return {
        "input": input,
        "context": output,
        "sum": input + output,
        "unit-sum": unit_rows(input) + unit_rows(output),
    }[kind]


@pytest.mark.parametrize("kind", KINDS)
def test_the_file_and_python_have_the_same_vectors(files, here, kind):
    corpus, input, output = files
    vectors = dw.train(corpus, **OPTIONS, vectors=kind, output="v.safetensors")
    wanted = expected(input, output, kind)
    assert_allclose(dw.Vectors.load("v.safetensors").vectors, wanted, rtol=1e-6, atol=1e-7)
    assert_array_equal(vectors.vectors, dw.Vectors.load("v.safetensors").vectors)
    assert_array_equal(vectors.context.vectors, output)
    assert manifest("v.safetensors")["options"]["vectors"] == kind


def test_the_default_is_the_sum_for_cbow_without_a_file_of_context_vectors():
    assert vectors_of(None, CBOW, None) == "sum"
    assert vectors_of(None, TrainOptions(objective="hs"), None) == "input"
    assert vectors_of(None, SKIPGRAM, None) == "input"
    assert vectors_of(None, CBOW, "context.safetensors") == "input"
    assert vectors_of("unit-sum", SKIPGRAM, "context.safetensors") == "unit-sum"


def test_likelihood_uses_both_tables_for_any_output(files, here, cli):
    corpus, *_ = files
    found = {}
    for kind in KINDS:
        dw.train(corpus, **OPTIONS, vectors=kind, output="v.bin", output_context="c.bin")
        code = cli.run(f"eval likelihood v.bin {corpus} --json")
        found[kind] = json.loads(cli.out)["log_probability"] if code == 0 else cli.err
    assert found["sum"] == pytest.approx(found["input"], rel=1e-5)
    for kind in ("context", "unit-sum"):
        assert f"--vectors {kind}" in found[kind] and found[kind].count("\n") == 1


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


UNCHANGED = {**OPTIONS, "lr": 1e-12, "vectors": "input"}


@pytest.mark.parametrize("start", ["folder", "input", "sum", "object"])
def test_training_continues_from_both_tables(files, folder, here, start):
    """From a folder, two files of either kind, and an object."""
    corpus, input, output = files
    init = {"init": folder}
    if start == "object":
        init = {"init": dw.train(corpus, **OPTIONS)}
    elif start != "folder":
        init = {"init": "v.bin", "init_context": "c.bin"}
        dw.train(corpus, **OPTIONS, vectors=start, output="v.bin", output_context="c.bin")
    v = dw.train(corpus, **UNCHANGED, **init)
    assert_allclose(v.vectors, input, atol=1e-6)
    assert_allclose(v.context.vectors, output, atol=1e-6)


def test_invalid_initial_vectors_are_one_line_of_error(files, folder, here):
    corpus, *_ = files
    other = dw.Vectors(["w0", "w1"], np.ones((2, 5), dtype=np.float32))
    Path("empty").mkdir()
    for init, message in (
        ({"init_context": folder}, r"init_context=.*: requires init"),
        ({"init": folder, "init_context": other}, "init_context: has 5 dimensions and dim is 6"),
        ({"init": "empty"}, "is a folder without static embeddings"),
    ):
        with pytest.raises(ValueError, match=message):
            dw.train(corpus, **OPTIONS, **init)

"""Vectors that are written: input, context, their sum, or the sum at unit length."""

import json

import numpy as np
import pytest

import dcme_w2v as dw
from dcme_w2v.cli.main import run
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
    tables = {"output": folder / "in.npy", "output_context": folder / "out.npy"}
    dw.train(corpus, **OPTIONS, **tables, vectors="input")
    return corpus, *(np.load(path) for path in tables.values())


def expected(input, output, kind):
    lengths = [np.linalg.norm(rows, axis=1, keepdims=True) for rows in (input, output)]
    return {
        "input": input,
        "context": output,
        "sum": input + output,
        "unit-sum": input / lengths[0] + output / lengths[1],
    }[kind]


@pytest.mark.parametrize("kind", KINDS)
def test_the_file_and_python_have_the_same_vectors(files, tmp_path, kind):
    corpus, input, output = files
    vectors = dw.train(corpus, **OPTIONS, vectors=kind, output=tmp_path / "v.npy")
    wanted = expected(input, output, kind)
    np.testing.assert_allclose(np.load(tmp_path / "v.npy"), wanted, rtol=1e-6, atol=1e-7)
    np.testing.assert_array_equal(vectors.vectors, np.load(tmp_path / "v.npy"))
    np.testing.assert_array_equal(vectors.context.vectors, output)
    assert json.loads((tmp_path / "v.npy.json").read_text())["options"]["vectors"] == kind


def test_the_default_is_the_sum_for_cbow_without_a_file_of_context_vectors():
    assert vectors_of(None, CBOW, None) == "sum"
    assert vectors_of(None, TrainOptions(objective="hs"), None) == "input"
    assert vectors_of(None, SKIPGRAM, None) == "input"
    assert vectors_of(None, CBOW, "context.npy") == "input"
    assert vectors_of("unit-sum", SKIPGRAM, "context.npy") == "unit-sum"


def test_likelihood_uses_both_tables_for_any_output(files, tmp_path, capsys):
    corpus, *_ = files
    found = {}
    for kind in KINDS:
        paths = [str(tmp_path / name) for name in (f"{kind}.npy", f"{kind}-context.npy")]
        dw.train(corpus, **OPTIONS, vectors=kind, output=paths[0], output_context=paths[1])
        code = run(["eval", "likelihood", paths[0], str(corpus), "--json"])
        said = capsys.readouterr()
        found[kind] = json.loads(said.out)["log_probability"] if code == 0 else said.err
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
    np.testing.assert_array_equal(found.vectors, input)
    np.testing.assert_array_equal(found.context.vectors, output)
    assert found.counts.sum() == 800 and found.manifest["options"]["dim"] == 6
    assert len(dw.Vectors.load(folder, limit=3)) == 3


UNCHANGED = {**OPTIONS, "lr": 1e-12, "vectors": "input"}


def starts(files, folder, tmp_path):
    """Inputs of --init, by name: all have both tables of one run."""
    corpus, *_ = files
    paths = {}
    for kind in ("input", "sum"):
        paths[kind] = tmp_path / f"{kind}.npy", tmp_path / f"{kind}-context.npy"
        files_of_run = dict(zip(("output", "output_context"), paths[kind], strict=True))
        dw.train(corpus, **OPTIONS, vectors=kind, **files_of_run)
    return {
        "folder": {"init": folder},
        "two files": {"init": paths["input"][0], "init_context": paths["input"][1]},
        "sum and context": {"init": paths["sum"][0], "init_context": paths["sum"][1]},
        "object": {"init": dw.train(corpus, **OPTIONS)},
    }


@pytest.mark.filterwarnings("ignore:lr=1e-12 is unusual")
def test_training_continues_from_both_tables(files, folder, tmp_path):
    corpus, input, output = files
    for name, start in starts(files, folder, tmp_path).items():
        v = dw.train(corpus, **UNCHANGED, **start)
        np.testing.assert_allclose(v.vectors, input, atol=1e-6, err_msg=name)
        np.testing.assert_allclose(v.context.vectors, output, atol=1e-6, err_msg=name)


def test_invalid_initial_vectors_are_one_line_of_error(files, folder, tmp_path):
    corpus, *_ = files
    with pytest.raises(ValueError, match=r"init_context=.*: requires init"):
        dw.train(corpus, **OPTIONS, init_context=folder)
    other = dw.Vectors(["w0", "w1"], np.ones((2, 5), dtype=np.float32))
    with pytest.raises(ValueError, match="init_context: has 5 dimensions and dim is 6"):
        dw.train(corpus, **OPTIONS, init=folder, init_context=other)
    (folder / "model.json").rename(tmp_path / "aside")
    with pytest.raises(ValueError, match="is not a model"):
        dw.train(corpus, **OPTIONS, init=folder)
    (tmp_path / "aside").rename(folder / "model.json")

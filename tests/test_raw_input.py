"""Raw text: one tokenizer in training and in every later command on text."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

import dcme_w2v as dw
from dcme_w2v.cli.main import program
from dcme_w2v.errors import CorpusError, UsageError
from dcme_w2v.options import TokenizerOptions, VocabularyOptions
from dcme_w2v.text.encode import count

RAW = 'The King, of England; met the Queen! Café\n"Kings and Queens" of the sea, the king said.\n'
PREPARED = "the king of england met the queen café\nkings and queens of the sea the king said\n"
SMALL = {"dim": 4, "epochs": 1, "min_count": 1, "threads": 1}


def run(*arguments, input=None):
    return CliRunner().invoke(program, [str(one) for one in arguments], input=input)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("raw")
    (folder / "raw.txt").write_text(RAW * 30, encoding="utf-8")
    (folder / "prepared.txt").write_text(PREPARED * 30, encoding="utf-8")
    corpus = str(folder / "raw.txt")
    dw.train(corpus, tokenize="words", output=str(folder / "v.npy"), **SMALL)
    return folder


@pytest.mark.parametrize("block_bytes", [64, 1 << 20])
def test_raw_text_is_encoded_as_prepared_text(trained, block_bytes):
    rule = VocabularyOptions(min_count=1, tokenize="words")
    raw = count([str(trained / "raw.txt")], rule, threads=2, _block_bytes=block_bytes)
    same = count([str(trained / "prepared.txt")], VocabularyOptions(min_count=1))
    assert list(raw.vocabulary) == list(same.vocabulary)
    assert raw.vocabulary.counts.tolist() == same.vocabulary.counts.tolist()


def test_vectors_of_raw_text_are_those_of_prepared_text_and_keep_the_rule(trained):
    same = dw.train(str(trained / "prepared.txt"), **SMALL)
    loaded = dw.Vectors.load(trained / "v.npy")
    np.testing.assert_array_equal(loaded.vectors, same.vectors)
    assert same.tokenizer.is_whitespace
    assert loaded.tokenizer.options == TokenizerOptions(tokenize="words")
    assert "King" in loaded and loaded.index("KING!") == loaded.index("king")
    assert "King Queen" not in loaded
    assert "king" not in [word for word, _ in loaded.most_similar("King", topn=20)]
    assert loaded[:5].tokenizer.options == loaded.tokenizer.options


@pytest.mark.parametrize("name", ["v.bin", "v.txt", "other.npy"])
def test_converted_vectors_keep_the_rule(trained, tmp_path, name):
    assert run("convert", trained / "v.npy", tmp_path / name, "--reduce", 2).exit_code == 0
    assert dw.Vectors.load(tmp_path / name).tokenizer.options.tokenize == "words"


@pytest.mark.parametrize(
    ("text", "errors", "message"),
    [
        (b"A, b\nC \xff d\n", "strict", r"byte 7 \(line 2\) is not UTF-8"),
        (b"A, b\nC \x00 d\n", "replace", r"byte 7 \(line 2\) is NUL"),
        (b"A, b\nC \x00 d\n", "strict", r"byte 7 \(line 2\) is NUL"),
        (b"., !\n", "strict", "no tokens"),
    ],
)
def test_errors_name_the_position_in_the_raw_text(tmp_path, text, errors, message):
    path = tmp_path / "raw.txt"
    path.write_bytes(text)
    options = VocabularyOptions(min_count=1, tokenize="words", encoding_errors=errors)
    with pytest.raises(CorpusError, match=message):
        count([str(path)], options)


def test_a_run_does_not_resume_with_another_rule(trained, tmp_path):
    corpus, folder = str(trained / "raw.txt"), str(tmp_path / "state")
    dw.train(corpus, tokenize="words", checkpoint=folder, checkpoint_every="1", **SMALL)
    with pytest.raises(UsageError, match="tokenize"):
        dw.train(corpus, resume=folder, **SMALL)


def test_likelihoods_and_predictions_use_the_rule_of_the_vectors(trained, tmp_path):
    v = dw.train(str(trained / "raw.txt"), tokenize="words", objective="dcme", **SMALL)
    raw, prepared = (str(trained / f"{name}.txt") for name in ("raw", "prepared"))
    tables = str(tmp_path / "tables")
    dw.train(raw, tokenize="words", objective="dcme", output_tables=tables, **SMALL)
    assert "KING" in dw.Vectors.load(tables)
    assert dw.eval_likelihood(tables, raw) == dw.eval_likelihood(tables, prepared)
    assert dw.eval_likelihood(v, raw) == dw.eval_likelihood(v, prepared)
    lines = [[(line.tokens, line.scored) for line in dw.score(v, one)] for one in (raw, prepared)]
    assert lines[0] == lines[1] and lines[0][0][1] == 8
    assert dw.predict_word(v, "The KING, _ England!") == dw.predict_word(v, "the king _ england")


def documents(folder, texts):
    path = folder / "docs.tsv"
    path.write_text("".join(f"{label}\t{text}\n" for label, text in texts), encoding="utf-8")
    return path


def test_document_vectors_use_the_rule_of_the_vectors(trained, tmp_path):
    raw = documents(tmp_path, [("a", "The KING."), ("b", "Queen, sea!"), ("a", "king")])
    model = tmp_path / "model"
    fit = [
        "scdv",
        "fit",
        trained / "prepared.txt",
        "--vectors",
        trained / "v.npy",
        "--clusters",
        2,
        "-o",
    ]
    assert run(*fit, model).exit_code == 0
    done = run("scdv", "transform", model, raw, "-o", tmp_path / "x.npz", "--json")
    assert json.loads(done.stdout)["zero_rows"] == 0
    assert run(*fit, tmp_path / "plain", "--tokenize", "whitespace").exit_code == 0
    done = run("scdv", "transform", tmp_path / "plain", raw, "-o", tmp_path / "y.npz", "--json")
    assert json.loads(done.stdout)["zero_rows"] == 2


def test_the_document_estimator_keeps_tokens_and_splits_text(trained):
    known, new = ["the king", "queen"], ["KING.", ["KING."]]
    rows = dw.SCDV(trained / "v.npy", clusters=2).fit(known).transform(new).toarray()
    assert rows[0].any() and not rows[1].any()
    plain = dw.SCDV(trained / "v.npy", clusters=2, tokenize="whitespace").fit(known)
    assert not plain.transform(new).toarray().any()


@pytest.mark.parametrize("command", ["classify", "latent"])
def test_classifiers_keep_the_rule(tmp_path, command):
    docs = documents(tmp_path, [("tea", "Tea's GREEN, 1984"), ("car", "Car's RED, 1984")] * 10)
    train = ["classify", "train"] if command == "classify" else ["latent", "fit"]
    options = ["--tokenize", "words", "--digits", "zero", "--ngrams", 2]
    done = run(*train, docs, "-o", tmp_path / "model", *options, "--threads", 1)
    assert done.exit_code == 0, done.output
    done = run("classify", "predict", tmp_path / "model", "-", input="GREEN!\n2001 red\n")
    assert [line.split("\t")[0] for line in done.stdout.splitlines()] == ["tea", "car"]

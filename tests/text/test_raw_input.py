"""Raw text: one tokenizer in training and in every later command on text."""

from pathlib import Path

import numpy as np
import pytest
from helpers import link_all

import dcme_w2v as dw
from dcme_w2v.errors import CorpusError
from dcme_w2v.options import TokenizerOptions, VocabularyOptions
from dcme_w2v.text.encode import count

RAW = 'The King, of England; met the Queen! Café\n"Kings and Queens" of the sea, the king said.\n'
PREPARED = "the king of england met the queen café\nkings and queens of the sea the king said\n"
SMALL = {"dim": 4, "epochs": 1, "min_count": 1, "threads": 1}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("raw")
    (folder / "raw.txt").write_text(RAW * 30, encoding="utf-8")
    (folder / "prepared.txt").write_text(PREPARED * 30, encoding="utf-8")
    corpus = str(folder / "raw.txt")
    dw.train(corpus, tokenize="words", output=str(folder / "v.safetensors"), **SMALL)
    return folder


@pytest.fixture
def trained(made, here):
    link_all(made, here)


@pytest.mark.parametrize("block_bytes", [64, 1 << 20])
def test_raw_text_is_encoded_as_prepared_text(trained, block_bytes):
    rule = VocabularyOptions(min_count=1, tokenize="words")
    raw = count(["raw.txt"], rule, threads=2, _block_bytes=block_bytes).vocabulary
    same = count(["prepared.txt"], VocabularyOptions(min_count=1)).vocabulary
    assert list(raw) == list(same) and raw.counts.tolist() == same.counts.tolist()


def test_vectors_of_raw_text_are_those_of_prepared_text_and_keep_the_rule(trained):
    same = dw.train("prepared.txt", **SMALL)
    loaded = dw.Vectors.load("v.safetensors")
    np.testing.assert_array_equal(loaded.vectors, same.vectors)
    assert same.tokenizer.is_whitespace
    assert loaded.tokenizer.options == TokenizerOptions(tokenize="words")
    assert "King" in loaded and loaded.index("KING!") == loaded.index("king")
    assert "King Queen" not in loaded
    assert "king" not in [word for word, _ in loaded.most_similar("King", topn=20)]
    assert loaded[:5].tokenizer.options == loaded.tokenizer.options


@pytest.mark.parametrize("name", ["v.bin", "v.txt"])
def test_converted_vectors_keep_the_rule(trained, cli, name):
    cli(f"convert v.safetensors {name} --reduce 2")
    assert dw.Vectors.load(name).tokenizer.options.tokenize == "words"


@pytest.mark.parametrize(
    "text, errors, message",
    [
        (b"A, b\nC \xff d\n", "strict", r"byte 7 \(line 2\) is not UTF-8"),
        (b"A, b\nC \x00 d\n", "replace", r"byte 7 \(line 2\) is a NUL byte"),
        (b"A, b\nC \x00 d\n", "strict", r"byte 7 \(line 2\) is a NUL byte"),
        (b"., !\n", "strict", "no tokens"),
    ],
)
def test_errors_name_the_position_in_the_raw_text(text, errors, message):
    Path("raw").write_bytes(text)
    options = VocabularyOptions(min_count=1, tokenize="words", encoding_errors=errors)
    with pytest.raises(CorpusError, match=message):
        count(["raw"], options)


def test_likelihoods_and_predictions_use_the_rule_of_the_vectors(trained):
    rule = {"tokenize": "words", "objective": "dcme", "output_tables": "tables"}
    v = dw.train("raw.txt", **rule, **SMALL)
    assert "KING" in dw.Vectors.load("tables")
    for model in ("tables", v):
        raw, prepared = (dw.eval_likelihood(model, f"{one}.txt") for one in ("raw", "prepared"))
        assert raw == prepared
    assert dw.predict_word(v, "The KING, _ England!") == dw.predict_word(v, "the king _ england")


def test_document_vectors_use_the_rule_of_the_vectors(trained, cli):
    Path("docs.tsv").write_text("a\tThe KING.\nb\tQueen, sea!\na\tking\n")
    for flags, zero in (("", 0), ("--tokenize whitespace", 2)):
        cli(f"scdv fit prepared.txt --vectors v.safetensors --clusters 2 -o m {flags}")
        assert cli.json("transform m docs.tsv -o x.npz")["zero_rows"] == zero


READERS = {
    "encode": ("encode v.bin docs -o -", None),
    "eval": ("eval sts v.bin pairs", None),
    "scdv": ("scdv fit docs --vectors v.bin --clusters 2 --min-df 1 -o x", "transform x docs -o -"),
    "convert": ("convert v.bin x --to sentence-transformers", "encode x docs -o -"),
}


@pytest.mark.parametrize("name", READERS)
def test_words_of_prepared_text_show_how_raw_text_is_split(cli, name):
    words = [a + b for a in "abcdefghijklmno" for b in "pqrstuvwxyzabcd"]
    matrix = np.random.default_rng(0).normal(size=(len(words), 4))
    Path("docs").write_text("Ap, BQ! ac aq\n" * 3 + "Co? (dp)\n")
    Path("pairs").write_text("1\tAp!\tAp.\n2\tBq\tac\n3\tap\tCo\n")
    line, then = READERS[name]

    def printed(words, flags=""):
        dw.Vectors(words, matrix[: len(words)]).save("v.bin")
        out = cli(f"{line} {flags}")
        notes = [one for one in cli.err.splitlines() if "is split with --tokenize words" in one]
        return out if then is None else cli(then), notes

    found, notes = printed(words)
    assert len(notes) == 1 and notes[0].startswith("warning: v.bin: the words are lowercase")
    assert (found, []) == printed(words, "--tokenize words")
    plain, notes = printed(words, "--tokenize whitespace")
    assert not notes and plain != found
    for others in (["The", *words[1:]], [*words[:-1], "end."], words[:150]):
        assert printed(others)[1] == []


def test_the_document_estimator_keeps_tokens_and_splits_text(trained):
    known, new = ["the king", "queen"], ["KING.", ["KING."]]
    rows = dw.SCDV("v.safetensors", clusters=2).fit(known).transform(new).toarray()
    assert rows[0].any() and not rows[1].any()
    plain = dw.SCDV("v.safetensors", clusters=2, tokenize="whitespace").fit(known)
    assert not plain.transform(new).toarray().any()

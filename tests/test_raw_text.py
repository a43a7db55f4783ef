"""What is hardly meant as a corpus: one warning line, or an error that names what to give."""

import gzip

import numpy as np
import pytest
from helpers import refused

import dcme_w2v as dw
from dcme_w2v.cli.main import run
from dcme_w2v.errors import DcmeWarning, FormatError, UsageError
from dcme_w2v.formats.vocabulary import Vocabulary
from dcme_w2v.formats.word_list import MAX_WORD_BYTES

PROSE = "The cat sat on the mat. It was, as ever, a good cat; the mat was red.\n"
TOKENS = "the cat sat on the mat and it was as ever a good cat the mat was red\n"
CORPORA = {
    "json": ('["the", "cat", "sat"]\n', "looks like JSON lists"),
    "html": ("<p>the cat sat</p>\n<a href='x'>on the mat</a>\n", "looks like markup"),
    "csv": (
        '3,"the cat, sat",x\n4,on the mat,y\n',
        "CSV: 3 columns separated by commas",
    ),
    "tabs": ("animals\tthe cat sat on the mat\n", "CSV: 2 columns separated by tabs"),
    "prose": (PROSE, "looks like raw text (The and the, mat. and mat"),
    "capitals": (TOKENS + "The cat sat\n", "--tokenize words"),
}
COMMANDS = {
    "vocab": ["--output", "o"],
    "phrases": ["--output", "o"],
    "train": ["--output", "o", "--dim", "4", "--epochs", "1", "--threads", "1", "--sample", "0"],
}


def warnings_in(text):
    return [line for line in text.splitlines() if line.startswith("warning: ")]


@pytest.mark.parametrize("kind", CORPORA)
@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_not_a_corpus_gets_one_warning(command, kind, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text, warning = CORPORA[kind]
    (tmp_path / "c").write_text(text * 100)
    assert run([command, "c", *COMMANDS[command], "--min-count", "1"]) == 0
    [line] = warnings_in(capsys.readouterr().err)
    assert line.startswith("warning: c: looks like ") and warning in line


@pytest.mark.parametrize(
    "text",
    [
        TOKENS,
        "<s> the cat <unk> sat , and <num> mats </s>\n",
        "the cat , the mat\nthe mat\nno , no , no\n",
        "[ sic ] the cat\n{ the mat }\na b\n",
    ],
)
def test_a_corpus_of_tokens_gets_none(text, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c").write_text(text * 100)
    assert run(["vocab", "c", "--output", "o"]) == 0
    assert warnings_in(capsys.readouterr().err) == []


def test_python_warns_too_and_only_the_first_file_is_looked_at(tmp_path):
    with pytest.warns(DcmeWarning, match="sentences: looks like raw text"):
        dw.train([PROSE] * 50, dim=2, threads=1, epochs=1, sample=0)
    (tmp_path / "a").write_text(TOKENS * 50)
    (tmp_path / "b").write_text(PROSE * 50)
    dw.train([str(tmp_path / "a"), str(tmp_path / "b")], dim=2, threads=1, epochs=1, sample=0)


class Frame:
    columns, dtypes = ["text"], ["object"]

    def __iter__(self):
        return iter(self.columns)


@pytest.mark.parametrize(
    ("corpus", "message"),
    [
        ({"the cat": 3}, "is a dict, whose values are not read; give its values"),
        (Frame(), "is a DataFrame, whose rows are not read; give its column of texts"),
        (["東京は大きい", "日本語の文"], "2 strings without whitespace"),
        (["the", "cat"], "2 strings without whitespace, as 'the', are no files"),
    ],
)
def test_what_is_not_sentences_is_an_error_that_names_what_to_give(corpus, message):
    with pytest.raises(UsageError, match=message):
        dw.train(corpus, dim=2)


@pytest.mark.parametrize("length", [MAX_WORD_BYTES, MAX_WORD_BYTES + 1])
def test_one_limit_on_words_holds_for_writers_and_readers(length, tmp_path, capsys):
    corpus, output = tmp_path / "c", tmp_path / "v.txt"
    corpus.write_text(f"a b c {'x' * length} d e f\n" * 20)
    flags = ["--dim", "4", "--epochs", "1", "--sample", "0", "--quiet"]
    code = run(["train", str(corpus), "--output", str(output), *flags])
    if length > MAX_WORD_BYTES:
        assert "1,048,577 bytes, and 1,048,576 are allowed ('xxxx" in refused(capsys, code)
        with pytest.raises(FormatError, match="1,048,576 are allowed"):
            dw.Vectors(["x" * length], np.ones((1, 2), np.float32)).save(output)
        return
    assert code == 0
    for format in ("v.txt", "v.bin", "v.npy", "v.safetensors"):
        target = tmp_path / format
        if target != output:
            assert run(["convert", str(output), str(target)]) == 0
        assert len(dw.Vectors.load(target)) == 7
        assert run(["check", str(target)]) == 0


def test_a_small_file_of_a_billion_empty_lines_takes_bounded_memory(tmp_path):
    path = tmp_path / "words.gz"
    path.write_bytes(gzip.compress(b"\n" * 5_000_000))
    with pytest.raises(dw.errors.CorpusError, match="1,000,000 empty lines in a row"):
        Vocabulary.load(path)

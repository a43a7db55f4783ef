"""Files hardly meant as a corpus: one warning line, or an error that names what to give."""

from pathlib import Path

import numpy as np
import pytest

import dcme_w2v as dw
from dcme_w2v.errors import DcmeWarning, FormatError
from dcme_w2v.formats.vocabulary import MAX_WORD_BYTES

PROSE = "The cat sat on the mat. It was, as ever, a good cat; the mat was red.\n"
TOKENS = "the cat sat on the mat and it was as ever a good cat the mat was red\n"
CORPORA = {
    "json": ('["the", "cat", "sat"]\n', "looks like JSON lists"),
    "array": ('[\n{"text":\n"the cat"},\n', "looks like a JSON array"),
    "html": ("<p>the cat sat</p>\n<a href='x'>on the mat</a>\n", "looks like markup"),
    "labels": ("__label__a the cat sat\n", "use classify train"),
    "csv": (
        '3,"the cat, sat",x\n4,on the mat,y\n',
        "CSV: 3 columns separated by commas",
    ),
    "tabs": ("animals\tthe cat sat on the mat\n", "sat on the mat; without a header, leave"),
    "long": ("animals\t" + "the cat " * 50 + "\n", f"animals, {'the cat ' * 7}the ; without a"),
    "prose": (PROSE, "looks like raw text (The and the, mat. and mat"),
    "capitals": (TOKENS + "The cat sat\n", "--tokenize words"),
    "chinese": (
        "今天天气很好我们去公园。 明天也一样我们去公园。\n",
        "(今天天气很好我们去公园。 is one word)",
    ),
    "thai": ("วันนี้อากาศดีมาก ok\n", "split it into words first"),
}
COMMANDS = ("vocab", "phrases", "train --dim 4 --epochs 1 --threads 1 --sample 0")


def warnings_in(text):
    return [line for line in text.splitlines() if line.startswith("warning: ")]


@pytest.mark.parametrize(
    "command, kind",
    [(COMMANDS[i % 3], kind) for i, kind in enumerate(CORPORA)]
    + [("vocab --tokenize words", "html"), ("phrases", "html")],
)
def test_what_is_not_a_corpus_gets_one_warning(command, kind, cli):
    text, warning = CORPORA[kind]
    Path("c").write_text(text * 100)
    cli(f"{command} c --output o --min-count 1")
    [line] = warnings_in(cli.err)
    assert line.startswith("warning: c: looks like ") and warning in line


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be"])
def test_another_encoding_gets_an_error_alone(encoding, cli):
    Path("c").write_text("a\tb c\n" * 100, encoding=encoding)
    assert "UTF-16" in cli.error("vocab c --output o")


def test_a_name_that_is_not_of_the_format_gets_a_warning(cli):
    Path("c").write_text(TOKENS * 100)
    cli("train c --dim 4 --epochs 1 --threads 1 --output o.csv")
    [line] = warnings_in(cli.err)
    assert "o.csv: vectors cannot be written in the .csv format, so the file will contain" in line


@pytest.mark.parametrize(
    "text",
    [
        TOKENS,
        "<s> the cat <unk> sat , and <num> mats </s>\n",
        "the cat , the mat\nthe mat\nno , no , no\n",
        "[ sic ] the cat\n{ the mat }\na b\n",
        "今天 天气 很 好\n今日 は 天気 が いい です\nวันนี้ อากาศ ดี มาก\n",
    ],
)
def test_a_corpus_of_tokens_gets_none(text, cli):
    Path("c").write_text(text * 100)
    cli("vocab c --output o")
    assert warnings_in(cli.err) == []


def test_python_warns_too_and_only_the_first_file_is_looked_at():
    options = {"dim": 2, "threads": 1, "epochs": 1, "sample": 0}
    with pytest.warns(DcmeWarning, match="sentences: looks like raw text"):
        dw.train([PROSE] * 50, **options)
    Path("a").write_text(TOKENS * 50)
    Path("b").write_text(PROSE * 50)
    dw.train(["a", "b"], **options)


@pytest.mark.parametrize("length", [MAX_WORD_BYTES, MAX_WORD_BYTES + 1])
def test_one_limit_on_words_holds_for_writers_and_readers(length, cli):
    Path("c").write_text(f"a b c {'x' * length} d e f\n" * 20)
    line = "train c --output v.txt --dim 4 --epochs 1 --sample 0 --quiet"
    if length > MAX_WORD_BYTES:
        assert "1,048,577 bytes, but at most 1,048,576 are allowed ('xxxx" in cli.error(line)
        with pytest.raises(FormatError, match="1,048,576 are allowed"):
            dw.Vectors(["x" * length], np.ones((1, 2), np.float32)).save("v.txt")
        return
    cli(line)
    for target in ("v.bin", "v.safetensors"):
        cli(f"convert v.txt {target}")
        assert len(dw.Vectors.load(target)) == 7
        cli(f"check {target}")


def test_vectors_are_no_corpus(cli):
    """`train --output corpus.txt vectors.txt` does not replace the corpus."""
    Path("c.txt").write_text(TOKENS * 20)
    cli("train c.txt --output v.txt --min-count 1 --dim 5 --epochs 1")
    for more in ("", "--tokenize words"):
        error = cli.error(f"train --output c.txt v.txt --min-count 1 --quiet {more}")
        assert "v.txt contains vectors" in error and Path("c.txt").read_text() == TOKENS * 20
    Path("ids.txt").write_text("1 2 3 4 5 6 7\n" * 20)
    cli("vocab ids.txt --output o")

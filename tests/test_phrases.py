"""Phrases: scores and joined text against a plain count; tables, files and errors."""

import gzip
import itertools
import json
import math
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dcme_w2v.cli.main import run
from dcme_w2v.errors import FormatError
from dcme_w2v.options import PhraseOptions
from dcme_w2v.text import pairs, phrases
from dcme_w2v.text.phrase_table import PhraseTable

sentences = st.lists(st.lists(st.sampled_from("abcd"), min_size=1, max_size=9), min_size=1)


def expected(lines, options, threshold):
    """Join phrases by the definition; return the lists of words and the phrases of each pass."""
    tables = []
    for _ in range(options.passes):
        words = Counter(word for line in lines for word in line)
        together = Counter(pair for line in lines for pair in itertools.pairwise(line))
        n = sum(words.values())
        table = {}
        for (a, b), ab in together.items():
            if min(words[a], words[b], ab) < options.min_count:
                continue
            score = (ab - options.min_count) / words[a] / words[b] * n
            if options.scorer == "npmi":
                score = math.log(ab / n / (words[a] / n * words[b] / n)) / -math.log(ab / n)
            if abs(score - threshold) < 1e-9:
                return None  # decided by rounding errors
            if score > threshold:
                table[a, b] = ab, score
        lines = [joined(line, table) for line in lines]
        tables.append(table)
    return lines, tables


def joined(line, table):
    written, rest = [], list(line)
    while rest:
        if tuple(rest[:2]) in table:
            written.append("_".join(rest[:2]))
            del rest[:2]
        else:
            written.append(rest.pop(0))
    return written


@pytest.mark.parametrize("piece", [1, 4, 1000])
@pytest.mark.parametrize(("scorer", "threshold"), [("default", 0.75), ("npmi", 0.05)])
def test_phrases_equal_the_definition(tmp_path_factory, monkeypatch, piece, scorer, threshold):
    monkeypatch.setattr(phrases, "PIECE", piece)
    monkeypatch.setattr(pairs, "_MERGED_AT_ONCE", 3)
    folder = tmp_path_factory.mktemp("phrases")

    @settings(max_examples=40)
    @given(sentences, st.integers(1, 3), st.integers(1, 3))
    def check(lines, passes, min_count):
        options = PhraseOptions(passes, threshold, scorer, min_count)
        wanted = expected(lines, options, threshold)
        if wanted is None:
            return
        (folder / "c").write_text("".join(f"{' '.join(line)}\n" for line in lines))
        found = phrases.join_phrases([str(folder / "c")], folder / "o", options)
        written = [line.split(" ") for line in (folder / "o").read_text().splitlines()]
        assert written == wanted[0]
        for own, table in zip(found.table.passes, wanted[1], strict=True):
            assert {(one.left, one.right): one.seen for one in own} == {
                pair: seen for pair, (seen, _) in table.items()
            }
            for one in own:
                assert one.score == pytest.approx(table[one.left, one.right][1])
        assert found.joined == sum(map(len, lines)) - sum(map(len, written))

    check()


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (
        "new york is far\n\nyork new\na new york times\n" * 6 + "is\na\nfar\n" * 20 + "é new york"
    )
    (tmp_path / "c.gz").write_bytes(gzip.compress(text.encode()))
    return "c.gz"


def test_the_command(corpus, tmp_path, capsys):
    flags = ["--output", "o", "--save-table", "t", "--threshold", "2", "--json", "--quiet"]
    assert run(["phrases", corpus, *flags]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures == {"lines": 79, "tokens": 123, "joined": 13, "phrases": [1]}
    lines = (tmp_path / "o").read_bytes().decode().split("\n")
    assert lines[:4] == ["new_york is far", "york new", "a new_york times", "new_york is far"]
    assert lines[-2:] == ["é new_york", ""]
    assert (tmp_path / "t").read_text().startswith("1\tnew\tyork\t13\t")


def test_a_table_of_phrases_applies_to_other_text(corpus, tmp_path, capsysbinary):
    flags = ["--output", "o", "--save-table", "t", "--threshold", "1", "--passes", "2"]
    assert run(["phrases", corpus, *flags]) == 0
    assert run(["phrases", corpus, "--output", "again", "--read-table", "t"]) == 0
    assert (tmp_path / "again").read_bytes() == (tmp_path / "o").read_bytes()
    assert "new_york_times" in (tmp_path / "o").read_text()
    (tmp_path / "other").write_text("the  new york\ttimes\n")
    capsysbinary.readouterr()
    assert run(["phrases", "other", "--output", "-", "--read-table", "t", "--quiet"]) == 0
    assert capsysbinary.readouterr() == (b"the new_york_times\n", b"")


def test_a_phrase_spelled_like_a_word_is_that_word(tmp_path):
    (tmp_path / "c").write_text("a b c\n" * 4 + "a_b c\n" + "d\n" * 20)
    options = PhraseOptions(passes=2, threshold=2.0, min_count=2)
    found = phrases.join_phrases([str(tmp_path / "c")], tmp_path / "o", options)
    once = PhraseOptions(passes=1, threshold=2.0, min_count=2)
    phrases.join_phrases([str(tmp_path / "c")], tmp_path / "first", once)
    found_later = phrases.join_phrases([str(tmp_path / "first")], tmp_path / "second", once)
    assert found_later.table.passes[0] == found.table.passes[1]
    assert [one[:3] for one in found.table.passes[1]] == [("a_b", "c", 5)]
    assert (tmp_path / "second").read_bytes() == (tmp_path / "o").read_bytes()


@pytest.mark.parametrize(
    "line",
    [
        "1\ta\tb\t3",
        "0\ta\tb\t3\t1",
        "2\ta\tb\t3\t1",
        "1\ta c\tb\t3\t1",
        "1\t\tb\t3\t1",
        "x",
        "\xff",
    ],
)
def test_invalid_tables(tmp_path, line):
    (tmp_path / "t").write_bytes(line.encode("latin-1"))
    with pytest.raises(FormatError, match=r"t:1: is not a phrase .*save_table"):
        PhraseTable.load(tmp_path / "t")


@pytest.mark.parametrize(
    "flags",
    [
        ["--output", "o", "--save-table", "o"],
        ["--output", "-", "--json"],
        ["--output", "o", "--scorer", "x"],
        ["--output", "o", "--passes", "0"],
    ],
)
def test_wrong_usage(corpus, tmp_path, capsys, flags):
    assert run(["phrases", corpus, *flags]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == [corpus]

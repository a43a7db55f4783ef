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
from dcme_w2v.text import phrases
from dcme_w2v.text.options import PhraseOptions
from dcme_w2v.text.phrase_table import PhraseTable

sentences = st.lists(st.lists(st.sampled_from("abcd"), min_size=1, max_size=9), min_size=1)


def spans(line, connectors):
    """Yield where candidates start and end: up to three connectors between words that are none."""
    for start, word in enumerate(line):
        rest = list(itertools.takewhile(connectors.__contains__, line[start + 1 :]))
        end = start + 1 + len(rest)
        if word not in connectors and end < len(line) and len(rest) <= 3:
            yield start, end


def expected(lines, options, threshold, connectors=()):
    """Join phrases by the definition; return the lists of words and the phrases of each pass."""
    tables = []
    for _ in range(options.passes):
        words = Counter(word for line in lines for word in line)
        together = Counter(
            tuple(line[start : end + 1]) for line in lines for start, end in spans(line, connectors)
        )
        n = sum(words.values())
        table = {}
        for phrase, ab in together.items():
            a, b = phrase[0], phrase[-1]
            if min(words[a], words[b], ab) < options.min_count:
                continue
            score = (ab - options.min_count) / words[a] / words[b] * n
            if options.scorer == "npmi":
                score = math.log(ab / n / (words[a] / n * words[b] / n)) / -math.log(ab / n)
            if abs(score - threshold) < 1e-9:
                return None  # decided by rounding errors
            if score > threshold:
                table[phrase] = ab, score
        lines = [joined(line, table, connectors) for line in lines]
        tables.append(table)
    return lines, tables


def joined(line, table, connectors):
    written, next_start = [], 0
    for start, end in spans(line, connectors):
        if start >= next_start and tuple(line[start : end + 1]) in table:
            written += [*line[next_start:start], "_".join(line[start : end + 1])]
            next_start = end + 1
    return written + line[next_start:]


@pytest.mark.parametrize("piece", [1, 4])
@pytest.mark.parametrize(("scorer", "threshold"), [("default", 0.75), ("npmi", 0.05)])
def test_phrases_equal_the_definition(tmp_path_factory, monkeypatch, piece, scorer, threshold):
    monkeypatch.setattr(phrases, "PIECE", piece)
    folder = tmp_path_factory.mktemp("phrases")

    @settings(max_examples=40)
    @given(sentences, st.integers(1, 3), st.integers(1, 3), st.sampled_from(["", "d", "d c"]))
    def check(lines, passes, min_count, connectors):
        (folder / "words").write_text(connectors)
        given = str(folder / "words") if connectors else None
        options = PhraseOptions(passes, threshold, scorer, min_count, given)
        wanted = expected(lines, options, threshold, connectors.split())
        if wanted is None:
            return
        (folder / "c").write_text("".join(f"{' '.join(line)}\n" for line in lines))
        found = phrases.phrases(folder / "c", folder / "o", **vars(options))
        written = [line.split(" ") for line in (folder / "o").read_text().splitlines()]
        assert written == wanted[0]
        for own, table in zip(found.table.passes, wanted[1], strict=True):
            whole = {(one.left, *one.between.split(), one.right): one for one in own}
            assert {phrase: one.seen for phrase, one in whole.items()} == {
                phrase: seen for phrase, (seen, _) in table.items()
            }
            for phrase, one in whole.items():
                assert one.score == pytest.approx(table[phrase][1])
        assert found.joined == sum(map(len, lines)) - sum(map(len, written))
        found.table.save(folder / "t")
        again = PhraseTable.load(folder / "t")
        phrases.phrases(folder / "c", folder / "again", read_table=again)
        assert (folder / "again").read_bytes() == (folder / "o").read_bytes()

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
    assert figures.pop("options")["memory"] == 1.0
    assert figures.pop("reads") == [1]
    assert figures == {"lines": 79, "tokens": 123, "joined": 13, "phrases": [1]}
    lines = (tmp_path / "o").read_bytes().decode().split("\n")
    assert lines[:4] == ["new_york is far", "york new", "a new_york times", "new_york is far"]
    assert lines[-2:] == ["é new_york", ""]
    assert (tmp_path / "t").read_text().startswith("1\tnew\tyork\t13\t")


def test_a_score_at_the_threshold_is_too_low(tmp_path):
    (tmp_path / "c").write_text("a b\n" * 9 + "d e\n" * 4 + "d\n")
    scored = phrases.phrases(tmp_path / "c", tmp_path / "o", min_count=2, threshold=0.1).table
    at = min(one.score for one in scored.passes[0])
    found = phrases.phrases(tmp_path / "c", tmp_path / "o", min_count=2, threshold=at).table
    assert found.passes[0] == tuple(one for one in scored.passes[0] if one.score > at)
    assert found.passes[0]


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


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (None, "No such file"),
        (b"", "has no words; give connectors separated by whitespace"),
        (b"of\n\xff\n", "byte 3 is not UTF-8: give a file of words"),
        (b"of\0the\n", "has NUL bytes"),
        (" ".join(map(str, range(255))).encode(), "has 255 words; at most 254 are allowed"),
    ],
)
def test_connectors_that_are_refused(corpus, tmp_path, capsys, content, error):
    if content is not None:
        (tmp_path / "words").write_bytes(content)
    assert run(["phrases", corpus, "--output", "o", "--connectors", "words"]) in (1, 2)
    message = capsys.readouterr().err
    assert error in message
    assert message.count("\n") == 1
    assert not (tmp_path / "o").exists()


def test_a_table_with_a_connector_as_a_side_is_refused(corpus, tmp_path, capsys):
    (tmp_path / "t").write_text("1\ta\tb\t3\t1\tof\n1\tof\tb\t3\t1\n")
    assert run(["phrases", corpus, "--output", "o", "--read-table", "t"]) == 1
    assert "'of' as a connector and as a side of a phrase" in capsys.readouterr().err


@pytest.mark.parametrize(
    "line",
    [
        "1\ta\tb\t3",
        "2\ta\tb\t3\t1",
        "1\ta c\tb\t3\t1",
        "1\ta\tb\t3\t1\t",
        "1\ta\tb\t3\t1\tof  the",
        "1\ta\tb\t3\t1\tof of of of",
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
        ["--output", "o", "--memory", "nan"],
        ["--output", "o", "--connectors", "o"],
        ["--output", "o", "--connectors", ""],
    ],
)
def test_wrong_usage(corpus, tmp_path, capsys, flags):
    assert run(["phrases", corpus, *flags]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == [corpus]

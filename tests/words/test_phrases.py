"""Phrases: scores and joined text against a plain count; tables, files and errors."""

import gzip
import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dcme_w2v._core import text as core
from dcme_w2v.errors import FormatError
from dcme_w2v.text import phrases
from dcme_w2v.text.options import PhraseOptions
from dcme_w2v.text.phrases import PhraseTable

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
@pytest.mark.parametrize("scorer, threshold", [("default", 0.75), ("npmi", 0.05)])
def test_phrases_equal_the_definition(corpus, monkeypatch, piece, scorer, threshold):
    monkeypatch.setattr(phrases, "PIECE", piece)
    folder = corpus

    @settings(max_examples=12)
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
        for own, table in zip(found.passes, wanted[1], strict=True):
            whole = {(one.left, *one.between.split(), one.right): one for one in own}
            assert {phrase: one.seen for phrase, one in whole.items()} == {
                phrase: seen for phrase, (seen, _) in table.items()
            }
            for phrase, one in whole.items():
                assert one.score == pytest.approx(table[phrase][1])
        assert found.joined == sum(map(len, lines)) - sum(map(len, written))
        found.save(folder / "t")
        again = PhraseTable.load(folder / "t")
        phrases.phrases(folder / "c", folder / "again", read_table=again)
        assert (folder / "again").read_bytes() == (folder / "o").read_bytes()

    check()


@pytest.fixture(autouse=True)
def corpus(here):
    text = (
        "new york is far\n\nyork new\na new york times\n" * 6 + "is\na\nfar\n" * 20 + "é new york"
    )
    (here / "c.gz").write_bytes(gzip.compress(text.encode()))
    return here


def test_pairs_that_are_counted_in_many_reads_are_those_of_one():
    random = np.random.default_rng(1)
    ids = random.integers(2000, size=60_000) | random.choice([0, 0, 0, 1 << 31], 60_000)
    roles = random.choice([0, 1, 2, *[core.ROLE_SIDE] * 5], 2000).astype(np.uint8)
    pieces = np.array_split(ids.astype(np.uint32), 300)
    one, many = (phrases.count_pairs(lambda: pieces, roles, 1, size) for size in (1 << 30, 1))
    assert one[-1] == 1 and many[-1] > 4
    for found, wanted in zip(many[:-1], one[:-1], strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_the_command(corpus, cli):
    figures = cli.json("phrases c.gz --output o --save-table t --threshold 2 --quiet")
    assert figures.pop("options")["memory"] == 1.0
    assert figures == {"lines": 79, "tokens": 123, "joined": 13, "phrases": [1], "reads": [1]}
    lines = (corpus / "o").read_bytes().decode().split("\n")
    assert lines[:4] == ["new_york is far", "york new", "a new_york times", "new_york is far"]
    assert lines[-2:] == ["é new_york", ""]
    assert (corpus / "t").read_text().startswith("1\tnew\tyork\t13\t")


def test_a_score_at_the_threshold_is_too_low(corpus):
    (corpus / "c").write_text("a b\n" * 9 + "d e\n" * 4 + "d\n")
    scored = phrases.phrases("c", "o", min_count=2, threshold=0.1).passes[0]
    at = min(one.score for one in scored)
    found = phrases.phrases("c", "o", min_count=2, threshold=at).passes[0]
    assert found and found == tuple(one for one in scored if one.score > at)


def test_a_table_of_phrases_applies_to_other_text(corpus, cli):
    cli("phrases c.gz --output o --save-table t --threshold 1 --passes 2")
    cli("phrases c.gz --output again --read-table t")
    assert (corpus / "again").read_bytes() == (corpus / "o").read_bytes()
    assert "new_york_times" in (corpus / "o").read_text()
    (corpus / "other").write_text("the  new york\ttimes\n")
    assert cli("phrases other --output - --read-table t --quiet") == "the new_york_times\n"
    assert cli.err == ""


@pytest.mark.parametrize(
    "line",
    [
        "1\ta\tb\t3", "2\ta\tb\t3\t1", "1\ta c\tb\t3\t1", "1\ta\tb\t3\t1\t",
        "1\ta\tb\t3\t1\tof  the", "1\ta\tb\t3\t1\tof of of of", "\xff",
    ],
)  # fmt: skip
def test_invalid_tables(corpus, line):
    (corpus / "t").write_bytes(line.encode("latin-1"))
    with pytest.raises(FormatError, match=r"t:1: the line is not a phrase .*save_table"):
        PhraseTable.load("t")

"""Phrases: scores and joined text against a plain count; tables, files and errors."""

import gzip
import itertools
import json
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dcme_w2v.cli.main import run
from dcme_w2v.errors import FormatError
from dcme_w2v.options import PhraseOptions
from dcme_w2v.text import phrases
from dcme_w2v.text.cache import LAST
from dcme_w2v.text.pairs import count_pairs
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


def test_counts_do_not_depend_on_the_memory():
    random = np.random.default_rng(1)
    ids = random.zipf(1.3, 200_000) % 3000
    ids = (ids | (random.random(len(ids)) < 0.1) * int(LAST)).astype(np.uint32)
    roles = np.full(3000, 255, dtype=np.uint8)
    roles[7:9] = 1, 2
    roles[100:200] = 0
    pieces = np.array_split(ids, 9)
    whole = count_pairs(lambda: pieces, roles, 2, 10**9)
    parts = count_pairs(lambda: pieces, roles, 2, 1)
    assert whole.reads == 1
    assert parts.reads > 4
    for name in ("left", "right", "runs", "counts"):
        assert np.array_equal(getattr(parts, name), getattr(whole, name))


def test_memory_that_does_not_suffice_is_reported_with_the_same_result(tmp_path, capsys):
    random = np.random.default_rng(1)
    numbers = random.integers(400, size=150_000).astype(str)
    lines = "".join(f"w{' w'.join(numbers[i : i + 20])}\n" for i in range(0, len(numbers), 20))
    (tmp_path / "c").write_text(lines)
    output = {}
    for memory in ("1", "0.001"):
        flags = ["--min-count", "1", "--memory", memory, "--threshold", "1.5", "--passes", "2"]
        assert run(["phrases", str(tmp_path / "c"), "--output", str(tmp_path / "o"), *flags]) == 0
        output[memory] = (tmp_path / "o").read_bytes(), capsys.readouterr().err
    assert output["1"][0] == output["0.001"][0]
    assert "; text read 4 times, for --memory 0.001" in output["0.001"][1]
    assert "read" not in output["1"][1]


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


def test_each_pass_reports_its_progress(tmp_path):
    (tmp_path / "c").write_text("a b c\n" * 40)
    heard = []
    phrases.phrases(tmp_path / "c", tmp_path / "o", passes=2, threshold=0.1, progress=heard.append)
    ended = [one.stage for one in heard if one.done == one.total]
    assert ended == ["reading", "counting pairs", "counting words", "counting pairs", "writing"]


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


def test_connectors_are_inside_of_phrases_only(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = "the university of california\nof the university\nat the\n" * 6 + "x y z\n" * 30
    (tmp_path / "c").write_text(text)
    flags = ["--output", "o", "--threshold", "1.9", "--save-table", "t"]
    assert run(["phrases", "c", *flags, "--connectors", "english"]) == 0
    lines = (tmp_path / "o").read_text().split("\n")
    assert lines[:3] == ["the university_of_california", "of the university", "at the"]
    rows = [line.split("\t") for line in (tmp_path / "t").read_text().splitlines()]
    assert ["1", "university", "california", "6", "2.0", "of"] in rows
    capsys.readouterr()
    assert run(["info", "t"]) == 0
    assert "table of phrases" in capsys.readouterr().out
    assert run(["phrases", "c", "--output", "again", "--read-table", "t"]) == 0
    assert (tmp_path / "again").read_bytes() == (tmp_path / "o").read_bytes()


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


def test_a_phrase_spelled_like_a_word_is_that_word(tmp_path):
    (tmp_path / "c").write_text("a b c\n" * 4 + "a_b c\n" + "d\n" * 20)
    options = PhraseOptions(passes=2, threshold=2.0, min_count=2)
    found = phrases.phrases(tmp_path / "c", tmp_path / "o", **vars(options))
    once = PhraseOptions(passes=1, threshold=2.0, min_count=2)
    phrases.phrases(tmp_path / "c", tmp_path / "first", **vars(once))
    found_later = phrases.phrases(tmp_path / "first", tmp_path / "second", **vars(once))
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
        "1\ta\tb\t3\t1\t",
        "1\ta\tb\t3\t1\tof  the",
        "1\ta\tb\t3\t1\tof of of of",
        "1\ta\tb\t3\t1\tof\tthe",
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
        ["--output", "o", "--memory", "0"],
        ["--output", "o", "--memory", "nan"],
        ["--output", "o", "--memory", "1e300"],
        ["--output", "o", "--connectors", "o"],
        ["--output", "o", "--connectors", ""],
    ],
)
def test_wrong_usage(corpus, tmp_path, capsys, flags):
    assert run(["phrases", corpus, *flags]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == [corpus]

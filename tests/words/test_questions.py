"""Questions about words: exact search in blocks, signed queries, batches, and the prompt."""

import itertools
import json
import os
import pty
import select
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from helpers import PROGRAM, save

import dcme_w2v as dw
from dcme_w2v import Vectors
from dcme_w2v.numeric import nearest

WORDS = ["king", "queen", "man", "woman", "-lrb-", "köln"]
ROWS = [[1, 1, 0], [0.1, 1, 1], [1, 0, 0], [0, 0, 1], [0, -1, 0], [-1, 0, 0]]


@pytest.fixture(autouse=True)
def path(here):
    return str(save(here / "v.bin", WORDS, ROWS))


# ---- search ----


@pytest.mark.bits
@pytest.mark.parametrize("k", [1, 3, 7, 40, 200])
def test_search_in_blocks_equals_sorting_all_scores(k, monkeypatch):
    monkeypatch.setattr(nearest, "QUERIES", 5)
    monkeypatch.setattr(nearest, "ROWS", 16)
    random = np.random.default_rng(k)
    matrix = random.integers(-2, 3, size=(150, 4)).astype(np.float32)  # with many ties and zeros
    lengths = np.linalg.norm(matrix, axis=1)
    inverse = np.divide(1, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    queries = np.eye(4, dtype=np.float32)[random.integers(4, size=21)]
    left_out = [random.choice(150, random.integers(5), replace=False).tolist() for _ in queries]
    found = list(nearest.nearest_rows(matrix, inverse, queries, left_out, k))
    assert len(found) == len(queries)
    for query, excluded, (rows, scores) in zip(queries, left_out, found, strict=True):
        expected = nearest.cosines_of(matrix, query[None]).astype(np.float32)
        order = [i for i in np.argsort(-expected, kind="stable") if i not in excluded][:k]
        np.testing.assert_array_equal(scores, expected[order])
        np.testing.assert_array_equal(scores, expected[rows])
        pairs = list(zip(-scores, rows, strict=True))
        assert pairs == sorted(set(pairs)) and not {*rows.tolist()} & {*excluded}


def test_a_batch_equals_single_queries():
    random = np.random.default_rng(0)
    vectors = Vectors([f"w{i}" for i in range(300)], random.normal(size=(300, 8)))
    queries = [(f"w{i}",) for i in range(290)] + [(["w1", "w2"], "w3")]
    batch = list(vectors.most_similar_batch(queries, topn=4, limit=200))
    for query, found in zip(queries, batch, strict=True):
        assert found == vectors.most_similar(*query, topn=4, limit=200)
    assert list(vectors.most_similar_batch([])) == []
    with pytest.raises(KeyError, match="'nowhere'"):
        next(vectors.most_similar_batch(["w1", "nowhere"]))


def test_the_first_of_equal_columns_is_best():
    scores = np.array([[0.0, 1, 2, 2, 2, 2, 1], [3, 3, 3, 3, 3, 3, 3], [6, 5, 4, 3, 2, 1, 0]])
    for count in range(1, 8):
        expected = np.argsort(-scores, axis=1, kind="stable")[:, :count]
        np.testing.assert_array_equal(nearest.top_columns(scores, count), expected)


@pytest.mark.bits
@pytest.mark.parametrize("dim", [1, 3, 64, 301])
def test_equal_words_are_in_order_of_frequency(dim, monkeypatch):
    """However BLAS divides a product: equal rows at any place have equal scores."""
    random = np.random.default_rng(dim)
    rows = random.normal(size=(4500, dim)).astype(np.float32)
    same = np.sort(random.choice(4500, 300, replace=False))
    rows[same] = rows[same[0]]
    vectors = Vectors([f"w{i}" for i in range(len(rows))], rows)
    words = [vectors.words[int(row)] for row in same]
    query = words[150]
    nearest_words = [word for word in words if word != query][:20]
    for found in (
        vectors.most_similar(query, topn=20),
        vectors.most_similar(query, topn=20, among=words),
        vectors.most_similar([query], topn=20, limit=4499)[:20],
        *itertools.islice(vectors.most_similar_batch([query, "w0"] * 70, topn=20), 0, None, 2),
    ):
        if dim > 1:
            assert [one.word for one in found] == nearest_words
        assert {one.similarity for one in found} == {1.0}


@pytest.mark.parametrize("method", ["3cosadd", "3cosmul"])
def test_the_most_frequent_of_equal_answers_is_chosen(method):
    rows = np.random.default_rng(2).normal(size=(413, 64)).astype(np.float32)
    rows[200:] = rows[50]
    rows[3] = rows[1]
    vectors = Vectors([f"w{i}" for i in range(len(rows))], rows)
    Path("q.txt").write_text("\n".join(f"w1 w50 w3 w{i}" for i in range(200, len(rows))))
    assert dw.eval_analogies(vectors, "q.txt", method=method).total.correct == 1
    Path("q.txt").write_text("w1 w50 w3 w200")
    assert dw.eval_analogies(vectors, "q.txt", method=method).total.correct == 1


# ---- signs ----


@pytest.mark.parametrize(
    "words",
    [["+king -man +woman"], ["king -man +woman"], ["--", "king -man woman"],
     ["--", "-man", "+king", "+woman"], ["+king", "+woman -man"]],
)  # fmt: skip
def test_a_query_of_signed_words(words, path, cli):
    ((question, word, cosine),) = cli.rows("neighbors -k 1 v.bin", *words)
    assert word == "queen" and question == " ".join(words).removeprefix("-- ")
    expected = Vectors.load(path).most_similar(["king", "woman"], "man", topn=1)[0].similarity
    assert float(cosine) == pytest.approx(expected, abs=1e-6)
    assert cli.rows("neighbors -k 1 v.bin", "king -man woman")[0][1:] == ["queen", cosine]


def test_only_given_words_are_printed(cli):
    assert cli.rows("neighbors v.bin king --among", "woman queen king") == [
        ["king", "queen", "0.548630"], ["king", "woman", "0.000000"]
    ]  # fmt: skip
    assert cli.rows("neighbors v.bin --among", "man nobody", "+king -queen")[0][1] == "man"
    assert "warning: v.bin: no vector for nobody; skipped" in cli.err
    assert "--among: v.bin contains none of these words" in cli.error(
        "neighbors v.bin king --among x"
    )


# ---- commands ----


def test_lines_of_standard_input(cli):
    lines = "+king -man +woman\r\n\nnobody\nman -nobody\nman\nman"
    out = cli("neighbors v.bin -k 1", stdin=lines).splitlines()
    expected = ["+king -man +woman\tqueen", "man\tking", "man\tking"]
    assert [a.startswith(b) for a, b in zip(out, expected, strict=True)] == [True] * len(out)
    assert "nobody" in cli.err


@pytest.mark.parametrize("stdin, code", [
    ("nobody\nnowhere", 1), ("nobody\nking", 0), ("king nobody", 0), ("\n", 0), ("", 0),
])  # fmt: skip
@pytest.mark.parametrize("flags", ["", "--json"])
def test_lines_of_which_none_has_an_answer_are_a_failure(cli, stdin, code, flags):
    cli(f"neighbors v.bin {flags}", stdin=stdin, code=code)
    assert "error:" not in cli.err


def test_a_no_break_space_separates_no_words(cli):
    words = ["the", "bonjour\u00a0!", "au", "revoir"]
    vectors = dw.Vectors(words, np.eye(4), counts=[4, 3, 2, 1])
    vectors.save("n.txt")
    answer = f"{words[1]}\tthe\t0.000000\n"
    assert cli("neighbors", "n.txt", words[1], "-k", "1") == answer
    assert cli("neighbors n.txt -k 1", stdin=words[1].encode()) == answer
    Path("q").write_text(" ".join(words), encoding="utf-8")
    assert dw.eval_analogies(vectors, "q").total.covered == 1
    dw.save_sentence_model(vectors, "folder")
    assert words == list(dw.Vectors.load("folder").words[:4])


def test_every_line_of_input_gives_a_json_object(cli):
    out = cli("neighbors v.bin --json", stdin=b"king -man +woman\nking \xff\xfe\n" * 500)
    records = [json.loads(line) for line in out.splitlines()]
    assert len(records) == 1000
    assert records[0]["neighbors"]["king -man +woman"][0]["word"] == "queen"
    assert list(records[1]["neighbors"]) == ["king"] and records[1]["missing"] == ["\udcff\udcfe"]


def test_a_last_line_without_a_line_feed(cli):
    said = cli.error("neighbors v.bin", stdin=b"x" * (3 << 20))
    assert "a line is longer than 1,048,576 bytes" in said


# ---- the prompt ----


def test_a_terminal_has_a_prompt(path):
    pytest.importorskip("readline")
    ours, theirs = pty.openpty()
    command = [*PROGRAM, "neighbors", path, "-k", "1"]
    environment = {**os.environ, "TERM": "dumb", "INPUTRC": os.devnull}
    process = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, close_fds=True
    )
    os.close(theirs)
    try:
        expect(ours, b"> ")
        os.write(ours, b"woman\n")
        expect(ours, b"woman\tqueen\t")
        expect(ours, b"> ")  # Ctrl-D before the prompt is ignored
        os.write(ours, b"\x04")
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def expect(terminal, wanted):
    """Read from a terminal until a text appears."""
    seen, end = b"", time.monotonic() + 60
    while wanted not in seen and time.monotonic() < end:
        if select.select([terminal], [], [], 1)[0]:
            seen += os.read(terminal, 1)
    assert wanted in seen, seen

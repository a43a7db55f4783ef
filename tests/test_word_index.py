"""The approximate index of neighbors --index: recall, the file, errors."""

from pathlib import Path

import numpy as np
import pytest
from helpers import link_all, save

from dcme_w2v.cli.main import run
from dcme_w2v.words import index as module
from dcme_w2v.words.index import load_index
from dcme_w2v.words.vectors import Vectors

WORDS = [f"w{i}" for i in range(3000)]


def clustered(seed=1):
    random = np.random.default_rng(seed)
    centers = random.normal(size=(60, 20))
    return (centers[random.integers(60, size=3000)] + random.normal(size=(3000, 20))).astype("f4")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    pytest.importorskip("usearch")
    folder = tmp_path_factory.mktemp("index")
    save(folder / "v.npy", WORDS, clustered())
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert run(["neighbors", "v.npy", "w1", "--index", "v.index"]) == 0
    return folder


@pytest.fixture
def here(files, here):
    link_all(files, here)
    return here


def test_answers_are_those_of_the_exact_search_by_the_recall(here):
    vectors = Vectors.load("v.npy")
    index, inverse = load_index("v.index", vectors), vectors.inverse_lengths()
    assert 0.9 < index.recall <= 1
    queries, left_out = vectors.vectors[:200] * inverse[:200, None], [[i] for i in range(200)]
    found = index.search(queries, left_out, 10)
    exact = list(module.nearest_rows(vectors.vectors, inverse, queries, left_out, 10))
    pairs = zip(found, exact, strict=True)
    assert np.mean([len(np.intersect1d(a[0], b[0])) / 10 for a, b in pairs]) > 0.9
    for number, (rows, cosines) in enumerate(found):
        assert number not in rows and len(rows) == 10 and (np.diff(cosines) <= 0).all()
        expected = vectors.vectors[rows] @ queries[number] * inverse[rows]
        np.testing.assert_allclose(cosines, expected, rtol=1e-5)


@pytest.mark.parametrize("command", ["neighbors v.npy w1 w2 -k 3", "analogy v.npy w1 w2 w3 -k 3"])
def test_commands_print_the_same_lines_with_an_index(here, cli, command):
    plain = set(cli(command).split("\n"))
    quick = set(cli(f"{command} --index v.index").split("\n"))
    assert len(plain & quick) >= len(plain) - 2
    assert "v.index: finds " in cli.err


def test_an_index_of_other_vectors_is_refused(here, cli):
    changed = clustered()
    changed[0, 0] += 1
    save(here / "other.npy", WORDS, changed)
    save(here / "named.npy", [f"x{i}" for i in range(3000)], clustered())
    for query in ("other.npy w1", "named.npy x1"):
        error = cli.error(f"neighbors {query} --index v.index")
        assert "v.index: is the index of other vectors" in error


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda data: data[: len(data) // 2], "is damaged; delete it"),
        (lambda data: data[:-9] + b"x" + data[-8:], "is damaged; delete it"),
        (lambda data: data[: data.index(b"{")] + b"{]\n", "is damaged; delete it"),
        (lambda data: b"", "is not an index; give another FILE"),
        (lambda data: b"2 3\nking 1 2 3\n", "is not an index; give another FILE"),
    ],
)
def test_other_files_are_refused_and_left_alone(here, cli, change, message):
    path = Path("x.index")
    path.write_bytes(changed := change(Path("v.index").read_bytes()))
    assert message in cli.error("neighbors v.npy w1 --index x.index")
    assert path.read_bytes() == changed


def test_paths_that_clash_are_refused(here, cli):
    Path("dir").mkdir()
    for name in ("v.npy", "no/x", "dir", "-", "/dev/null", "/dev/stdout"):
        error = cli.error(f"neighbors v.npy w1 --index {name}")
        is_stream = name in ("-", "/dev/null", "/dev/stdout")
        assert (f"--index {name}: is a stream; give a file" if is_stream else name) in error

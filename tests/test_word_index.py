"""The approximate index of neighbors --index: recall, the file, errors."""

import numpy as np
import pytest
from click.testing import CliRunner
from helpers import refused, save

from dcme_w2v.cli.main import program, run
from dcme_w2v.words import index as module
from dcme_w2v.words.index import load_index
from dcme_w2v.words.vectors import Vectors

WORDS = [f"w{i}" for i in range(3000)]


def clustered(seed=1):
    random = np.random.default_rng(seed)
    centres = random.normal(size=(60, 20))
    return (centres[random.integers(60, size=3000)] + random.normal(size=(3000, 20))).astype("f4")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    pytest.importorskip("usearch")
    folder = tmp_path_factory.mktemp("index")
    save(folder / "v.npy", WORDS, clustered())
    assert run(["neighbors", f"{folder}/v.npy", "w1", "--index", f"{folder}/v.index"]) == 0
    return folder


@pytest.fixture
def here(files, monkeypatch, tmp_path):
    for path in files.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_answers_are_those_of_the_exact_search_by_the_recall(here):
    vectors = Vectors.load("v.npy")
    index = load_index("v.index", vectors)
    assert 0.9 < index.recall <= 1
    queries = vectors.vectors[:200] * vectors.inverse_lengths()[:200, None]
    left_out = [[i] for i in range(200)]
    found = index.search(queries, left_out, 10)
    exact = list(
        module.nearest_rows(vectors.vectors, vectors.inverse_lengths(), queries, left_out, 10)
    )
    shared = np.mean(
        [len(np.intersect1d(a[0], b[0])) / 10 for a, b in zip(found, exact, strict=True)]
    )
    assert shared > 0.9
    for number, (rows, cosines) in enumerate(found):
        assert number not in rows and len(rows) == 10
        assert (np.diff(cosines) <= 0).all()
        expected = vectors.vectors[rows] @ queries[number] * vectors.inverse_lengths()[rows]
        np.testing.assert_allclose(cosines, expected, rtol=1e-5)


@pytest.mark.parametrize("command", ["neighbors v.npy w1 w2", "analogy v.npy w1 w2 w3"])
def test_commands_print_the_same_lines_with_an_index(here, command):
    plain = CliRunner().invoke(program, [*command.split(), "-k", "3"])
    quick = CliRunner().invoke(program, [*command.split(), "-k", "3", "--index", "v.index"])
    assert plain.exit_code == quick.exit_code == 0
    same = len(set(plain.stdout.split("\n")) & set(quick.stdout.split("\n")))
    assert same >= len(plain.stdout.split("\n")) - 2
    assert "v.index: finds " in quick.stderr


def test_an_index_of_other_vectors_is_refused(here, capsys):
    changed = clustered()
    changed[0, 0] += 1
    save(here / "other.npy", WORDS, changed)
    code = run(["neighbors", "other.npy", "w1", "--index", "v.index"])
    assert "v.index: is the index of other vectors" in refused(capsys, code)
    save(here / "named.npy", [f"x{i}" for i in range(3000)], clustered())
    code = run(["neighbors", "named.npy", "x1", "--index", "v.index"])
    assert "v.index: is the index of other vectors" in refused(capsys, code)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data[: len(data) // 2], "is damaged; delete it"),
        (lambda data: data[:-9] + b"x" + data[-8:], "is damaged; delete it"),
        (lambda data: data[: data.index(b"{")] + b"{]\n", "is damaged; delete it"),
        (lambda data: b"", "is not an index; give another FILE"),
        (lambda data: b"2 3\nking 1 2 3\n", "is not an index; give another FILE"),
    ],
)
def test_other_files_are_refused_and_left_alone(here, capsys, change, message):
    path = here / "v.index"
    path.write_bytes(changed := change(path.read_bytes()))
    assert message in refused(capsys, run(["neighbors", "v.npy", "w1", "--index", "v.index"]))
    assert path.read_bytes() == changed


def test_paths_that_clash_are_refused(here, capsys):
    assert "v.npy" in refused(capsys, run(["neighbors", "v.npy", "w1", "--index", "v.npy"]))
    assert "no/x" in refused(capsys, run(["neighbors", "v.npy", "w1", "--index", "no/x"]))
    for stream in ("-", "/dev/null", "/dev/stdout"):
        found = refused(capsys, run(["neighbors", "v.npy", "w1", "--index", stream]))
        assert f"--index {stream}: is a stream; give a file" in found
    (here / "dir").mkdir()
    assert "dir" in refused(capsys, run(["neighbors", "v.npy", "w1", "--index", "dir"]))

"""Unexpected inputs: one error line, and no other exception."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from helpers import write_corpus
from scipy import sparse

from dcme_w2v.cli.main import run

DOCS = "".join(f"{'xy'[i % 2]}\t{('aa bb ab', 'cc bc ca')[i % 2]} ac\n" for i in range(20))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    (folder / "d.txt").write_text(DOCS)
    rows = " ".join(
        f"{w} {i} 1 1 0\n" for i, w in enumerate(["aa", "bb", "ab", "cc", "bc", "ca", "ac"])
    )
    (folder / "v.txt").write_text(f"7 4\n{rows}".replace("\n ", "\n"))
    (folder / "zero.txt").write_text("3 2\naa 0 0\nbb 0 0\ncc 0 0\n")
    (folder / "pairs").write_text("aa\tbb\t1\naa\tcc\t2\nbb\tcc\t3\n")
    (folder / "questions").write_text("aa bb cc ab\n")
    (folder / "empty").write_text("")
    write_corpus(folder / "c.txt", lines=40)
    sparse.save_npz(folder / "none.npz", sparse.csr_matrix((0, 5), dtype=np.float32))
    np.save(folder / "vec.npy", np.ones((3, 4), dtype=np.float32))
    before = Path.cwd()
    os.chdir(folder)
    try:
        for line in (
            "classify train d.txt --output k --epochs 1 --quiet",
            "scdv fit d.txt --vectors v.txt --output m --clusters 2 --quiet",
            "scdv transform m d.txt --output r.npz",
        ):
            assert run(line.split()) == 0
    finally:
        os.chdir(before)
    return folder


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        (
            "classify train none.npz --labels empty --output new",
            1,
            "no document has a label; give --labels FILE",
        ),
        ("scdv plot vec.npy --output p.png", 1, "vec.npy"),
        ("scdv plot v.txt --output p.png", 1, "v.txt"),
        ("scdv plot r.npz --output p.png --labels empty", 1, "has 0 lines for 20 rows"),
        ("scdv search m r.npz aa --documents empty", 1, "rows"),
        ("scdv search m r.npz \udcff", 2, "QUERY: is not UTF-8"),
        ("scdv topics k", 1, "is a model of kind 'classifier'"),
        ("classify explain m x", 1, "kind"),
        ("classify explain v.txt x", 1, "v.txt"),
        ("eval similarity zero.txt pairs", 1, "the cosines of all 3 covered pairs are 0"),
        ("eval analogies v.txt questions --restrict -1", 2, "--restrict"),
        ("eval analogies v.txt questions --restrict 99999999999999999999", 2, "--restrict"),
        ("eval likelihood v.txt empty --context v.txt", 1, "empty"),
        ("eval likelihood vec.npy c.txt --context v.txt", 1, "vec"),
        ("eval likelihood k c.txt --context v.txt", 1, "k"),
        ("scdv fit d.txt --vectors v.txt --output new --tolerance inf", 2, "a finite number"),
    ],
)
def test_an_odd_input_is_one_error_line(made, tmp_path, monkeypatch, capsys, command, code, said):
    for path in made.iterdir():
        (tmp_path / path.name).symlink_to(path)
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    assert run(command.split(" ")) == code
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("error: ") and err.count("\n") == 1
    assert said in err and "a bug" not in err
    assert sorted(tmp_path.iterdir()) == before


def test_missing_glyphs_cause_no_warnings(made, tmp_path):
    pytest.importorskip("matplotlib")
    labels = tmp_path / "labels"
    labels.write_text("a\tb\n\U000f0000\n" * 10)
    line = f"scdv plot {made}/r.npz --output {tmp_path}/p.png --method pca --labels {labels}"
    assert run(line.split()) == 0  # warnings are errors here


def test_measures_of_odd_vectors_are_valid_json(made, capsys):
    """NaN is not valid JSON."""
    for command in (f"scdv topics {made}/m --json", f"classify test {made}/k {made}/d.txt --json"):
        assert run(command.split()) == 0
        json.loads(capsys.readouterr().out, parse_constant=lambda name: pytest.fail(name))

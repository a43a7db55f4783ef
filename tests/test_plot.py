"""`dcme-w2v plot`: pictures of each kind of file, formats, and errors."""

import json

import numpy as np
import pytest
from helpers import refused, save
from scipy.sparse import csr_matrix, save_npz

from dcme_w2v.cli.main import run

matplotlib = pytest.importorskip("matplotlib")

MAGIC = {".png": b"\x89PNG", ".pdf": b"%PDF", ".svg": b"<?xml"}


def log(path, losses, **more):
    """Write a log with one epoch per loss."""
    lines = [{"event": "start", "seconds": 0, "stage": "training", "unit": "words", "total": 9}]
    for epoch, loss in enumerate(losses, 1):
        lines.append({"event": "progress", "seconds": 1, "done": epoch, "loss": loss, "lr": 0.1})
        figures = {"epoch": epoch, "loss": loss, "lr": 0.1} | more
        lines.append({"event": "epoch", "seconds": 1, **figures})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(path)


def texts_of(path):
    """Return an SVG picture as text."""
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize("suffix", MAGIC)
def test_learning_curves_in_every_format(suffix, tmp_path):
    one, two = log(tmp_path / "one", [3, 2, 1.5]), log(tmp_path / "two", [3, 2.5], heldout=-7.0)
    out = tmp_path / f"p{suffix}"
    assert run(["plot", one, two, "--output", str(out)]) == 0
    assert out.read_bytes().startswith(MAGIC[suffix])
    before = out.read_bytes()
    assert run(["plot", one, two, "--output", str(out)]) == 0
    assert out.read_bytes() == before  # no date or random name in it


def test_words_on_a_plane(tmp_path):
    words = ["a$b", "<script>", "übel", "d", "e", "f_g"]
    path = save(tmp_path / "v.npy", words, np.random.default_rng(0).normal(size=(6, 5)))
    out = tmp_path / "p.svg"
    flags = ["--output", str(out), "--method", "pca"]
    assert run(["plot", str(path), *flags]) == 0
    svg = texts_of(out)
    assert all(f">{word}<" in svg for word in ("a$b", "&lt;script&gt;", "übel", "f_g"))
    assert run(["plot", str(path), *flags, "--words", "a$b d e"]) == 0
    assert ">f_g<" not in texts_of(out)


def test_a_missing_extra_is_that_of_plots(tmp_path, capsys, monkeypatch):
    path = save(tmp_path / "v.npy", list("abcd"), np.eye(4))
    for module in ("openTSNE", "matplotlib.figure"):
        monkeypatch.setitem(__import__("sys").modules, module, None)
        code = run(["plot", str(path), "--output", str(tmp_path / "p.png")])
        assert "pip install 'dcme-w2v[plot]'" in refused(capsys, code)


def test_names_are_not_markup(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("$\\frac$", "_log"):
        log(tmp_path / name, [3, 2])
    assert run(["plot", "$\\frac$", "_log", "--output", "logs.svg"]) == 0
    save_npz("rows.npz", csr_matrix(np.eye(4, 5, dtype=np.float32)))
    (tmp_path / "labels").write_text("_log\n$\\frac$\n_log\nb\n")
    flags = ["--labels", "labels", "--method", "pca", "--output", "rows.svg"]
    assert run(["scdv", "plot", "rows.npz", *flags]) == 0
    for picture in ("logs.svg", "rows.svg"):
        svg = texts_of(tmp_path / picture)
        assert "$\\frac$<" in svg and "_log<" in svg


@pytest.mark.parametrize(
    ("content", "flags", "message"),
    [
        (b'{"event": "end", "seconds": 1}\n', "", "has no epoch with a loss"),
        (b'{"event": "epoch", "epoch": 1, "loss": 2}\n', "--field x", "the logs have loss"),
        (b"a 1 2\nb 3 4\nc 5 6\n", "--words a", "1 words; a picture needs 3"),
        (b"a 1 2\nb 3 4\nc 5 6\n", "--words a,b", "'a,b' is not among the 3 words"),
        (b"a 1 2 3\nb 3 4 3\nc 5 6 3\n", "--field loss", "is not an option of word vectors"),
    ],
)
def test_invalid_inputs_of_plots(content, flags, message, tmp_path, capsys):
    path, out = tmp_path / "x", tmp_path / "p.png"
    path.write_bytes(content)
    code = run(["plot", str(path), "--output", str(out), *flags.split()])
    assert message in refused(capsys, code)
    assert not out.exists()

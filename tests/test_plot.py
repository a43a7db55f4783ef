"""`dcme-w2v plot`: pictures of each kind of file, formats, and errors."""

import json

import numpy as np
import pytest
from helpers import refused, save
from scipy.sparse import csr_matrix, save_npz

from dcme_w2v.cli.main import run
from dcme_w2v.plots.words import free_places

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


def test_losses_and_log_probabilities_have_a_panel_and_every_log_a_line(tmp_path):
    figures = {"heldout_log_probability": -7.0, "heldout_gap": 0.1, "heldout_seconds": 1}
    one, two = log(tmp_path / "one", [3, 2, 1.5]), log(tmp_path / "$two$", [3, 2.5], **figures)
    out = tmp_path / "p.svg"
    assert run(["plot", one, two, "--output", str(out)]) == 0
    svg = texts_of(out)
    for text in (">loss<", ">heldout log probability<", ">epoch<", one):
        assert text in svg
    assert not any(text in svg for text in (">lr<", ">heldout gap<", ">heldout seconds<"))
    assert run(["plot", one, two, "--output", str(out), "--field", "lr"]) == 0
    assert ">lr<" in texts_of(out) and ">loss<" not in texts_of(out)


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


def test_labels_of_words_do_not_overlap():
    points = np.random.default_rng(0).normal(size=(60, 2)) * 80
    widths = [6.4 * (3 + i % 9) for i in range(60)]
    corners = points + np.array(free_places(points.tolist(), widths))
    for i in range(60):
        for j in range(i):
            apart_x = corners[i, 0] - corners[j, 0]
            beside = apart_x >= widths[j] or -apart_x >= widths[i]
            assert beside or abs(corners[i, 1] - corners[j, 1]) >= 12 - 1e-6


def test_a_legend_of_many_labels_has_the_most_frequent_ones(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save_npz("rows.npz", csr_matrix(np.random.default_rng(0).random((99, 5), dtype=np.float32)))
    (tmp_path / "labels").write_text("".join(f"l{i % 45 if i < 90 else 7}\n" for i in range(99)))
    flags = ["--labels", "labels", "--method", "pca", "--output", "rows.svg"]
    assert run(["scdv", "plot", "rows.npz", *flags]) == 0
    svg = texts_of(tmp_path / "rows.svg")
    assert ">l7<" in svg and ">6 other labels<" in svg and svg.count(">l") == 39


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
        (b"a 1 2 3\nb 3 4 3\nc 5 6 3\n", "--method umap", "must be one of tsne, pca"),
        (b"a 1 2 3\nb 3 4 3\nc 5 6 3\n", "--field loss", "is not an option of word vectors"),
        (b'{"event": "epoch", "epoch": 1, "loss": 2}\n', "--words a", "is not an option of logs"),
        (b"some text\n", "", "neither a header"),
    ],
)
def test_invalid_inputs_of_plots(content, flags, message, tmp_path, capsys):
    path, out = tmp_path / "x", tmp_path / "p.png"
    path.write_bytes(content)
    code = run(["plot", str(path), "--output", str(out), *flags.split()])
    assert message in refused(capsys, code)
    assert not out.exists()


def test_several_files_and_other_suffixes(tmp_path, capsys):
    one, other = log(tmp_path / "one", [3, 2]), tmp_path / "v"
    other.write_text("a 1\n")
    code = run(["plot", one, str(other), "--output", str(tmp_path / "p.png")])
    assert f"{other}: is not a log" in refused(capsys, code)
    code = run(["plot", one, "--output", str(tmp_path / "p.jpg")])
    assert "ends in .png, .pdf or .svg" in refused(capsys, code)
    assert "is a stream" in refused(capsys, run(["plot", "-", "--output", str(tmp_path / "p")]))

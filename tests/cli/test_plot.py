"""`dcme-w2v plot`: pictures of each kind of file, formats, and errors."""

import json
import sys
import xml.dom.minidom
from pathlib import Path

import numpy as np
import pytest
from helpers import edit, save

import dcme_w2v as dw

matplotlib = pytest.importorskip("matplotlib")

MAGIC = {".png": b"\x89PNG", ".pdf": b"%PDF", ".svg": b"<?xml"}


def log(name, losses, **more):
    """Write a log with one epoch per loss."""
    lines = [{"event": "start", "seconds": 0, "stage": "training", "unit": "words", "total": 9}]
    for epoch, loss in enumerate(losses, 1):
        lines.append({"event": "progress", "seconds": 1, "done": epoch, "loss": loss, "lr": 0.1})
        figures = {"epoch": epoch, "loss": loss, "lr": 0.1} | more
        lines.append({"event": "epoch", "seconds": 1, **figures})
    Path(name).write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.mark.parametrize("suffix", MAGIC)
def test_learning_curves_in_every_format(suffix, cli):
    log("one", [3, 2, 1.5])
    log("two", [3, 2.5], heldout=-7.0)
    found = []
    for _ in range(2):
        cli(f"plot one two --output p{suffix}")
        found.append(Path(f"p{suffix}").read_bytes())
    assert found[0].startswith(MAGIC[suffix])
    assert found[0] == found[1]  # no date or random name in it


ODD = ["\x01", "\x1b", "\ufffe", "\uffff", "\ufeff", "\U0001fffe", "\ue000", "\x7f", "\x85",
       "\u200c", "\u0378", "\U0001f600", "\u4e2d", "\u05d0", "$", "&", "<", "]]>"]  # fmt: skip


@pytest.mark.parametrize("suffix", MAGIC)
def test_any_character_is_drawn_without_a_warning(suffix, cli):
    words = [*ODD, *(f"a{one}b" for one in ODD), "a" * 400]
    rows = np.random.default_rng(1).normal(size=(len(words), 4))
    dw.Vectors(words, rows).save("v.safetensors")
    Path("r.svm").write_text("".join(f"{i} 0:{i} 1:{i * i % 17}\n" for i in range(len(words))))
    Path("labels").write_text("".join(f"{word}\n" for word in words))
    for line in ("v.safetensors", "r.svm --labels labels"):
        cli(f"plot {line} --method pca --output p{suffix}")
        assert cli.err.count("\n") <= 1 and "Warning" not in cli.err
        if suffix == ".svg":
            xml.dom.minidom.parse("p.svg")


@pytest.mark.parametrize("count, entries", [(10, 10), (11, 10), (30, 10)])
def test_a_legend_has_ten_entries_and_epochs_are_integers(count, entries):
    for number in range(count):
        log(f"log{number}", [3, 2, 1.5 + number])
    figure = dw.plot([f"log{number}" for number in range(count)])
    ticks = figure.axes[0].get_xticks()
    assert (ticks == ticks.round()).all()
    Path("r.svm").write_text("".join(f"{i % count} 0:{i} 1:{i % 7}\n" for i in range(90)))
    figures = [figure, dw.plot("r.svm", method="pca")]
    for one, what in zip(figures, ("logs", "labels"), strict=True):
        texts = [text.get_text() for text in one.legends[0].get_texts()]
        assert len(texts) == entries
        assert (f"{count - 9} other {what}" in texts) == (count > 10)


def test_every_seed_is_a_seed():
    Path("r.svm").write_text("".join(f"x 0:{i} 1:{i * i % 17}\n" for i in range(90)))
    zero, again, one = (
        dw.plot("r.svm", seed=seed, limit=9, method="pca").axes[0].collections[0].get_offsets()
        for seed in (0, 0, 1)
    )
    assert np.array_equal(zero, again) and not np.array_equal(zero, one)


def test_words_on_a_plane(cli):
    words = ["a$b", "<script>", "übel", "d", "e", "f_g"]
    save(Path("v.safetensors"), words, np.random.default_rng(0).normal(size=(6, 5)))
    line = "plot v.safetensors --output p.svg --method pca"
    cli(line)
    svg = Path("p.svg").read_text(encoding="utf-8")
    assert all(f">{word}<" in svg for word in ("a$b", "&lt;script&gt;", "übel", "f_g"))
    figure = dw.plot(dw.Vectors.load("v.safetensors"), words="d e a$b", method="pca")
    assert [text.get_text() for text in figure.axes[0].texts] == ["d", "e", "a$b"]
    assert figure._repr_png_().startswith(MAGIC[".png"])
    cli(f"{line} --words", "a$b d e")
    assert ">f_g<" not in Path("p.svg").read_text(encoding="utf-8")
    rows = dw.Vectors.load("v.safetensors").vectors.copy()
    rows[2, 1] = np.nan
    edit("v.safetensors", {"vectors": rows})
    assert "v.safetensors" in (error := cli.error(line)) and "NaN" in error


def test_a_missing_package_is_named(cli, monkeypatch):
    save(Path("v.safetensors"), list("abcd"), np.eye(4))
    for module, method in (("matplotlib.figure", "pca"), ("openTSNE", "tsne")):
        monkeypatch.setitem(sys.modules, module, None)
        error = cli.error(f"plot v.safetensors --method {method} --output p.png")
        assert f"pip install {module.split('.')[0]}" in error

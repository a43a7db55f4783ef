"""Rows of .npz files have as many columns as those that a model was trained on."""

import numpy as np
import pytest
from helpers import refused
from scipy.sparse import csr_matrix, save_npz

from dcme_w2v.cli.main import run

KINDS = {
    "classifier": ["classify train {rows} {labels} --output {model}"],
    "latent": ["latent fit {rows} {labels} --output {model} --latent 2"],
    "fused": ["fuse fit {rows} {labels} --unlabeled {rows} --no-choose --output {model}"],
    "shrunk": [
        "classify train {rows} {labels} --output {model}-whole",
        "fuse shrink {model}-whole --output {model} --keep 4",
    ],
    "merged": [
        "classify train {rows} {labels} --output {model}-one",
        "merge {model}-one {model}-one --output {model}",
    ],
}
USES = {
    "test": "classify test {model} {rows} {labels}",
    "predict": "classify predict {model} {rows}",
    "labels": "classify predict {model} {rows} --no-probabilities",
}
OTHERS = {
    "latent": "latent transform {model} {rows} --output {model}-out.npz",
    "fused": "fuse transform {model} {rows} --output {model}-out.npz",
    "classifier": "fuse statistics {model} {rows} --output {model}-out.npz",
}


def call(line, **names):
    return run([one.format(**names) for one in line.replace("{labels}", "--labels {y}").split()])


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """Rows of 5, 6 and 7 columns, and of svmlight; a model of each kind, from 6."""
    path = tmp_path_factory.mktemp("rows")
    random = np.random.default_rng(1)
    for columns in (5, 6, 7):
        save_npz(path / f"{columns}.npz", csr_matrix(random.integers(0, 3, (40, columns)) * 1.0))
    (path / "y").write_text("a\nb\n" * 20)
    (path / "9.svm").write_text("a 1:1 9:2\nb 2:1\n" * 20)
    names = {"rows": path / "6.npz", "y": path / "y"}
    for kind, lines in KINDS.items():
        for line in lines:
            assert call(line + " --quiet" * ("merge" not in line), **names, model=path / kind) == 0
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_other_columns_are_an_error(kind, here, capsys):
    uses = [*USES.values(), *([OTHERS[kind]] if kind in OTHERS else [])]
    for line in uses:
        names = {"model": here / kind, "y": here / "y"}
        assert call(line, **names, rows=here / "6.npz") == 0
        for columns in (5, 7):
            capsys.readouterr()
            path = here / f"{columns}.npz"
            said = refused(capsys, call(line, **names, rows=path))
            assert said == (
                f"error: {path}: has {columns} columns, the model was trained on 6; "
                "give rows of the same features\n"
            )
    assert call(USES["predict"], model=here / kind, rows=here / "9.svm") == 0


def test_columns_of_svmlight_are_those_that_occur(here, capsys):
    """A model that was trained on it takes any."""
    model = here / "of-svm"
    assert (
        call("classify train {rows} --output {model} --quiet", rows=here / "9.svm", model=model)
        == 0
    )
    for columns in (5, 6, 7):
        assert call(USES["predict"], model=model, rows=here / f"{columns}.npz") == 0
    mixed = "fuse fit {rows} --unlabeled {u} --no-choose --output {model} --quiet"
    assert call(mixed, rows=here / "9.svm", u=here / "5.npz", model=here / "mixed") == 0
    assert call(USES["predict"], model=here / "mixed", rows=here / "7.npz") == 0


@pytest.mark.parametrize("command", ["classify train", "latent fit"])
def test_held_out_rows_of_other_columns_are_an_error_before_the_training(
    command, here, tmp_path, capsys
):
    line = f"{command} {{rows}} {{labels}} --holdout {{held}} --output {{model}}"
    names = {"y": here / "y", "model": tmp_path / "m", "held": here / "7.npz"}
    assert call(line, **names, rows=here / "6.npz") == 1
    said = capsys.readouterr().err
    assert "7.npz: has 7 columns, the model was trained on 6" in said and "loss" not in said

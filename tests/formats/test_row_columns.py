"""Rows of .npz files have as many columns as those that a model was trained on."""

from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix, save_npz

KINDS = {
    "classifier": ["classify train {rows} --labels y --output m"],
    "latent": ["latent fit {rows} --labels y --output m --latent 2"],
    "fused": ["fuse fit {rows} --labels y --unlabeled {rows} --no-choose --output m"],
    "shrunk": [
        "classify train {rows} --labels y --output whole",
        "classify shrink whole --output m --keep 4",
    ],
}
USES = (
    "classify test m {rows} --labels y",
    "classify predict m {rows}",
)
OTHERS = {
    "latent": "transform m {rows} --output out.npz",
    "fused": "transform m {rows} --output out.npz",
}


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_other_columns_are_an_error(kind, cli):
    for line in KINDS[kind]:
        cli(line.format(rows="6.npz"))
    for line in (*USES, OTHERS.get(kind, USES[0])):
        cli(line.format(rows="6.npz"))
        for columns in (5, 7):
            assert cli.error(line.format(rows=f"{columns}.npz")) == (
                f"error: {columns}.npz has {columns} columns, but the model was trained on 6 "
                "columns; use rows with the model's features\n"
            )
    cli("classify predict m 9.svm")


@pytest.mark.parametrize(
    "line, columns",
    [
        ("classify train 9.svm --output m --quiet", (5, 6, 7)),
        ("fuse fit 9.svm --unlabeled 5.npz --no-choose --output m --quiet", (7,)),
    ],
)
def test_columns_of_svmlight_are_those_that_occur(line, columns, cli):
    """A model that was trained on it takes any."""
    cli(line)
    for number in columns:
        cli(f"classify predict m {number}.npz")


@pytest.mark.parametrize("command", ["classify train", "latent fit"])
def test_held_out_rows_of_other_columns_are_an_error_before_the_training(command, cli):
    cli(f"{command} 6.npz --labels y --holdout 7.npz --output m", code=1)
    assert (
        "7.npz has 7 columns, but the model was trained on 6" in cli.err and "loss" not in cli.err
    )


@pytest.fixture(autouse=True)
def rows():
    """Rows of 5, 6 and 7 columns, and of svmlight."""
    random = np.random.default_rng(1)
    for columns in (5, 6, 7):
        save_npz(f"{columns}.npz", csr_matrix(random.integers(0, 3, (40, columns)) * 1.0))
    Path("y").write_text("a\nb\n" * 20)
    Path("9.svm").write_text("a 1:1 9:2\nb 2:1\n" * 20)

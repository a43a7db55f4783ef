"""`classify train` without --ngrams: pairs of words where they predict clearly better."""

from pathlib import Path

import numpy as np
import pytest
from helpers import arrays_in, described

from dcme_w2v.classify import feature_sets

TRAIN = "classify train d.tsv --threads 1"
NEGATED = ("good", "bad")


def texts(ordered, count=600, seed=0):
    """Lines whose label depends on which of two words comes after "not", or on a word alone."""
    random = np.random.default_rng(seed)
    lines = []
    for i in range(count):
        label, other = NEGATED[:: 1 if i % 2 else -1]
        said = f"{other} but not {label}" if ordered else label
        noise = [f"x{random.integers(60)}" for _ in range(6)]
        lines.append(f"{label}\t{' '.join(noise[:3])} {said} {' '.join(noise[3:])}\n")
    return "".join(lines)


@pytest.fixture(autouse=True)
def corpus(here):
    Path("d.tsv").write_text(texts(True))
    Path("t.tsv").write_text(texts(True, 200, seed=1))
    Path("plain.tsv").write_text(texts(False))


@pytest.mark.parametrize("command, ngrams", [
    (TRAIN, 2),
    (f"{TRAIN} --holdout 0.2", 2),
    (TRAIN.replace("d.tsv", "plain.tsv"), 1),
    (f"{TRAIN} --ngrams 1", 1),
    (f"{TRAIN} --loss hinge --lr 0.5", 1),  # nothing is chosen
    (f"{TRAIN} --hashing 4096", 1),
    (TRAIN.replace("train d.tsv", "train -"), 2),
])  # fmt: skip
def test_pairs_are_chosen_where_they_are_clearly_better(cli, command, ngrams):
    cli(f"{command} --output m", stdin=Path("d.tsv").read_bytes())
    assert described("m")["features"]["ngrams"] == ngrams
    assert ("--ngrams 2" in cli.err) == (ngrams == 2)
    accuracy = cli.json("classify test m t.tsv")["accuracy"]
    assert accuracy > 0.9 if ngrams == 2 else accuracy < 0.9 or "plain" in command


def test_longer_texts_have_single_words(cli, monkeypatch):
    monkeypatch.setattr(feature_sets, "KEPT_BYTES", 1000)
    cli(f"{TRAIN} --holdout t.tsv --output m")
    assert "pairs of words" not in cli.err
    assert described("m")["features"]["ngrams"] == 1


def test_the_model_is_the_model_of_the_flags_that_were_chosen(cli):
    cli(f"{TRAIN} --output m")
    [line] = [line for line in cli.err.splitlines() if "held out" in line]
    cli(f"{TRAIN} --output same {line.split(', by ')[0]}")
    assert arrays_in("m") == arrays_in("same")


def test_a_resumed_run_has_the_pairs(cli):
    cli(f"{TRAIN} --output m --checkpoint state --checkpoint-every 1")
    cli(f"{TRAIN} --output again --resume state")
    assert "pairs of words" not in cli.err
    assert described("again")["features"] == described("m")["features"]
    assert arrays_in("m") == arrays_in("again")


def test_a_dry_run_counts_the_pairs(cli):
    plans = [cli.json(f"{TRAIN} --output m --dry-run {more}") for more in ("", "--ngrams 1")]
    assert plans[0]["output_bytes"] > 2 * plans[1]["output_bytes"]

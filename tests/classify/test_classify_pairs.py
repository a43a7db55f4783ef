"""`classify train` without --ngrams: pairs of words where they predict clearly better."""

from pathlib import Path

import numpy as np
import pytest
from helpers import described

from dcme_w2v.classify import features, train

TRAIN = "classify train d.tsv --threads 1"
NEGATED = ("good", "bad")


def texts(ordered, count=600, seed=0, noise=6, kinds=60):
    """Lines whose label is one of two words: the one after "not", or the only one."""
    random = np.random.default_rng(seed)
    lines = []
    for i in range(count):
        label, other = NEGATED[:: 1 if i % 2 else -1]
        said = f"{other} but not {label}" if ordered else label
        words = [f"x{random.integers(kinds)}" for _ in range(noise)]
        lines.append(f"{label}\t{' '.join(words[:3])} {said} {' '.join(words[3:])}\n")
    return "".join(lines)


@pytest.fixture(autouse=True)
def corpus():
    Path("d.tsv").write_text(texts(True))
    Path("t.tsv").write_text(texts(True, 200, seed=1))


@pytest.mark.parametrize("more, ngrams, of_lead", [
    ("", 1, 2),
    ("--holdout 0.2", 1, 2),
    ("--lead 3 --tune", 2, 2),  # the first words do not reach it
    ("--ngrams 1", 1, 1),
    ("--lead-ngrams 1", 1, 1),
    ("--loss hinge --lr 0.5", 1, 2),  # nothing is chosen
    ("--lead 3 --hashing 4096", 1, 2),
    ("--lead 3 --weighting count", 1, 1),
])  # fmt: skip
def test_pairs_are_chosen_where_they_are_clearly_better(cli, more, ngrams, of_lead):
    cli(
        f"classify train - --threads 1 --subwords none --output m {more}",
        stdin=Path("d.tsv").read_bytes(),
    )
    features = described("m")["features"]
    assert (features["ngrams"], features["lead_ngrams"]) == (ngrams, of_lead)
    accuracy = cli.json("classify test m t.tsv")["accuracy"]
    has_pair = ngrams == 2 or (of_lead == 2 and "--lead 3" not in more)
    assert accuracy > 0.9 if has_pair else accuracy < 0.9


# of noise, pairs, each of them rare, take most of a vector's length from the word that matters
@pytest.mark.parametrize("made", [{"count": 900}, {"noise": 60, "kinds": 100}])
def test_single_words_are_features_where_pairs_are_not_better(cli, made):
    Path("d.tsv").write_text(texts(False, **made))
    cli(f"{TRAIN} --subwords none --output m")
    features = described("m")["features"]
    assert (features["ngrams"], features["lead_ngrams"]) == (1, 1), cli.err


def test_longer_texts_have_the_pairs_of_the_first_words(cli, monkeypatch):
    monkeypatch.setattr(train, "KEPT_BYTES", 1000)
    cli(f"{TRAIN} --lead 3 --holdout t.tsv --output m")
    assert "--subwords 1-4" not in cli.err
    assert described("m")["features"]["lead_ngrams"] == 2


@pytest.mark.parametrize("classes, of_lead", [(2, 2), (1, 1)])
def test_very_many_labels_have_single_words(cli, monkeypatch, classes, of_lead):
    monkeypatch.setattr(train, "TABLE_CLASSES", classes)
    counted, count = [], features.NGrams
    monkeypatch.setattr(features, "NGrams", lambda *own: counted.append(own[2]) or count(*own))
    cli(f"{TRAIN} --objective nce --output m")
    assert described("m")["features"]["lead_ngrams"] == of_lead
    assert counted == [range(2, of_lead + 1)]  # none that are dropped later

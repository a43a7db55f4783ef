"""`scdv fit --tune`: clusters and power that are chosen on held-out documents."""

import dataclasses
import shlex
from pathlib import Path

import numpy as np
import pytest
from helpers import described

from dcme_w2v import Vectors
from dcme_w2v.errors import CorpusError, UsageError
from dcme_w2v.formats.documents import Document
from dcme_w2v.formats.vocabulary import Words
from dcme_w2v.scdv import tune
from dcme_w2v.scdv.model import DocumentModel
from dcme_w2v.scdv.options import ScdvOptions
from dcme_w2v.scdv.tune import tune_documents

GROUPS, WORDS = 16, 6


def vectors():
    """Words in groups around points in a plane."""
    random = np.random.default_rng(0)
    angles = np.repeat(np.arange(GROUPS) * 2 * np.pi / GROUPS, WORDS)
    points = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    points = points + 0.02 * random.standard_normal(points.shape)
    names = [f"g{i // WORDS}w{i % WORDS}" for i in range(GROUPS * WORDS)]
    return Vectors(Words.from_words(names), points.astype(np.float32))


def documents(count=300):
    """Documents of words of every second group: their sums are near each other."""
    random = np.random.default_rng(1)
    found = []
    for i in range(count):
        own = [
            f"g{2 * random.integers(GROUPS // 2) + i % 2}w{random.integers(WORDS)}"
            for _ in range(12)
        ]
        found.append(Document((f"c{i % 2}",), " ".join(own).encode(), "d", i + 1))
    return found


SMALL = ScdvOptions(iterations=30, clusters=2)

FIT = "scdv fit d.tsv --vectors v.txt --iterations 30"


def chosen(options=None, fixed=(), seconds=600.0, **more):
    options = options or SMALL
    return tune_documents(documents(), vectors(), options, fixed, seconds, 1, **more)


@pytest.fixture
def corpus(here):
    vectors().save("v.txt")
    lines = [f"{one.labels[0]}\t{one.text.decode()}\n" for one in documents()]
    Path("d.tsv").write_text("".join(lines))


def test_more_clusters_are_chosen_where_they_separate_classes(monkeypatch):
    monkeypatch.setitem(tune.CANDIDATES, "clusters", (2, GROUPS))
    monkeypatch.setitem(tune.CANDIDATES, "tfidf", (0.0,))
    options, tuned, _ = chosen(dataclasses.replace(SMALL, tfidf=0.0), ("tfidf",))
    assert options.clusters == GROUPS and tuned.is_complete
    own = [one for one in tuned.trials if "features" not in one]
    by_clusters = {one["clusters"]: one["accuracy"] for one in own}
    assert by_clusters[GROUPS] > by_clusters[2] + 0.2
    names = ("power", "center", "clusters")
    assert tuned.setting == {name: getattr(options, name) for name in names}


def test_the_chosen_options_give_the_same_model(corpus, cli, monkeypatch):
    monkeypatch.setitem(tune.CANDIDATES, "clusters", (3, 8))
    record = cli.json(f"{FIT} --tune --output m")["tune"]
    assert f"--tune: {record['flags']}, with an accuracy of" in cli.err
    kept = described("m")
    assert kept["facts"]["tune"] == record and record["held_out"] == 300
    cli(f"{FIT} --output again", *shlex.split(record["flags"]))
    one, other = (DocumentModel.load(name) for name in ("m", "again"))
    assert one.options == other.options and one.threshold == other.threshold
    assert one.posteriors.data.tobytes() == other.posteriors.data.tobytes()


def test_given_options_are_held_fixed(corpus, cli):
    record = cli.json(f"{FIT} --tune --clusters 5 --output m --quiet")["tune"]
    assert not any("clusters" in one for one in record["trials"])
    assert {one["power"] for one in record["trials"]} == set(tune.CANDIDATES["power"])
    assert DocumentModel.load("m").options.clusters == 5 and "--tune" not in cli.err


def test_a_search_needs_labels_and_something_to_choose():
    one = [document._replace(labels=("c",)) for document in documents()]
    for given in (one, [document._replace(labels=()) for document in one]):
        with pytest.raises(CorpusError, match=r"tune=5: .* too few"):
            tune_documents(given, vectors(), ScdvOptions(), (), 5.0)
    for options, fixed in (
        (ScdvOptions(features="tfidf"), ()),
        (ScdvOptions(), tune.SEARCHED["scdv"]),
    ):
        with pytest.raises(UsageError, match="nothing is left to choose"):
            tune_documents(documents(), vectors(), options, fixed, 5.0)


def test_a_baseline_that_is_better_is_named():
    """A word decides, which has the same vector as the words of the other class."""
    found = [one._replace(text=b"yes no"[: 3] + b" w" if i % 2 else b"no w") for i, one in
             enumerate(documents(60))]  # fmt: skip
    same = Vectors(Words.from_words(["yes", "no", "w"]), np.ones((3, 4), dtype=np.float32))
    labeled = [one._replace(labels=(f"c{i % 2}",)) for i, one in enumerate(found)]
    options = ScdvOptions(clusters=1, tfidf=0.0, iterations=2, center=False)
    _, tuned, note = tune_documents(labeled, same, options, ("tfidf", "center"), 100.0, 1)
    assert tuned.accuracy == 1 and note.endswith("--features tfidf")

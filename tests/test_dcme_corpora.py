"""DCME with defaults on real text: never NaN, better than the unigram model. Takes minutes."""

import dataclasses
import lzma
from pathlib import Path

import numpy as np
import pytest

from dcme_w2v.options import TrainOptions, VocabularyOptions
from dcme_w2v.text.encode import encode
from dcme_w2v.words.defaults import resolved
from dcme_w2v.words.heldout import biases_of
from dcme_w2v.words.likelihood import LAST, likelihood
from dcme_w2v.words.trainer import Trainer

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
CORPORA = (
    "20news/train.tsv.xz",
    "reuters21578/train.tsv.xz",
    "wikipara/train.tsv.xz",
    "corpora/enwiki17.txt.xz",
)
HELD_EVERY = 50


def plain_text(packed, folder):
    """The texts of a file of labelled documents or of a plain one, one per line."""
    target = folder / "corpus.txt"
    with lzma.open(packed, "rt", encoding="utf-8", errors="replace") as source:
        text = source.read().replace("\0", "")
    if packed.name.endswith(".tsv.xz"):
        text = "\n".join(line.split("\t", 1)[-1] for line in text.split("\n"))
    target.write_text(text, encoding="utf-8")
    return str(target)


@pytest.mark.slow
@pytest.mark.parametrize("name", CORPORA)
@pytest.mark.parametrize("options", [{}, {"window": 10, "window_mode": "fixed", "sample": 0.0}])
def test_dcme_is_better_than_the_unigram(name, options, tmp_path):
    if not (DATA / name).exists():
        pytest.skip(f"needs {DATA / name}")
    with encode([plain_text(DATA / name, tmp_path)], VocabularyOptions()) as corpus:
        ids, counts = np.array(corpus.ids), corpus.vocabulary.counts
    last = ids >> np.uint32(31)
    held = (np.cumsum(last) - last) % HELD_EVERY == HELD_EVERY - 1
    chosen = resolved(TrainOptions(objective="dcme", **options))
    training = Trainer(ids[~held], counts, chosen)
    (prior,) = biases_of(counts, dataclasses.asdict(chosen))
    unigram = np.log(counts / counts.sum())
    text = ids[held][:35_000]
    baseline = unigram[text & ~LAST].mean()
    for epoch in range(chosen.epochs):
        training.epoch(epoch)
        found = likelihood(text, training.input, training.output, chosen.window, prior)
        print(f"{name} {options} epoch {epoch + 1}: {found}, unigram {baseline:.3f}")
        assert found.log_probability > baseline

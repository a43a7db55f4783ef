"""Floors of what the defaults reach on text of this machine: the documentation of its packages."""

import random

import numpy as np
import pytest

import dcme_w2v as dw
from dcme_w2v.cli.machine import paragraphs_with_labels

pytestmark = pytest.mark.long

PLURALS, CLASSES = 0.25, 0.5  # below what they reach on other versions of this text


@pytest.fixture(scope="module")
def paragraphs():
    labels = list(paragraphs_with_labels().items())
    random.Random(1).shuffle(labels)
    return labels[:20_000]


def test_words_are_near_their_plurals(paragraphs):
    lines = [line.split() for line, _ in paragraphs]
    vectors = dw.train(lines, epochs=10, threads=1)
    frequent = [word for word in vectors.words[:3000] if f"{word}s" in vectors and len(word) > 3]
    near = [{one.word for one in vectors.most_similar(word, topn=10)} for word in frequent]
    found = [f"{word}s" in one for word, one in zip(frequent, near, strict=True)]
    assert len(found) > 100 and np.mean(found) > PLURALS


def test_documentation_is_classified_by_its_package(paragraphs, cli, tmp_path):
    lines = [f"{label}\t{line}\n" for line, label in paragraphs[:10_000]]
    for name, part in (("train.tsv", lines[:8_000]), ("test.tsv", lines[8_000:])):
        (tmp_path / name).write_text("".join(part), encoding="utf-8")
    train, test, model = (str(tmp_path / name) for name in ("train.tsv", "test.tsv", "m"))
    cli(f"classify train {train} --threads 1 --quiet --output {model}")
    assert cli.json(f"classify test {model} {test}")["accuracy"] > CLASSES

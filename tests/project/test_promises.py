"""Equal bits: what docs/reference/promises.md says about results, kind by kind of model."""

from pathlib import Path

import numpy as np
import pytest
from data import DOCS, make_texts, word_vectors
from scipy.sparse import csr_matrix

from dcme_w2v import SCDV, LatentClassModel, TextClassifier
from dcme_w2v.cli.main import run
from dcme_w2v.formats import artifact

TEXTS = [text.decode() for text in make_texts()]
LABELS = np.arange(len(TEXTS)) % 3


def rows(features=70):
    """Return dense rows, and a label of three for each."""
    found = np.random.default_rng(3).normal(size=(len(TEXTS), features)) + LABELS[:, None] / 4
    return csr_matrix(found.astype(np.float32))


# ---- what is saved ----


def fused(path):
    """Fit a classifier from few labels."""
    Path("docs.tsv").write_text(DOCS, encoding="utf-8")
    assert run(f"fuse fit docs.tsv --unlabeled docs.tsv --no-choose --output {path}".split()) == 0


SAVED = {
    "words": lambda path: word_vectors().save(path),
    "scdv": lambda path: SCDV(word_vectors(), clusters=3, iterations=3)
    .fit(TEXTS)
    .model_.save(path),
    "latent": lambda path: LatentClassModel(latent=3).fit(rows(), LABELS)._model.save(path),
    "clusters": lambda path: LatentClassModel(latent=3).fit(rows())._model.save(path),
    "texts": lambda path: TextClassifier().fit(TEXTS, LABELS).save(path),
    "fused": fused,
}


@pytest.mark.parametrize("kind", SAVED)
def test_arrays_are_saved_as_they_lie_in_memory(kind, monkeypatch):
    """A product has other bits in another layout, and what is read from a file is in C order."""
    seen, write = {}, artifact.tensor_pieces
    monkeypatch.setattr(
        artifact,
        "tensor_pieces",
        lambda arrays, *more: write(seen.setdefault("arrays", arrays), *more),
    )
    SAVED[kind]("model.safetensors")
    arrays = {name: one for name, one in seen["arrays"].items() if isinstance(one, np.ndarray)}
    assert [name for name, one in arrays.items() if not one.flags.c_contiguous] == []
    assert arrays or kind == "words"

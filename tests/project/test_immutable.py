"""Results and models are immutable or copies: what users get cannot change what was learned."""

import contextlib
import copy
import operator
import pickle
from pathlib import Path

import numpy as np
import pytest
from data import DOCS, make_texts, word_vectors
from scipy.sparse import csr_matrix, issparse

import dcme_w2v as dw
from dcme_w2v.cli.main import run

TEXTS = [text.decode() for text in make_texts()]
LABELS = np.arange(len(TEXTS)) % 3
ROWS = np.abs(np.random.default_rng(3).normal(size=(len(TEXTS), 30))).astype(np.float32)
SPARSE = csr_matrix(ROWS)
SETS = np.eye(3, dtype=np.int64)[LABELS]


def model_of(line):
    """Return the model that a command writes."""
    Path("docs.tsv").write_text(DOCS, encoding="utf-8")
    assert run([*line.split(), "--output", "m", "--quiet"]) == 0
    return dw.load("m")


def saved_and_loaded(v):
    """Return vectors from a file."""
    v.save("v.safetensors")
    return dw.load("v.safetensors")


def index_of(texts):
    """Return an index from a file."""
    dw.Search().fit(texts).save("index")
    return dw.load("index")


def trained():
    """Return word vectors with a manifest."""
    return dw.train([text.split() for text in TEXTS], min_count=1, epochs=1, dim=8, threads=1)


USED = {  # name: what makes an object, and what it answers
    "MaxentClassifier": (lambda: dw.MaxentClassifier().fit(SPARSE, LABELS), "rows"),
    "MaxentClassifier sgd": (lambda: dw.MaxentClassifier(solver="sgd").fit(ROWS, LABELS), "rows"),
    "MaxentClassifier sets": (lambda: dw.MaxentClassifier().fit(SPARSE, SETS), "rows"),
    "MaxentClassifier part": (
        lambda: dw.MaxentClassifier().partial_fit(SPARSE, LABELS, [0, 1, 2]), "rows",
    ),
    "LatentClassModel": (lambda: dw.LatentClassModel(latent=3).fit(SPARSE, LABELS), "rows"),
    "clusters": (lambda: dw.LatentClassModel(latent=3, lsa=5).fit(SPARSE), "rows"),
    "FusedFeatures": (lambda: dw.FusedFeatures(rounds=1).fit(SPARSE, LABELS), "rows"),
    "TextClassifier": (lambda: dw.TextClassifier().fit(TEXTS, LABELS), "texts"),
    "TextClassifier hashed": (
        lambda: dw.TextClassifier(hashing=64, objective="gd").fit(TEXTS, LABELS), "texts",
    ),
    "SCDV": (lambda: dw.SCDV(word_vectors(), clusters=3).fit(TEXTS), "rows of texts"),
    "SentenceEncoder": (
        lambda: dw.SentenceEncoder(word_vectors(), pooling="usif").fit(TEXTS), "rows of texts",
    ),
    "Search": (lambda: dw.Search().fit(TEXTS), "search"),
    "Search loaded": (lambda: index_of(TEXTS), "search"),
    "Vectors": (trained, "vectors"),
    "Vectors loaded": (lambda: saved_and_loaded(trained()), "vectors"),
    "classify train": (lambda: model_of("classify train docs.tsv"), "texts"),
    "classify train --max-bytes": (
        lambda: model_of("classify train docs.tsv --max-bytes 4000"), "texts",
    ),
    "classify train --objective tree": (
        lambda: model_of("classify train docs.tsv --objective tree"), "texts",
    ),
    "latent fit": (lambda: model_of("latent fit docs.tsv"), "texts"),
    "fuse fit": (
        lambda: model_of("fuse fit docs.tsv --unlabeled docs.tsv --no-choose"), "texts",
    ),
}  # fmt: skip
ANSWERS = {
    "rows": lambda found: found.predict_proba(SPARSE),
    "texts": lambda found: found.predict_proba(TEXTS),
    "rows of texts": lambda found: found.transform(TEXTS),
    "search": lambda found: [[hit.score for hit in hits] for hits in found.search(TEXTS[:20], 5)],
    "vectors": lambda found: [found.most_similar(word, topn=3) for word in found.words[:20]],
}
CHANGES = {
    np.ndarray: (lambda one: one.fill(0), lambda one: one.sort()),
    dict: (lambda one: one.update(a=1), lambda one: operator.setitem(one, "a", 1)),
    list: (lambda one: one.append(1), lambda one: one.clear()),
}  # fmt: skip
HOW = {
    "made": lambda one: one,
    "copied": copy.deepcopy,
    "pickled": lambda one: pickle.loads(pickle.dumps(one)),
}


def plain(value):
    """Return a value that can be compared; the numbers of an array."""
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, list):
        return [plain(part) for part in value]
    value = value.toarray() if issparse(value) else value
    return value.tolist() if isinstance(value, np.ndarray) else value


def values_of(owner, path=(), seen=None):
    """Yield what the public attributes of an object hold, and those of its objects, with paths."""
    seen = set() if seen is None else seen
    if id(owner) in seen:
        return
    seen.add(id(owner))
    yield path, owner
    if isinstance(owner, dict):
        parts = list(owner.items())
    elif issparse(owner):
        parts = [(name, getattr(owner, name)) for name in ("data", "indices", "indptr")]
    elif type(owner).__module__.startswith("dcme_w2v"):
        names = [name for name in dir(owner) if not name.startswith("_")]
        parts = []
        for name in names:
            with contextlib.suppress(AttributeError):
                parts.append((name, getattr(owner, name)))
    else:
        return
    for name, part in parts:
        if not callable(part):
            yield from values_of(part, (*path, name), seen)


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("kind", USED)
@pytest.mark.filterwarnings("ignore::dcme_w2v.errors.DcmeWarning")
def test_what_users_get_cannot_change_what_was_learned(kind, how):
    make, asked = USED[kind]
    found, answer = HOW[how](make()), ANSWERS[asked]
    given = set(getattr(found, "get_params", dict)())  # the user's own
    wanted, count = answer(found), 0
    for path, value in list(values_of(found)):
        if not path or path[0] in given:
            continue
        before = plain(value)
        for change in next((CHANGES[type] for type in CHANGES if isinstance(value, type)), ()):
            count += 1
            with contextlib.suppress(ValueError, TypeError):
                change(value)
            again = found
            for name in path:
                again = again[name] if isinstance(again, dict) else getattr(again, name)
            assert plain(again) == before, path
    assert count or asked in ("search", "rows of texts")
    assert plain(answer(found)) == plain(wanted)
    assert ROWS.flags.writeable and SPARSE.data.flags.writeable


@pytest.mark.parametrize("kind", [kind for kind, (_, asked) in USED.items() if asked == "texts"])
@pytest.mark.filterwarnings("ignore::dcme_w2v.errors.DcmeWarning")
def test_attributes_of_models_cannot_be_assigned(kind):
    model = USED[kind][0]()
    model = getattr(model, "model_", model)
    for name in ("classes", "weights", "threshold"):
        with pytest.raises(AttributeError, match="cannot assign"):
            setattr(model, name, None)


@pytest.mark.parametrize("first", [slice(0, 30), slice(None)])
def test_partial_fit_changes_no_copy(first):
    model = dw.MaxentClassifier(solver="sgd").fit(ROWS, LABELS)
    other = copy.copy(model)
    before = other.predict_proba(ROWS)
    model.partial_fit(ROWS[first], LABELS[first][::-1])
    assert not np.array_equal(model.predict_proba(ROWS), before)
    assert np.array_equal(other.predict_proba(ROWS), before)

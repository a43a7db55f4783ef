"""A result, a slice of it, a file, a pickle and a converted file mean the same."""

import pickle

import pytest
from data import write_corpus

import dcme_w2v as dw
from dcme_w2v.errors import DcmeError

QUICK = {"dim": 8, "epochs": 2, "threads": 1, "min_count": 2}
WORD_ORDER = {"word_order": True, "output_vectors": "input"}
MODELS = {
    "ns": {"objective": "ns", "output_vectors": "input"},
    "ns, sum": {"objective": "ns", "output_vectors": "sum"},
    "ns, unit-sum": {"objective": "ns", "output_vectors": "unit-sum"},
    "ns, context": {"objective": "ns", "output_vectors": "context"},
    "skip-gram": {"model": "skipgram"},
    "word order": {"word_order": True},
    "unk": {"unk": "<unk>", "min_count": 4},
    "nce": {"objective": "nce"},
    "dcme": {"objective": "dcme"},
    "dcme, input": {"objective": "dcme", "output_vectors": "input"},
    "hs": {"objective": "hs"},
    "subwords": {"subwords": "3-4", "buckets": 500},
    "paragraphs": {"sentences": "paragraphs", "tokenize": "words"},
}


def converted(v):
    v.save("one.safetensors")
    dw.Vectors.load("one.safetensors").save("two.safetensors")
    return dw.Vectors.load("two.safetensors", mmap=False)


def saved(v):
    v.save("v.safetensors")
    return dw.Vectors.load("v.safetensors")


WAYS = {
    "slice": lambda v: v[:],
    "file": saved,
    "pickle": lambda v: pickle.loads(pickle.dumps(v)),
    "conversion": converted,
    "slice of a file": lambda v: saved(v)[: len(v)],
}


def outcome(call):
    """Return a value, or the error's text without the name of a file."""
    try:
        return call()
    except DcmeError as error:
        return error.message.partition(":")[2]


def meaning(v):
    """Return what can be asked of vectors."""
    started = outcome(
        lambda: dw.train("corpus.txt", init=v, **QUICK, output_vectors="input").vectors.tolist()
    )
    return {
        "manifest": v.manifest,
        "counts": v.counts.tolist(),
        "vectors": v.vectors.tolist(),
        "likelihood": outcome(lambda: dw.eval_likelihood(v, "corpus.txt")),
        "most similar": v.most_similar(v.words[5]),
        "init": started,
        "tokens": v.tokenizer.tokens("The Cat, sat"),
        "unknown": None if v.get("kingly") is None else v.get("kingly").tolist(),
    }


@pytest.mark.parametrize("name", MODELS)
def test_every_form_of_vectors_means_the_same(name):
    write_corpus("corpus.txt", lines=150)
    v = dw.train("corpus.txt", **{**QUICK, **MODELS[name]})
    wanted = meaning(v)
    assert ("likelihood" in wanted) and (name in ("hs", "subwords") or v.context is not None)
    for way, change in WAYS.items():
        found = meaning(change(v))
        for part, value in wanted.items():
            assert found[part] == value, (way, part)

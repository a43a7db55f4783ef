"""`dw.train`: any form of corpus gives the same vectors; options, progress, return value."""

import inspect
import itertools
import signal
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from data import write_corpus

import dcme_w2v as dw
from dcme_w2v.declarations import options_in
from dcme_w2v.errors import DcmeWarning, UsageError
from dcme_w2v.options import (
    CheckpointOptions,
    ClusterOptions,
    HoldoutOptions,
    LogOptions,
    SubwordOptions,
    VocabularyOptions,
)
from dcme_w2v.platform import SIGNALS
from dcme_w2v.words.options import (
    FileOptions,
    NewWordsOptions,
    OutputOptions,
    PresetOptions,
    RoundsOptions,
    TrainOptions,
    resolved,
)
from dcme_w2v.words.train import FIELDS

QUICK = {"dim": 8, "epochs": 2, "threads": 1, "min_count": 1}


@pytest.fixture
def corpus(here):
    return write_corpus("corpus.txt", lines=120)


def test_sentences_in_memory_with_held_out_text_in_a_file(corpus):
    lines = [line.split() for line in Path(corpus).read_text().splitlines()]
    v = dw.train(lines, holdout=str(corpus), **QUICK)
    assert v.manifest["heldout_log_probability"] < 0


def test_words_of_a_table_in_memory_are_counted():
    table = dw.Table(
        "mem", "text,more", rows=[{"text": "a b", "more": "a"}, {"text": "b", "more": None}]
    )
    assert dict(dw.vocab(table, min_count=1).items()) == {"a": 2, "b": 2}
    assert list(dw.train(table, **QUICK)) == ["a", "b"]


def same(one, other):
    return list(one) == list(other) and np.array_equal(one.vectors, other.vectors)


def forms(path):
    """Return a file's text in every form of a corpus."""
    lines = Path(path).read_text().splitlines()
    tokens = [line.split() for line in lines]
    return {
        "a path": Path(path),
        "a list of paths": [str(path)],
        "a generator of paths": (one for one in [Path(path)]),
        "lists of tokens": tokens,
        "tuples of bytes": [tuple(token.encode() for token in line) for line in tokens],
        "arrays": [np.array(line, dtype=str) for line in tokens],
        "generators": ((token for token in line) for line in tokens),
        "lines": lines,
        "lines with their ends": (line + "\n" for line in lines),
        "bytes": [line.encode() for line in lines],
    }


@pytest.mark.bits
def test_every_form_of_a_corpus_gives_the_same_vectors(corpus):
    expected = dw.train(str(corpus), **QUICK)
    assert expected.counts.sum() == len(Path(corpus).read_text().split())
    for name, form in forms(corpus).items():
        assert same(dw.train(form, **QUICK), expected), name


def test_sentences_are_not_kept_in_memory():
    class Line:
        """A list of tokens that supports weak references."""

        def __init__(self, tokens):
            self.tokens = tokens

        def __iter__(self):
            return iter(self.tokens)

    alive, most = weakref.WeakSet(), 0

    def sentences():
        nonlocal most
        for number in range(5000):
            line = Line([f"w{(number + i) % 40}" for i in range(5)])
            alive.add(line)
            most = max(most, len(alive))
            yield line

    v = dw.train(sentences(), **QUICK)
    assert v.counts.sum() == 25_000
    assert most < 10


def test_options_have_the_names_and_defaults_of_the_dataclasses():
    parameters = inspect.signature(dw.train).parameters
    classes = (PresetOptions, VocabularyOptions, TrainOptions, HoldoutOptions, OutputOptions,
               CheckpointOptions, FileOptions, ClusterOptions, RoundsOptions,
               SubwordOptions, NewWordsOptions, LogOptions)  # fmt: skip
    expected = {item.name: item.default for cls in classes for item in options_in(cls)}
    found = {name: one.default for name, one in parameters.items()}
    assert found.pop("corpus") is inspect.Parameter.empty
    assert found.pop("progress") is False
    assert found == expected
    for item in FIELDS.values():
        assert (f"\n    {item.name} : " in dw.train.__doc__) != item.advanced


@pytest.mark.parametrize(
    "given, error, message",
    [
        ({"holdout": 1.5}, ValueError, "holdout=1.5 must be a fraction"),
        ({"progress": 1}, ValueError, "progress=1 must be True, False or a function"),
        ({"min_count": 10**6}, ValueError, "lower min_count"),
        ({"min_cuont": 1}, TypeError, "unknown option min_cuont; did you mean min_count?"),
        ({"init": "none.bin"}, FileNotFoundError, "none.bin"),
    ],
)
def test_invalid_options_are_named_in_pythons_terms(corpus, given, error, message):
    with pytest.raises(error) as caught:
        dw.train(corpus, **{**QUICK, **given})
    assert message in str(caught.value)
    assert "--" not in str(caught.value)


class Frame:
    columns, dtypes = ["text"], ["object"]

    def __iter__(self):
        return iter(self.columns)


@pytest.mark.parametrize(
    "wrong, error, message",
    [
        ("none.txt", FileNotFoundError, "none.txt: there is no such file"),
        ("a b\nc d", UsageError, "is text, not a file; pass a list of sentences"),
        ("a b c d " * 100, UsageError, "is text, not a file"),
        ({"the cat": 3}, UsageError, "a dict cannot be read as text; use its values"),
        (Frame(), UsageError, "a DataFrame cannot be read as text; use its text column"),
        (["東京は大きい", "日本語の文"], UsageError, "the 2 strings, such as"),
        (["the", "cat"], UsageError, "the 2 strings, such as 'the', are neither file names"),
        (b"corpus.txt", UsageError, "must be a path, a list of paths, or"),
        (7, UsageError, "corpus=7 must be a path, a list of paths, or"),
        ([["a", "b"], 7], UsageError, "sentence 1: 7 is neither a text nor a list of tokens"),
        ([["a", "b"], ["a", 7]], UsageError, "sentence 1: "),
        ([["a", "New York"]], ValueError, "sentence 0: the token 'New York' is empty or contains"),
        ([["a", ""]], ValueError, "the token '' is empty"),
        ([], ValueError, "sentences contains no tokens"),
        ([["a", "\ud800"]] * 9, ValueError, "sentences: byte 2 (line 1) is not UTF-8"),
    ],
)
def test_invalid_corpora(corpus, wrong, error, message):
    with pytest.raises(error) as caught:
        dw.train(wrong, **QUICK)
    assert message in str(caught.value)


def test_a_sentence_may_be_longer_than_the_name_of_a_file():
    assert list(dw.train(["fish water " * 200] * 5, **QUICK)) == ["fish", "water"]


def test_vocabulary_and_initial_vectors_can_be_objects(corpus):
    words = ["fish1", "fish2", "nowhere"]
    counts = {"fish2": 5, "fish1": 9, "nowhere": 7}
    first = dw.train(corpus, read_vocab=counts, sample=0, **QUICK)
    assert list(first) == ["fish1", "nowhere", "fish2"]
    given = dw.Vectors(words, np.full((3, 8), 7))
    with pytest.warns(DcmeWarning, match="so the 44 new words learn slowly"):
        v = dw.train(corpus, init=given, **{**QUICK, "lr": 1e-9})
    assert np.allclose(v["fish2"], 7) and "nowhere" not in v
    with pytest.raises(ValueError, match="init has 8 dimensions, but dim is 4; use dim=8"):
        dw.train(corpus, init=given, **{**QUICK, "dim": 4})


def test_a_callback_gets_both_stages_and_each_epoch(corpus, monkeypatch):
    updates, clock = [], SimpleNamespace(monotonic=itertools.count(0.0).__next__)
    monkeypatch.setattr("dcme_w2v.training.run.time", clock)
    v = dw.train(corpus, progress=updates.append, **QUICK)
    assert list(dict.fromkeys(one.stage for one in updates)) == ["reading", "training"]
    training = [one for one in updates if one.stage == "training"]
    assert {one.total for one in training} == {2 * v.manifest["tokens"]["corpus"]}
    done = [one.done for one in training]
    assert done == sorted(done) and done[-1] == training[-1].total
    assert [one.epoch["epoch"] for one in updates if one.epoch] == [1, 2]
    assert [one.epoch["seconds"] for one in updates if one.epoch] == [1, 1]
    assert all(one.epoch["lr"] > 0 for one in updates if one.epoch)


def test_no_signal_handler_is_installed(corpus):
    def handlers(update=None):
        found.append([signal.getsignal(one) for one in SIGNALS])

    found = []
    handlers()
    dw.train(corpus, progress=handlers, **QUICK)
    assert len(found) > 3 and all(one == found[0] for one in found)


@pytest.mark.parametrize("stage", ["reading", "training"])
def test_an_interrupt_keeps_the_current_vectors(corpus, stage):
    def interrupt(update):
        if update.stage == stage:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        dw.train(corpus, progress=interrupt, **QUICK)
    partial = caught.value.partial
    if stage == "reading":
        assert partial is None
    else:
        assert np.isfinite(partial.vectors).all() and partial.dim == 8
        assert list(partial) == list(dw.train(corpus, **QUICK))


def test_threads_can_train_concurrently(corpus):
    expected = dw.train(corpus, **QUICK)
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda _: dw.train(corpus, **QUICK), range(3)))
    assert all(same(one, expected) for one in found)


# ---- hierarchical softmax: its steps and tree have a reference in test_objectives.py ----

HS = QUICK | {"epochs": 1, "sample": 0.0}


def test_starts_from_the_input_vectors_of_another_objective(corpus):
    """At a rate near 0, vectors and the zeros of the nodes do not change, so the loss of a path is
    its length: context vectors were not used as vectors of nodes."""
    slow = HS | {"objective": "hs", "lr": 1e-5}
    first = HS | {"epochs": 5, "lr": 0.5, "output_vectors": "input"}
    found = dw.train(corpus, **first, output_tables="tables")
    started, fresh = dw.train(corpus, **slow, init="tables"), dw.train(corpus, **slow)
    np.testing.assert_allclose(started.vectors, found.vectors, atol=1e-4)
    assert started.context is None
    assert started.manifest["loss"] == pytest.approx(fresh.manifest["loss"], rel=0.003)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("words, objective", [(1, "hs"), (2, "hs"), (3, "hs"), (1, "ns")])
def test_vocabularies_of_few_words(words, objective, threads):
    lines = [[f"w{i % words}", f"w{(i + 1) % words}"] for i in range(50)]
    found = dw.train(lines, **HS | {"threads": threads}, objective=objective)
    assert len(found) == words and np.isfinite(found.vectors).all()


@pytest.mark.parametrize(
    "rate, given",
    [
        (0.0626, {}),
        (0.125, {"epochs": 1}),
        (0.07, {"epochs": 4}),
        (0.07, {"epochs": 4, "negative": 5, "sample": 1e-3}),
        (0.035, {"epochs": 16}),
        (0.06, {"epochs": 1, "rates": "equal"}),
        (0.01, {"epochs": 9, "lr": 0.01}),
        (0.05, {"epochs": 9, "model": "skipgram"}),
        (0.0626, {"window": 10, "negative": 20}),
        (0.063, {"epochs": 1, "sample": 0.0}),
        (0.0626, {"sample": 0.0}),
        (0.0313, {"epochs": 20, "sample": 0.0}),
        (0.0655, {"epochs": 1, "window": 10, "window_mode": "fixed", "negative": 20}),
        (0.0513, {"epochs": 1, "window": 20, "negative": 30}),
        (0.0269, {"rates": "equal", "window": 20, "window_mode": "fixed", "negative": 30}),
        (0.2, {"objective": "nce", "window": 20, "window_mode": "fixed", "negative": 30}),
        (0.0269, {"objective": "nce", "gradient": "word2vec", "window": 20,
                  "window_mode": "fixed", "negative": 30}),
        (0.05, {"model": "skipgram", "window": 20, "window_mode": "fixed", "negative": 30}),
    ],
)  # fmt: skip
def test_the_default_rate_falls_where_steps_add_up(rate, given):
    assert resolved(TrainOptions(**given)).lr == rate


def test_wide_windows_of_many_samples_do_not_diverge():
    chance, shares = np.random.default_rng(0), 1 / np.arange(1, 1501)
    words = chance.choice(1500, (400, 200), p=shares / shares.sum()).astype(str)
    given = {"window": 20, "window_mode": "fixed", "negative": 30, "sample": 0, "epochs": 1}
    v = dw.train(words.tolist(), min_count=1, threads=1, **given)
    assert np.abs(v.vectors).max() < 10
    with pytest.raises(FloatingPointError):
        dw.train(words.tolist(), min_count=1, threads=1, lr=0.125, **given)


@pytest.mark.parametrize("text, count", [("a b c d e f\n" * 50, 1), ("a b c\n" * 200, 0)])
def test_a_small_text_is_noted_once(cli, text, count):
    Path("c.txt").write_text(text)
    cli("train c.txt --output v.bin --min-count 1 --epochs 2 --output-tables t")
    assert (
        cli.err.count("note: fewer than 1,000,000 tokens are rarely enough for good vectors")
        == count
    )
    cli("train c.txt --output w.bin --init t --min-count 1 --epochs 1")
    assert "note:" not in cli.err

"""Objects that several Python threads use at once, and objects that are fitted meanwhile."""

import contextlib
import functools
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from data import word_vectors
from helpers import options_of
from objects import INNER, LABELS, OBJECTS, ROWS, TEXTS, texts_of
from scipy.sparse import issparse

import dcme_w2v as dw
from dcme_w2v._core import models, text
from dcme_w2v.sentences.table import SentenceTable
from dcme_w2v.training.trainer import core_options
from dcme_w2v.words.options import TrainOptions

THREADS, CALLS = 4, 2


@pytest.fixture(autouse=True)
def switching():
    """Let threads take turns as often as can be."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def run_threads(work):
    """Call a function with the number of each thread; raise what one of them raised."""
    raised = []

    def run(number):
        try:
            work(number)
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if raised:
        raise raised[0]


def slowly(function, after=True):
    """Return a function that lets other threads work before or after it."""

    @functools.wraps(function)
    def slow(*given):
        time.sleep(0 if after else 0.001)
        found = function(*given)
        time.sleep(0.001 if after else 0)
        return found

    return slow


def comparable(found):
    """Return an answer as something that == compares to the bit."""
    if issparse(found):
        return comparable(found.toarray())
    if isinstance(found, np.ndarray):
        return found.shape, found.tolist()
    if isinstance(found, dict):
        return {name: comparable(one) for name, one in found.items()}
    if isinstance(found, list | tuple) or hasattr(found, "__next__"):
        return [comparable(one) for one in found]
    return found


# ---- four threads use one object ----


def spelled(found, number):
    with pytest.raises(KeyError) as raised:
        found[f"W{number}"]
    return str(raised.value), f"w{number}" in found, found.index(f"w{number}")


def found_phrases(_, number):
    output = f"{threading.get_ident()}.txt"
    found = dw.phrases(texts_of(number), output, threshold=1.0)
    return found.passes, Path(output).read_bytes()


USES = {
    **OBJECTS,
    **INNER,
    "Vectors of words": (word_vectors, spelled),
    "Vectors in batches": (
        word_vectors,
        lambda found, n: list(found.most_similar_batch([f"w{i}" for i in range(n, 30)])),
    ),
    "DocumentModel": (
        lambda: OBJECTS["SCDV"][0]().model_,
        lambda found, n: list(found.transform([one.encode() for one in texts_of(n)])),
    ),
    "vocab": (dict, lambda _, n: dw.vocab(texts_of(n), min_count=1).counts),
    "phrases": (dict, found_phrases),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.filterwarnings("ignore::dcme_w2v.errors.DcmeWarning")
def test_threads_get_the_answers_of_one(use):
    make, ask = USES[use]
    found = make()
    if isinstance(found, dw.SentenceEncoder):  # it often forgets its new words
        numbering = found._table._numbering
        numbering._forget = 30
        numbering.words_of = slowly(numbering.words_of, after=False)
    wanted = [comparable(ask(found, number)) for number in range(THREADS)]

    def work(number):
        for turn in range(CALLS):
            one = (number + turn) % THREADS
            assert comparable(ask(found, one)) == wanted[one]

    run_threads(work)


# ---- an object that is fitted while others use it ----

OTHERS = [f"{one} w7 w8 other" for one in reversed(TEXTS)]
FITTED = {
    "SentenceEncoder": (dw.SentenceEncoder(word_vectors(), pooling="usif"), TEXTS, OTHERS),
    "SCDV": (dw.SCDV(word_vectors(), clusters=3, iterations=2), TEXTS, OTHERS),
    "TextClassifier": (dw.TextClassifier(tune=False), TEXTS, OTHERS),
    "MaxentClassifier": (dw.MaxentClassifier(l2=1e-3), ROWS, ROWS[::-1]),
    "MaxentClassifier sgd": (dw.MaxentClassifier(solver="sgd", lr=1.0), ROWS, ROWS[::-1]),
    "LatentClassModel": (dw.LatentClassModel(epochs=3, latent=4), ROWS, ROWS[::-1]),
    "FusedFeatures": (dw.FusedFeatures(rounds=1, choose=False), ROWS, ROWS[::-1]),
}
NAMES = np.array(["tea", "bus", "sun", "rain", "snow"])


@pytest.mark.parametrize("kind", FITTED)
@pytest.mark.filterwarnings("ignore::dcme_w2v.errors.DcmeWarning")
def test_an_answer_is_of_one_fit(kind, monkeypatch):
    """Other rows, another number of classes and other names: a mixture would be seen."""
    model, *given = FITTED[kind]
    for owner, name in ((type(model), "predict_log_proba"), (SentenceTable, "vectors_of")):
        if hasattr(owner, name):
            monkeypatch.setattr(owner, name, slowly(getattr(owner, name)))
    fits = [(given[0], NAMES[np.arange(80) % 3]), (given[1], NAMES[np.arange(80) % 5])]
    asked = given[0][:9]

    def answers():
        found = [comparable(getattr(model, name)(asked)) for name in METHODS if name in dir(model)]
        assert found
        return found

    wanted = []
    for fit in fits:
        model.fit(*fit)
        wanted.append(answers())
    assert all(one != other for one, other in zip(*wanted, strict=True))
    ended = threading.Event()

    def work(number):
        if number == 0:
            try:
                for turn in range(2):
                    model.fit(*fits[turn % 2])
            finally:
                ended.set()
        while not ended.is_set():
            for one, *allowed in zip(answers(), *wanted, strict=True):
                assert one in allowed

    run_threads(work)


METHODS = ("predict", "predict_proba", "transform")


@pytest.mark.parametrize("kind", FITTED)
@pytest.mark.filterwarnings("ignore::dcme_w2v.errors.DcmeWarning")
def test_a_fit_that_fails_leaves_the_one_before(kind):
    model, given, _ = FITTED[kind]
    model.fit(given, NAMES[LABELS])
    before = dict(vars(model))
    wrong = [*given[:-1], 3] if isinstance(given, list) else given * np.nan
    with pytest.raises(ValueError, match=r"neither|NaN"):
        model.fit(wrong, NAMES[:2][LABELS // 2])
    assert vars(model) == before


# ---- the core ----


def test_a_run_has_one_epoch_at_a_time():
    """Two threads would learn the same units in the same memory."""
    ids = np.tile(np.arange(5, dtype=np.uint32), 200_000)
    tables = np.zeros((2, 5, 16), np.float32)
    options = core_options(options_of({}, dim=16, epochs=1000), TrainOptions)
    run = models.Trainer(options, ids, np.full(5, 200_000), *tables)
    first = threading.Thread(target=run.epoch, args=(0,))
    first.start()
    while not run.progress()["trained"]:
        pass
    with pytest.raises(ValueError, match="is running an epoch"):
        run.epoch(0)
    run.stop()
    first.join()
    assert run.unfinished() == 0


def test_tables_are_shared_by_threads():
    """Words are added, read and merged at once; the memory of a table moves as it grows."""
    tables = [text.Table() for _ in range(3)]

    def work(number):
        for turn in range(40):
            block = " ".join(f"n{number}t{turn}w{i}" for i in range(300)).encode() + b"\n"
            one, other = tables[number % 3], tables[(number + 1) % 3]
            one.encode(block, 0)
            assert (one.counts() > 0).all()
            with contextlib.suppress(ValueError, IndexError):  # it is empty again
                one.words(np.arange(len(one)))
                other.merge(one, 0, len(one), 0, np.zeros(len(one), np.uint32))
            if turn % 10 == number:
                one.clear()

    run_threads(work)

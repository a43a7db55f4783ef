"""Runs that are stopped within epochs and restored into others, for every objective."""

import contextlib
import functools

import numpy as np
import pytest
from data import corpus
from helpers import MODELS, OBJECTIVES, options_of
from scipy.sparse import csr_matrix
from scipy.sparse import random as sparse_random

from dcme_w2v.classify.options import ClassifyOptions, resolved
from dcme_w2v.classify.trainer import ClassifierTrainer
from dcme_w2v.errors import DivergedError
from dcme_w2v.training import trainer as engine
from dcme_w2v.words.trainer import Trainer

BLOCKS = {"objective": "nce", "virtual_samples": 2.0, "window_mode": "fixed", "block": 16}
WORDS = [BLOCKS, *({**objective, **model} for objective in OBJECTIVES for model in MODELS)]
CLASSES = [
    {"objective": "dcme", "dcme_update": "paper"}, {"loss": "hinge"},
    *({"objective": name, "batch": 16} for name in ("gd", "dcme", "nce", "ns")),
]  # fmt: skip


@functools.cache
def rows_of(size):
    return csr_matrix(sparse_random(size, 30, 0.2, "csr", np.float32, random_state=1))


def made(given, threads=1, size=30_000):
    """A training before its first epoch; equal each time."""
    # Algorithm 1 of DCME may diverge at higher rates, as several threads happen to interleave.
    options = {"epochs": 2, "lr": 0.002, "threads": threads, **given}
    if given in WORDS:
        ids, counts = corpus(tokens=size)
        return Trainer(np.tile(ids, 10), 10 * counts, options_of(options))
    labels = (np.arange(size) % 500).astype(np.int32)
    options = resolved(ClassifyOptions(**options), 500)
    return ClassifierTrainer(rows_of(size), np.arange(size), labels, 500, options)


def moved(run, into):
    """Return another run in the state of this one."""
    for name, table in run.tables.items():
        into.tables[name][:] = table
    into.restore(np.concatenate(run.state()), run.record())
    return into


@pytest.mark.bits
@pytest.mark.parametrize(
    "threads, given",
    [
        *((1, given) for given in [*WORDS, *CLASSES]),
        *((3, given) for given in [*WORDS[::3], *CLASSES]),
    ],
    ids=str,
)
def test_a_run_that_is_stopped_and_restored_is_the_uninterrupted_one(monkeypatch, given, threads):
    """With several threads, whose rows differ each time: it loses nothing."""
    monkeypatch.setattr(engine, "POLL_SECONDS", 1e-4)
    whole, run, *others = (made(given, threads) for _ in range(5))
    for number in range(2):
        wanted, found = whole.epoch(number), run.epoch(number, lambda _: bool(others))
        while run.unfinished is not None:
            assert run.unfinished == number
            run = moved(run, others.pop())
            found = run.epoch(number, lambda _: bool(others))
    assert len(others) < 3 and found.done == wanted.done
    if threads == 1:
        assert found == wanted
        for name, table in whole.tables.items():
            np.testing.assert_array_equal(run.tables[name], table)


@pytest.mark.parametrize("given", [*WORDS, *CLASSES], ids=str)
def test_numbers_of_a_state_that_are_far_too_large_are_refused_or_do_no_harm(given):
    """Meant for the address sanitizer."""
    run, refused = made(given, size=2000), 0
    run._core.stop()
    assert not run._core.epoch(0)
    for name in {name for name, _ in run.record()["state"]}:
        other = moved(run, made(given, size=2000))
        next(piece for one, piece in other._core.state() if one == name)[:] = 0x7D
        try:
            other._core.restored()
        except ValueError:
            refused += 1
        else:
            with contextlib.suppress(DivergedError):
                other.epoch(0)
    assert refused > 1

"""Training with any objective: counts, learning rates, seeds, errors."""

import platform
import re
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from data import corpus, encoded, lines
from helpers import MODELS, OBJECTIVES, options_of

from dcme_w2v._core import models as core
from dcme_w2v.declarations import options_in
from dcme_w2v.errors import DivergedError
from dcme_w2v.training import trainer as engine
from dcme_w2v.training.trainer import core_options, new_table
from dcme_w2v.words.options import TrainOptions
from dcme_w2v.words.trainer import Trainer

HEADER = Path(__file__).parents[2] / "csrc" / "model" / "train_options.h"
LINES = {
    "one token": [1],
    "two tokens": [2],
    "three tokens, alone": [1, 1, 1],
    "words alone": [1] * 3000,
    "of all lengths": list(range(1, 90)) * 2,
    "some long": [700, 1, 5000, 1, 1, 2000],
    "one line": [100_000],
}


def trained(text, options, kernels=None):
    run = Trainer(*text, options, kernels=kernels)
    for number in range(options.epochs):
        run.epoch(number)
    return run


@pytest.mark.parametrize("kind", LINES)
@pytest.mark.parametrize("sample", [0.0, 1e-3])
def test_token_counts_add_up(kind, sample):
    text = lines(LINES[kind])
    epochs = 1 if len(text[0]) > 50_000 else 3
    given = {"epochs": epochs, "sample": sample, "lr": 1e-3}  # no threads diverge
    for threads in range(1, 9):
        run = trained(text, options_of(MODELS[threads % len(MODELS)], **given, threads=threads))
        found = run.progress()
        assert found.trained + found.subsampled + found.without_context == len(text[0]) * epochs
        assert found.done == len(text[0]) * epochs
        assert (found.subsampled > 0) == (sample > 0)
        learns = max(LINES[kind]) > (1 if sample == 0 else 2)
        assert (found.trained > 0) == learns


@pytest.mark.parametrize("seed", range(75))
def test_any_text_is_trained_after_a_stop_or_has_ids_of_no_word(seed):
    random = np.random.default_rng(seed)
    most = {"dim": 20, "window": 12, "negative": 6, "clusters": 4, "top_items": 9, "threads": 2}
    some = {name: int(random.integers(number)) + 1 for name, number in most.items()}
    options = options_of(OBJECTIVES[seed % 5], **MODELS[seed % 3], **some, lr=0.01, epochs=1)
    ids = random.integers(40 + (seed % 4 == 3), size=random.integers(1, 300)).astype(np.uint32)
    ids[random.random(len(ids)) < seed / 75] |= 1 << 31
    words = np.arange(1, 41)
    if (ids & 0x7F).max() == 40:
        with pytest.raises(ValueError, match="word"):
            Trainer(ids, 100 // words, options)
        return
    run = Trainer(ids, 100 // words, options)
    run._core.stop()
    assert not run._core.epoch(0)
    run._core.restored()
    assert run.epoch(0).done == len(ids)


def test_divergence_is_an_error():
    run = Trainer(*corpus(), options_of({"objective": "dcme"}, lr=5.0, epochs=30))
    numbers = iter(range(30))
    with pytest.raises(DivergedError) as caught:
        list(map(run.epoch, numbers))
    message = str(caught.value)
    assert f"epoch {next(numbers)} " in message
    assert (
        "objective=dcme" in message
        and "lr=5, current learning rate " in message
        and "lower lr" in message
    )


CYCLES = {
    "two words": [0, 1] * 5,
    "a week": [0, 1, 2, 3, 4, 5, 6] * 2,
    "thirty words": range(30),
    "one word": [0] * 9,
    "a sentence": [0, 1, 2, 3, 4, 5, 0, 6, 7],
}


@pytest.mark.parametrize("lr", [None, 0.3])
@pytest.mark.parametrize("model", ["cbow", "skipgram"])
@pytest.mark.parametrize("objective", ["ns", "nce", "hs", "dcme"])
@pytest.mark.parametrize("cycle", CYCLES)
def test_repeated_text_diverges_with_an_error_or_not_at_all(cycle, objective, model, lr):
    """Rows grow without limit where every context is known: never to vectors that mean nothing."""
    words = len({*CYCLES[cycle]})
    own = {"model": model, "lr": lr, "sample": 0.0, "epochs": 1}
    run = Trainer(
        *encoded([np.array(CYCLES[cycle])] * (100_000 // len(CYCLES[cycle]))),
        options_of({"objective": objective}, words, **own),
    )
    try:
        found = run.epoch(0)
    except DivergedError as error:
        assert lr is not None or objective == "dcme"
        assert "use a lower lr" in str(error)
        return
    assert max(np.abs(run.input).max(), np.abs(run.output).max()) < 1000
    assert found.loss < 100


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_rows_that_are_not_finite_are_an_error(objective):
    """One loss in 16 is sampled: only the first, which is before any infinite row."""
    run = Trainer(*encoded([np.arange(9)]), options_of(objective, window=1, sample=0.0))
    run.input[8, 7] = np.inf
    with pytest.raises(DivergedError, match="vector"):
        run.epoch(0)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("failure", [KeyboardInterrupt, OSError])
def test_an_exception_of_the_callback_stops_the_threads(monkeypatch, failure, threads):
    monkeypatch.setattr(engine, "POLL_SECONDS", 0.01)
    text = lines([20_000] * 40)
    run = Trainer(
        *text, options_of({"negative": 20, "sample": 0.0}, dim=300, window=10, threads=threads)
    )
    before = threading.active_count()

    def watch(progress):
        raise failure("enough")

    with pytest.raises(failure, match="enough"):
        run.epoch(0, watch)
    assert threading.active_count() == before
    assert run.progress().done < len(text[0]) / 2


@pytest.mark.parametrize("dim", [1, 17, 48])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_padding_stays_zero(dim, objective):
    for model in MODELS:
        run = trained(corpus(), options_of(objective | model, dim=dim, epochs=2))
        for view in (run.input, run.output):
            memory, stride = view.base, core.row_stride(len(run.input), dim)
            assert view.strides[0] == 4 * stride >= 4 * dim
            begin = (view.ctypes.data - memory.ctypes.data) // 4
            rows = memory[begin : begin + len(view) * stride].reshape(len(view), stride)
            assert view.ctypes.data % 64 == 0
            assert np.abs(view).min(axis=1).max() > 0
            assert not rows[:, dim:].any()
            assert not memory[:begin].any() and not memory[begin + rows.size :].any()


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_rows_of_large_tables_have_little_padding_and_the_same_values(objective):
    ids, counts = corpus()
    counts = np.concatenate([counts, np.ones(400_000, dtype=np.int64)])  # words that do not occur
    options = options_of(objective, dim=3, epochs=1, noise_power=2, beta=1e-3)
    large = [trained((ids, counts), options, kernels) for kernels in ("scalar", None)]
    stride = core.row_stride(len(counts), options.dim)
    assert stride == 4 and large[0].input.strides[0] == 4 * stride
    for first, second in zip(*((run.input, run.output) for run in large), strict=True):
        assert np.abs(first - second).max() < 1e-5
        rows = np.lib.stride_tricks.as_strided(first, (len(first), stride))
        assert not rows[:, options.dim :].any()


def test_the_core_has_exactly_the_declared_options():
    fields = re.findall(r"^    (?:int\d+_t|double) (\w+);$", HEADER.read_text(), re.MULTILINE)
    values = core_options(options_of({}), TrainOptions)
    assert sorted(values) == sorted(fields)
    ids, counts = corpus()
    tables = [new_table(len(counts), 8) for _ in range(2)]
    core.Trainer(values, ids, counts, *tables)
    for name in fields:
        with pytest.raises(ValueError, match=name):
            core.Trainer({n: values[n] for n in fields if n != name}, ids, counts, *tables)


def test_choices_have_the_numbers_of_the_core():
    enums = re.findall(r"^enum \{ (.*) \};$", HEADER.read_text(), re.MULTILINE)
    named = [tuple(enum.lower().replace("dcme_", "").split(", ")) for enum in enums]
    declared = [item.choices for item in options_in(TrainOptions)]
    assert sorted(named) == sorted(choices for choices in declared if choices)


ONE, MANY = lines([500]), corpus(tokens=20_000)  # shards: two threads take one, or race


@pytest.mark.parametrize(
    "objective, text, most",
    [("dcme", ONE, 0.02), ("ns", ONE, 1e-4), ("hs", ONE, 1e-4), ("ns", MANY, 0.1)],
)
def test_what_threads_defer_or_add_to_copies_of_rows_is_not_lost(objective, text, most):
    # a rate so low that steps do not affect each other, and constant centers
    given = {"objective": objective, "lr": 1e-6, "min_lr": 1e-6, "beta": 1e6}
    given |= {"epochs": 50_000 // len(text[0]), "window_mode": "fixed", "sample": 0.0}

    def output(threads):
        return trained(text, options_of(given, threads=threads)).output

    one = output(1)
    # A thread that the system suspends may overwrite the row that it holds, but not the same row in
    # each of three trainings; what the program loses, it loses in all of them.
    lost = np.min([np.abs(output(2) - one).max(axis=1) for _ in range(3)], axis=0)
    assert (lost <= most * np.abs(one).max(axis=1)).all()


@pytest.mark.skipif(platform.machine() != "x86_64" or sys.platform != "linux", reason="x86 Linux")
def test_instruction_sets_equal_those_of_the_system():
    """With any compiler: a core without instruction sets is three times slower."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    flags = set(next(line for line in lines if line.startswith("flags")).split())
    wide = {"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx2", "fma"}
    sets = {"avx512": wide, "avx2": {"avx2", "fma"}, "scalar": {"fpu"}}
    assert [name for name, needed in sets.items() if needed <= flags] == core.KERNELS

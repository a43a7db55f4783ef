"""Memory that a run needs: --dry-run; an error before training if it is not there."""

import contextlib
import json
import mmap
import os
from pathlib import Path

import numpy as np
import pytest
from data import write_corpus
from helpers import python

from dcme_w2v.errors import DivergedError, ResourceError
from dcme_w2v.files import space
from dcme_w2v.options import VocabularyOptions
from dcme_w2v.words import train as run_module
from dcme_w2v.words import trainer as trainer_module
from dcme_w2v.words.options import TrainOptions, resolved
from dcme_w2v.words.trainer import Trainer


@pytest.fixture(autouse=True)
def files(here):
    write_corpus("c")
    Path("d.txt").write_text(
        "".join(f"{'xyz'[i % 3]}\taa{i % 4} bb{i % 3} cc dd{i % 7}\n" for i in range(60))
    )
    words = ["cc", *(f"aa{i}" for i in range(4)), *(f"bb{i}" for i in range(3))]
    Path("v.txt").write_text("".join(f"{w} {i} 1 2\n" for i, w in enumerate(words)))


LINE = "train c --output v --quiet"


def plan_of(**more):
    encoded = run_module.encode(["c"], VocabularyOptions())
    job = resolved(run_module.TrainJob(corpus=("c",), output="v.txt", threads=1, **more))
    return run_module.Machine().plan(job, encoded, None)


def test_insufficient_memory_is_an_error_before_training(cli, monkeypatch):
    monkeypatch.setattr(space, "memory_limit", lambda: 1_000)
    monkeypatch.setattr(run_module, "memory_limit", lambda: 1_000)
    monkeypatch.setattr(run_module, "Trainer", None)  # fails if it is reached
    assert "bytes of memory, but only 1,000 bytes are available; lower --dim" in cli.error(LINE)


@pytest.mark.parametrize("needed", [99, 100, 101])
def test_exactly_what_there_is_suffices(monkeypatch, needed):
    monkeypatch.setattr(space, "memory_limit", lambda: 100)
    with pytest.raises(ResourceError) if needed > 100 else contextlib.nullcontext():
        space.require_memory(needed, "it", "take less")


def test_a_failed_allocation_is_one_line_of_error(cli, monkeypatch):
    def refuse(rows, dim):
        return np.empty((1 << 50, 8), dtype=np.float32)

    monkeypatch.setattr(trainer_module, "new_table", refuse)
    error = cli.error(LINE)
    assert "out of memory" in error and "32.0 PiB" in error and "lower --dim" in error


@pytest.mark.parametrize("megabytes", [150, 225, 325])
@pytest.mark.parametrize("line", [
    "classify train d.tsv -o m", "latent fit d.tsv -o m", "search index d.tsv -o m",
    "vocab d.tsv -o m",
])  # fmt: skip
def test_a_low_limit_of_addresses_is_one_line_and_no_hang(megabytes, line):
    resource = pytest.importorskip("resource")
    Path("d.tsv").write_text("a\ttea leaf\nb\tboat sea\n" * 9)
    limits = resource.RLIMIT_AS, (megabytes << 20,) * 2
    done = python(
        "-m", "dcme_w2v", *line.split(), env={**os.environ, "OPENBLAS_NUM_THREADS": "2"},
        preexec_fn=lambda: resource.setrlimit(*limits),
    )  # fmt: skip
    if done.returncode or "vocab" not in line:  # which needs little
        *warned, said = done.stderr.splitlines()
        assert done.returncode == 1 and said.startswith("error: "), done.stderr
        assert all(one.startswith("warning: ") for one in warned) and "a bug" not in said


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["ns", "nce"])
def test_tables_of_more_than_2_to_the_31_numbers(monkeypatch, objective):
    """Sparse tables: rows that are not used take no memory, although all are checked."""
    words, dim = 131_200, 16_384
    assert words * dim > 2**31

    def sparse(rows, dim, as_for=None):
        no_reserve = 0x4000  # MAP_NORESERVE, which Python 3.10 does not name
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | no_reserve
        memory = mmap.mmap(-1, rows * dim * 4, flags=flags)
        return np.frombuffer(memory, dtype=np.float32).reshape(rows, dim)

    monkeypatch.setattr(trainer_module, "new_table", sparse)
    monkeypatch.setattr(trainer_module.core, "initialize", lambda *table: None)
    ids = np.array([words - 1, words - 2, words - 4, words - 3], dtype=np.uint32)
    counts = np.ones(words, dtype=np.int64)
    counts[-4:] = 1_000_000_000
    options = TrainOptions(
        objective=objective, dim=dim, epochs=1, threads=1, window=2, sample=0.0, negative=2, lr=0.5
    )
    run = Trainer(ids, counts, resolved(options))
    run.input[-4:] = 0.01
    assert run.epoch(0).trained == 4
    assert (np.abs(run.output[-4:]).max(axis=1) > 0).all()
    assert np.isfinite(run.output[-4:]).all() and not run.output[:4].any()
    run.output[-1, -1] = np.nan
    with pytest.raises(DivergedError):
        run.check_finite()


# ---- --dry-run ----


COMMANDS = (
    "train d.txt --output o --min-count 1 --dim 8",
    "classify train d.txt --output o --holdout 0.1 --patience 2",
    "scdv fit d.txt --vectors v.txt --output o --clusters 2",
)


@pytest.mark.parametrize("line", COMMANDS)
def test_a_dry_run_reports_and_writes_nothing(cli, line):
    lines = cli(f"{line} --dry-run").splitlines()
    assert any(line.startswith("memory bytes: ") for line in lines)
    assert {path.name for path in Path().iterdir()} == {"c", "d.txt", "v.txt"}


@pytest.mark.parametrize("line", COMMANDS)
def test_more_than_the_available_memory_is_an_error(cli, monkeypatch, line):
    for module in ("files.space", "words.train", "classify.fit", "scdv.fit"):
        monkeypatch.setattr(f"dcme_w2v.{module}.memory_limit", lambda: 100)
    assert "memory available bytes: 100" in cli(f"{line} --dry-run", code=1)
    plan = json.loads(cli(f"{line} --dry-run --json", code=1))
    assert "bytes of memory, but only 100 bytes are available; lower" in plan["refused"]
    assert plan["refused"] in cli.err


def test_only_hash_values_that_occur_take_memory_in_training(cli):
    line = "classify train d.txt --output o --hashing 100000000 --dry-run --quiet"
    assert cli.json(line)["memory_bytes"] < 1e6

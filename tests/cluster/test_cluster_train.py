"""`dcme-w2v train --cluster` in this process: vectors, token counts, checkpoints, errors."""

import os
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest
from data import write_corpus
from helpers import PROGRAM, manifest, topic_margin

import dcme_w2v as dw

HERE = "--epochs 2 --sample 0.01"


ON = f"--cluster local:0 {HERE}"

ALONE = f"--threads 1 {HERE}"


KEPT = "--checkpoint state --checkpoint-every 1"


SHARD = f"{ON} --shards 1 --rounds 2"


@pytest.fixture(autouse=True)
def corpus():
    write_corpus(Path("c.txt"), lines=600)


@pytest.fixture
def learn(cli):
    """Return a function that trains on c.txt; it returns the bytes of the vectors."""

    def train(output, *flags):
        cli(f"train c.txt --output {output} --dim 16 {' '.join(flags)}")
        return Path(output).read_bytes()

    return train


@pytest.fixture
def refused(cli):
    return lambda *flags: cli.error(
        f"train c.txt --output v.bin --dim 16 --quiet {' '.join(flags)}"
    )


@pytest.mark.bits
@pytest.mark.parametrize("model", ["cbow", "skipgram"])
@pytest.mark.parametrize("objective", ["ns", "nce"])
def test_one_shard_gives_the_same_bytes_as_one_machine(learn, model, objective):
    kind = f"--model {model} --objective {objective} --output-tables"
    assert learn("one.bin", ALONE, kind, "t1") == learn("two.bin", SHARD, kind, "t2")
    first, second = dw.Vectors.load("t1"), dw.Vectors.load("t2")
    np.testing.assert_array_equal(first.context.vectors, second.context.vectors)
    one, two = manifest("one.bin"), manifest("two.bin")
    for key in ("tokens", "corpus", "vocabulary", "options"):
        assert one[key] == two[key]


def test_a_start_from_given_tables(learn, refused, cli):
    """With one shard, it is as on one machine; words that the tables lack are random."""
    Path("old.txt").write_text("".join(Path("c.txt").read_text().splitlines(True)[:20]))
    old = "train old.txt --dim 16 --min-count 1 --seed 5 --threads 1 --epochs 3 --quiet --output"
    cli(f"{old} old.bin --output-tables old")
    for given in ("--init old", "--init old.bin"):
        assert learn("one.bin", ALONE, given) == learn("two.bin", SHARD, given)
    assert learn("one.bin", ALONE) != learn("two.bin", SHARD, given)
    assert "old has 16 dimensions" in refused(ON, "--dim 7 --init old")


@pytest.mark.bits
def test_blocks_of_rows_do_not_change_the_bytes(learn, monkeypatch):
    line = f"{ON} --shards 3 --rounds 2"
    whole = learn("one.bin", line)
    monkeypatch.setattr("dcme_w2v.cluster.words.BLOCK_BYTES", 1000)
    assert learn("two.bin", line) == whole


def test_words_of_one_topic_are_similar_after_training_on_shards(learn):
    learn("v.safetensors", "--cluster local:0 --shards 4 --epochs 10 --seed 3")
    assert topic_margin("v.safetensors") > 0.2


def test_a_diverging_shard_is_named_and_the_last_round_is_kept(refused):
    err = refused(ON, f"--shards 2 --lr 1000 {KEPT}")
    assert "shard 1 of round 1 (c.txt" in err and "training diverged" in err
    assert "no checkpoint was written" in err


def test_python_trains_on_a_cluster_too():
    options = {"dim": 8, "epochs": 2, "cluster": "local:0", "shards": 2}
    v = dw.train("c.txt", **options)
    assert v.manifest["cluster"]["rounds"] == 20 and v.context.dim == 8
    with pytest.raises(ValueError, match="is not supported for sentences in memory"):
        dw.train([["a", "b"]] * 9, **options)


def test_a_dry_run_reports_shards_rounds_and_bytes(cli):
    line = "train c.txt --dry-run --epochs 2 --quiet --cluster"
    two, eight = (cli.json(f"{line} local:{workers}") for workers in (2, 8))
    assert (two["shards"], two["rounds"]) == (2, 20)
    assert (eight["shards"], eight["rounds"]) == (8, 20)
    assert eight["bytes_a_round"] == 7 * two["bytes_a_round"]
    assert "--dry-run requires --shards" in cli.error(f"{line} tcp://nowhere:1")
    # the workers of other machines take no memory here, nor do their tables
    memory = [
        cli.json(f"{line} {where} --dim {dim}")["memory_bytes"]
        for where in ("tcp://nowhere:1 --shards 2", "local:2")
        for dim in (10, 1000)
    ]
    assert memory[0] == memory[1]
    tables, sums = 2 * 4 * 990 * two["vocabulary"], 2 * 64 * 8 * (1001**2 - 11**2)
    assert memory[3] - memory[2] >= 2 * (5 * tables + sums)


# ---- with workers ----


@pytest.mark.long
@pytest.mark.bits
def test_any_number_of_workers_writes_the_same_bytes(learn):
    pytest.importorskip("distributed")
    line = f"{HERE} --shards 3 --cluster local:"
    assert learn("0.bin", f"{line}0") == learn("2.bin", f"{line}2")
    found = manifest("2.bin")["cluster"]
    assert (found["workers"], found["lost_workers"]) == (2, 0) and found["bytes_sent"] > 0


@pytest.mark.long
@pytest.mark.bits
@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGKILL, marks=pytest.mark.slow)]
)
def test_a_stopped_run_resumes_to_the_same_bytes(learn, number):
    """The program and its workers get the signal, as from a terminal or a batch system."""
    pytest.importorskip("distributed")
    # Enough rounds that the run is not over when a busy machine sends the signal late.
    line = "--epochs 50 --rounds 50 --sample 0.01 --shards 2 --cluster"
    straight = learn("straight.bin", line, "local:0")
    more = f"train c.txt --output v.bin --dim 16 {line} local:2 {KEPT}"
    pipes = {"stderr": subprocess.PIPE, "text": True, "start_new_session": True}
    with subprocess.Popen([*PROGRAM, *more.split()], **pipes) as running:
        lines = iter(running.stderr.readline, "")
        assert any(one.startswith("round 2:") for one in lines)
        os.killpg(running.pid, number)
        err = running.communicate(timeout=300)[1]
    if number == signal.SIGTERM:
        assert running.returncode == 143
        assert "stopped by SIGTERM in round" in err and "resume with --resume state" in err
    assert not Path("v.bin").exists()
    assert learn("v.bin", line, "local:0 --resume state") == straight

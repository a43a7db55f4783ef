"""`dcme-w2v train --cluster` in this process: vectors, token counts, checkpoints, errors."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers import manifest, refused, train, write_corpus

import dcme_w2v as dw
from dcme_w2v.cli.main import run
from dcme_w2v.errors import ResourceError
from dcme_w2v.training.checkpoint_folder import CheckpointFolder
from dcme_w2v.words.tables import load_tables

ON = ["--cluster", "local:0", "--epochs", "2", "--sample", "0.01"]


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_corpus(tmp_path / "c.txt", lines=600)
    return "c.txt"


def bytes_of(name):
    return Path(name).read_bytes()


@pytest.mark.parametrize("model", ["cbow", "skipgram"])
@pytest.mark.parametrize("objective", ["ns", "nce"])
def test_one_shard_gives_the_same_bytes_as_one_machine(corpus, tmp_path, model, objective):
    kind = ["--model", model, "--objective", objective, "--output-context"]
    straight = ["--threads", "1", "--epochs", "2", "--sample", "0.01"]
    assert train(corpus, "one.bin", *straight, *kind, "one-context.bin") == 0
    there = ["--shards", "1", "--rounds", "2"]
    assert train(corpus, "two.bin", *ON, *there, *kind, "two-context.bin") == 0
    assert bytes_of("one.bin") == bytes_of("two.bin")
    assert bytes_of("one-context.bin") == bytes_of("two-context.bin")
    one, two = manifest(tmp_path / "one.bin"), manifest(tmp_path / "two.bin")
    for key in ("tokens", "corpus", "vocabulary"):
        assert one[key] == two[key]
    assert one["options"] == two["options"]


def test_a_start_from_given_tables(corpus, capsys):
    """With one shard, it is that of one machine; words that the tables lack are random."""
    Path("old.txt").write_text("".join(Path(corpus).read_text().splitlines(True)[:20]))
    old = ["--min-count", "1", "--seed", "5", "--threads", "1", "--epochs", "3"]
    assert train("old.txt", "old.bin", *old, "--output-tables", "old") == 0
    more = ["--output-context", "old-context.bin", "--vectors", "input"]
    assert train("old.txt", "old-input.bin", *old, *more) == 0
    both = ["--init", "old-input.bin", "--init-context", "old-context.bin"]
    for given in (["--init", "old"], both):
        straight = ["--threads", "1", "--epochs", "2", "--sample", "0.01"]
        assert train(corpus, "one.bin", *straight, *given) == 0
        assert train(corpus, "two.bin", *ON, "--shards", "1", "--rounds", "2", *given) == 0
        assert bytes_of("one.bin") == bytes_of("two.bin")
    assert train(corpus, "other.bin", *ON, "--shards", "1", "--rounds", "2") == 0
    assert bytes_of("one.bin") != bytes_of("other.bin")
    err = refused(capsys, train(corpus, "v.bin", *ON, "--dim", "7", "--init", "old"))
    assert "old: has 16 dimensions" in err
    with pytest.raises(ValueError, match="give a path"):
        dw.train(corpus, cluster="local:0", init=dw.Vectors.load("old.bin"))


def test_vectors_of_shards_are_similar_to_those_of_one_machine(corpus):
    """Words of one topic are more similar to each other than to those of the other."""
    line = ["--shards", "4", "--epochs", "10", "--seed", "3"]
    assert train(corpus, "v.npy", "--cluster", "local:0", *line) == 0
    vectors = dw.Vectors.load("v.npy")
    unit = vectors.vectors / np.linalg.norm(vectors.vectors, axis=1, keepdims=True)
    fish = [i for i, word in enumerate(vectors.words) if word.startswith("fish")]
    wheel = [i for i, word in enumerate(vectors.words) if word.startswith("wheel")]
    cosines = unit @ unit.T
    assert cosines[np.ix_(fish, fish)].mean() > cosines[np.ix_(fish, wheel)].mean() + 0.2


def test_a_resumed_run_writes_the_same_bytes(corpus, tmp_path, capsys):
    line = [*ON, "--shards", "3", "--output-tables"]
    assert train(corpus, "straight.bin", *line, "tables") == 0
    assert train(corpus, "v.bin", *line, "tables1", "--checkpoint", "state") == 0
    assert bytes_of("straight.bin") == bytes_of("v.bin")
    account = manifest(tmp_path / "v.bin")["tokens"]
    shutil.rmtree("state/000016")
    assert train(corpus, "w.bin", *line, "tables2", "--resume", "state", quiet=False) == 0
    assert "resuming state/000015, in round 16" in capsys.readouterr().err
    assert bytes_of("w.bin") == bytes_of("v.bin")
    assert manifest(tmp_path / "w.bin")["tokens"] == account
    one, two = load_tables("tables1"), load_tables("tables2")
    np.testing.assert_array_equal(one.output, two.output)


def test_a_resumed_run_has_the_shards_and_rounds_of_its_checkpoint(corpus, capsys):
    line = [*ON, "--output-context", "c.bin"]
    assert train(corpus, "v.bin", *line, "--shards", "3", "--checkpoint", "state") == 0
    capsys.readouterr()
    for flags, said in {
        ("--shards", "4"): "--shards is 4 and was 3",
        ("--rounds", "4"): "--rounds is 4 and was 16",
        ("--mix", "mean"): "--mix is mean and was curvature",
        ("--seed", "2"): "--seed is 2 and was 1",
    }.items():
        code = train(corpus, "v.bin", *line, "--resume", "state", *flags)
        assert said in refused(capsys, code)
    assert train(corpus, "v.bin", "--epochs", "2", "--sample", "0.01", "--resume", "state") == 2
    assert "is a checkpoint of words on a cluster" in capsys.readouterr().err
    write_corpus(Path("c.txt"), lines=601)
    code = train(corpus, "v.bin", *line, "--resume", "state")
    assert "was trained on another corpus" in refused(capsys, code)


def test_an_edited_checkpoint_is_one_line_of_error(corpus, capsys):
    line = [*ON, "--shards", "2"]
    assert train(corpus, "v.bin", *line, "--checkpoint", "state") == 0
    record = Path("state/000010/checkpoint.json")
    whole = json.loads(record.read_text())
    for edit in (
        {"notes": {**whole["notes"], "done": {"trained": 1}}},
        {"notes": {}},
        {"position": {**whole["position"], "epoch": 11}},
        {"notes": {**whole["notes"], "blocks": [["input", 0, 43]]}},  # of an earlier version
    ):
        record.write_text(json.dumps({**whole, **edit}))
        err = refused(capsys, train(corpus, "v.bin", *line, "--resume", "state"))
        assert "state" in err


def test_training_continues_without_a_checkpoint_that_cannot_be_written(
    corpus, monkeypatch, capsys
):
    """As on one machine; the next round is saved again."""
    line = [*ON, "--shards", "2", "--rounds", "2"]
    assert train(corpus, "straight.bin", *line) == 0
    write, failed = CheckpointFolder.save, []

    def save(*given):
        if not failed:
            failed.append(True)
            raise ResourceError("state: the checkpoint cannot be written: full")
        return write(*given)

    monkeypatch.setattr(CheckpointFolder, "save", save)
    assert train(corpus, "v.bin", *line, "--checkpoint", "state", quiet=False) == 0
    said = "warning: state: the checkpoint cannot be written: full; training continues"
    assert capsys.readouterr().err.count(said) == 1
    assert [one.name for one in Path("state").iterdir()] == ["000001"]
    assert bytes_of("v.bin") == bytes_of("straight.bin")


@pytest.mark.filterwarnings("ignore:lr=.* is unusual")
def test_a_diverging_shard_is_named_and_the_last_round_is_kept(corpus, capsys):
    line = [*ON, "--shards", "2", "--lr", "1000", "--input-rate", "1000", "--checkpoint", "state"]
    code = train(corpus, "v.bin", *line)
    err = refused(capsys, code)
    assert "shard 1 of round 1 (c.txt" in err and "training diverged" in err


def test_python_trains_on_a_cluster_too(corpus):
    options = {"dim": 8, "epochs": 2, "cluster": "local:0", "shards": 2}
    v = dw.train(corpus, **options)
    assert v.manifest["cluster"]["rounds"] == 10 and v.context.dim == 8
    with pytest.raises(ValueError, match="workers read the corpus from files"):
        dw.train([["a", "b"]] * 9, **options)


def test_a_dry_run_reports_shards_rounds_and_bytes(corpus, capsys):
    line = ["train", corpus, "--dry-run", "--json", "--epochs", "2", "--quiet"]
    found = {}
    for workers in (2, 8):
        assert run([*line, "--cluster", f"local:{workers}"]) == 0
        found[workers] = json.loads(capsys.readouterr().out)
    assert [found[2][name] for name in ("shards", "rounds")] == [2, 10]
    assert [found[8][name] for name in ("shards", "rounds")] == [8, 20]
    assert found[8]["bytes_a_round"] == 7 * found[2]["bytes_a_round"]
    assert run([*line, "--cluster", "tcp://nowhere:1"]) == 2
    assert "--dry-run requires --shards" in capsys.readouterr().err


# ---- with workers ----


def test_any_number_of_workers_writes_the_same_bytes(corpus, tmp_path):
    pytest.importorskip("distributed")
    line = ["--epochs", "2", "--sample", "0.01", "--shards", "3"]
    for workers in (0, 2):
        assert train(corpus, f"{workers}.bin", *line, "--cluster", f"local:{workers}") == 0
    assert bytes_of("0.bin") == bytes_of("2.bin")
    found = manifest(tmp_path / "2.bin")["cluster"]
    assert (found["workers"], found["lost_workers"]) == (2, 0) and found["bytes_sent"] > 0


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGKILL, marks=pytest.mark.slow)]
)
def test_a_stopped_run_resumes_to_the_same_bytes(corpus, number):
    """The program and its workers get the signal, as from a terminal or a batch system."""
    pytest.importorskip("distributed")
    # Enough rounds that the run is not over when a busy machine sends the signal late.
    line = ["--epochs", "50", "--rounds", "50", "--sample", "0.01", "--shards", "2"]
    assert train(corpus, "straight.bin", *line, "--cluster", "local:0") == 0
    program = [sys.executable, "-m", "dcme_w2v", "train", corpus, "--output", "v.bin"]
    command = [*program, "--dim", "16", *line, "--cluster", "local:2", "--checkpoint", "state"]
    pipes = {"stderr": subprocess.PIPE, "text": True, "start_new_session": True}
    with subprocess.Popen(command, **pipes) as running:
        lines = iter(running.stderr.readline, "")
        assert any(one.startswith("round 1:") for one in lines)
        os.killpg(running.pid, number)
        err = running.communicate(timeout=300)[1]
    if number == signal.SIGTERM:
        assert running.returncode == 143
        assert "stopped by SIGTERM in round" in err and "resume with --resume state" in err
    assert not Path("v.bin").exists()
    assert train(corpus, "v.bin", *line, "--cluster", "local:0", "--resume", "state") == 0
    assert bytes_of("v.bin") == bytes_of("straight.bin")

"""`dcme-w2v train` from text to files, through the program's own entry point."""

import io
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers import manifest, train, write_corpus

from dcme_w2v.cli.main import run
from dcme_w2v.words.options import PRESETS
from dcme_w2v.words.vectors import Vectors


@pytest.fixture
def corpus(tmp_path):
    return write_corpus(tmp_path / "corpus.txt")


@pytest.mark.parametrize("objective", ["ns", "nce", "dcme", "hs"])
@pytest.mark.parametrize("model", ["cbow", "skipgram"])
def test_words_of_a_topic_become_similar(tmp_path, corpus, model, objective):
    output = tmp_path / "v.txt"
    flags = ("--epochs", "30", "--sample", "0", "--lr", "0.1", "--threads", "1")
    assert train(corpus, output, "--model", model, "--objective", objective, *flags) == 0
    vectors = Vectors.load(output)
    rows = {
        name: np.array(
            [vectors.vectors[i] for i, word in enumerate(vectors.words) if word.startswith(name)]
        )
        for name in ("fish", "wheel")
    }
    unit = {name: part / np.linalg.norm(part, axis=1)[:, None] for name, part in rows.items()}
    own = np.mean([(part @ part.T).mean() for part in unit.values()])
    other = (unit["fish"] @ unit["wheel"].T).mean()
    assert own > other + 0.3


def test_explicit_options_override_a_preset(tmp_path, corpus):
    used = {}
    for name, flags in (("plain", []), ("given", ["--window", "5", "-sample", "0.01"])):
        output = tmp_path / f"{name}.bin"
        assert train(corpus, output, "--preset", "likelihood", "--epochs", "1", *flags) == 0
        used[name] = manifest(output)["options"]
    assert PRESETS["likelihood"].items() <= used["plain"].items()
    assert (used["given"]["window"], used["given"]["sample"]) == (5, 0.01)
    left = {name: used["given"][name] for name in PRESETS["likelihood"]}
    assert left == PRESETS["likelihood"] | {"window": 5, "sample": 0.01}


@pytest.mark.parametrize(
    ("flags", "word_order", "classes", "block"),
    [
        ("--neighbor-classes 0", True, 0, 16),
        ("--dcme-update paper", True, 0, 1),
        ("--window-mode shrink", True, 63, 1),
        ("--block 1", True, 63, 1),
        ("--model skipgram", False, 0, 1),
        ("-hs 1", False, 0, 1),
        ("--objective ns --subwords 3-3 --buckets 20", False, 0, 1),
    ],
)
def test_a_preset_has_word_order_and_blocks_where_they_are_supported(
    tmp_path, corpus, flags, word_order, classes, block
):
    output = tmp_path / "v.bin"
    assert train(corpus, output, "--preset", "likelihood", "--epochs", "1", *flags.split()) == 0
    used = manifest(output)["options"]
    assert (used["word_order"], used["neighbor_classes"]) == (word_order, classes)
    samples = 0 if "-hs" in flags.split() else 32 if block > 1 else 15
    assert (used["block"], used["negative"]) == (block, samples)


def test_stdin_can_be_trained_for_several_epochs(tmp_path, corpus, monkeypatch):
    direct, piped = tmp_path / "a.bin", tmp_path / "b.bin"
    assert train(corpus, direct, "--threads", "1") == 0
    text = io.BytesIO(Path(corpus).read_bytes())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(text))
    assert train("-", piped, "--threads", "1") == 0
    assert manifest(piped)["options"]["epochs"] == 5
    assert piped.read_bytes() == direct.read_bytes()


def test_a_run_writes_its_files(tmp_path, corpus):
    output, context = tmp_path / "v.npy", tmp_path / "c.txt"
    vocabulary, log = tmp_path / "words.txt", tmp_path / "log.json"
    flags = ["--output-context", str(context), "--save-vocab", str(vocabulary)]
    assert train(corpus, output, *flags, "--log-json", str(log)) == 0
    matrix = np.load(output)
    assert matrix.shape == (43, 16) and np.isfinite(matrix).all()
    assert manifest(output)["options"]["format"] == "npy"
    lines = [line.split(" ") for line in vocabulary.read_text().splitlines()]
    counts = [int(count) for _, count in lines]
    assert counts == sorted(counts, reverse=True)
    assert [word for word, _ in lines] == list(Vectors.load(output).words)
    assert not np.array_equal(Vectors.load(context).vectors, matrix)
    events = [json.loads(line) for line in log.read_text().splitlines()]
    epochs = [event for event in events if event["event"] == "epoch"]
    assert [event["epoch"] for event in epochs] == [1, 2, 3, 4, 5]
    assert all(event["loss"] > 0 and event["seconds"] >= 0 for event in epochs)
    assert run(["check", str(context)]) == 0
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {
        "corpus.txt", "v.npy", "v.vocab", "v.npy.json", "c.txt", "words.txt", "log.json",
    }  # fmt: skip


def test_word2vec_command_line_has_its_defaults(tmp_path, corpus):
    output = tmp_path / "v.bin"
    line = f"-train {corpus} -output {output} -size 8 -iter 1 -debug 0"
    assert run(["train", *line.split()]) == 0
    assert PRESETS["word2vec"].items() <= manifest(output)["options"].items()
    assert run(["train", *line.split(), "--vectors", "sum", "-negative", "7"]) == 0
    used = manifest(output)["options"]
    assert (used["vectors"], used["negative"], used["sample"]) == ("sum", 7, 1e-3)


@pytest.mark.parametrize(
    ("flags", "code", "said"),
    [
        ("--objective ns --negative 0", 2, "--negative"),
        (
            "--objective ns --prior 1",
            2,
            "--prior 1: is not supported with --objective ns; give --objective nce or dcme",
        ),
        (
            "--preset vektors",
            2,
            "--preset vektors: must be one of word2vec, similarity",
        ),
        ("--min-count 100000", 1, "--min-count"),
        ("--init CORPUS", 1, "error"),
        ("--objective dcme --dcme-update paper --lr 50", 1, "--lr 50"),
    ],
)
def test_errors_are_one_line(tmp_path, corpus, capsys, flags, code, said):
    output = tmp_path / "v.bin"
    output.write_bytes(b"old")
    assert (
        train(corpus, output, *[corpus if flag == "CORPUS" else flag for flag in flags.split()])
        == code
    )
    error = capsys.readouterr().err
    assert error.startswith("error: ") and error.count("\n") == 1 and said in error
    assert output.read_bytes() == b"old"


def test_kernels_are_selected_by_the_environment(tmp_path, corpus, monkeypatch, capsys):
    monkeypatch.setenv("DCME_W2V_KERNELS", "scalar")
    assert train(corpus, tmp_path / "v.bin") == 0
    assert manifest(tmp_path / "v.bin")["kernels"] == "scalar"
    monkeypatch.setenv("DCME_W2V_KERNELS", "mmx")
    assert train(corpus, tmp_path / "v.bin") == 2
    assert "scalar" in capsys.readouterr().err

"""`dcme-w2v eval likelihood` against the softmax by hand, and against training's own report."""

import json
from pathlib import Path

import numpy as np
import pytest
from helpers import manifest, train, write_corpus
from scipy.special import logsumexp

from dcme_w2v.cli.main import run
from dcme_w2v.words.vectors import Vectors


@pytest.fixture
def model(tmp_path):
    return trained(tmp_path, "--objective", "nce")


def trained(folder, *flags):
    corpus = write_corpus(folder / "corpus.txt")
    held = write_corpus(folder / "held.txt", seed=3, lines=60)
    files = ("--output-context", str(folder / "context.npy"), "--save-vocab", str(folder / "vocab"))
    output = folder / "v.txt"
    flags = (*files, "--threads", "1", "--window", "3", "--holdout", held, "--lr", "0.2", *flags)
    assert train(corpus, output, "--epochs", "3", *flags) == 0
    return output


def scored(capsys, *arguments):
    capsys.readouterr()
    assert run(["eval", "likelihood", *map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("objective", ["ns", "nce", "dcme"])
def test_the_saved_model_has_the_likelihood_of_training(tmp_path, capsys, objective):
    output = trained(tmp_path, "--objective", objective)
    found, reported = scored(capsys, output, tmp_path / "held.txt"), manifest(output)
    names = {name for name in found if name != "words"}
    assert (objective == "ns") == ("log_probability_with_noise" in names)
    for name in names:
        assert found[name] == pytest.approx(reported[f"heldout_{name}"], abs=1e-6)


def test_analogies_are_the_softmax_of_b_minus_a_plus_c(tmp_path, model, capsys):
    questions = tmp_path / "questions.txt"
    asked = ["fish1 fish2 wheel1 wheel2", "the of and fish3", "the of and nowhere"]
    questions.write_text(": section\n" + "\n".join(asked))
    input, output = Vectors.load(model), Vectors.load(tmp_path / "context.npy")
    logs = []
    for question in asked[:2]:
        a, b, c, d = (input.words.index(word) for word in question.split())
        h = (input.vectors[b] - input.vectors[a] + input.vectors[c]).astype(float)
        scores = output.vectors @ h
        logs.append(scores[d] - logsumexp(scores))
    found = scored(capsys, model, "--analogies", questions)
    assert found["questions"] == 2
    assert found["analogy_log_probability"] == pytest.approx(np.mean(logs), abs=1e-5)
    mean = np.log(np.mean(np.exp(logs)))
    assert found["analogy_log_mean_probability"] == pytest.approx(mean, abs=1e-5)
    assert "words" not in found


def test_noise_is_read_from_counts(tmp_path, capsys):
    output = trained(tmp_path, "--objective", "ns")
    held, name = tmp_path / "held.txt", "log_probability_with_noise"
    whole = scored(capsys, output, held)
    (tmp_path / "vocab").rename(tmp_path / "counts")
    assert scored(capsys, output, held, "--read-vocab", tmp_path / "counts") == whole
    lines = (tmp_path / "counts").read_text().splitlines()
    (tmp_path / "counts").write_text("\n".join(lines[1:]))
    word = lines[0].split()[0]
    command = ["eval", "likelihood", str(output), str(held)]
    assert run([*command, "--read-vocab", str(tmp_path / "counts")]) == 1
    assert f"has no count of the word {word}" in capsys.readouterr().err
    assert name in whole


@pytest.mark.parametrize(
    ("name", "context", "counts"),
    [
        ("v.txt", "c.txt", "c.txt.vocab"),
        ("v.bin", "c.bin", "c.bin.vocab"),
        ("v.txt", "c.npy", "c.vocab"),
        ("v.npy", "c.txt", "v.vocab"),
    ],
)
def test_counts_are_saved_for_likelihood(tmp_path, capsys, name, context, counts):
    corpus, held = (write_corpus(tmp_path / f"{part}.txt", seed=2) for part in ("corpus", "held"))
    output = tmp_path / name
    flags = ("--objective", "dcme", "--holdout", held, "--output-context", str(tmp_path / context))
    assert train(corpus, output, "--epochs", "1", *flags) == 0
    found = scored(capsys, output, held)
    wanted = manifest(output)["heldout_log_probability"]
    assert found["log_probability"] == pytest.approx(wanted, abs=1e-6)
    assert (tmp_path / counts).exists()
    if counts.endswith(("txt.vocab", "bin.vocab")):
        (tmp_path / counts).unlink()
        assert run(["eval", "likelihood", str(output), str(held)]) == 2
        assert "give the file of --save-vocab" in capsys.readouterr().err


def test_missing_files_are_named(tmp_path, model, capsys):
    held = str(tmp_path / "held.txt")
    command = ["eval", "likelihood", str(model)]
    Vectors.load(model, limit=5).save(tmp_path / "few.txt")
    Path(f"{model}.json").unlink()
    for arguments, code, expected in [
        ([held], 2, "give the file of --output-context"),
        ([], 2, "give a corpus"),
        ([held, "--window", "0"], 2, "at least 1"),
        ([held, "--context", str(tmp_path / "few.txt")], 1, "differs in words or dimensions"),
    ]:
        assert run([*command, *arguments]) == code
        error = capsys.readouterr().err
        assert expected in error
        assert error.count("\n") == 1
    Path(f"{model}.json").write_text("[1]")
    assert run([*command, held]) == 1
    assert "is not a manifest" in capsys.readouterr().err

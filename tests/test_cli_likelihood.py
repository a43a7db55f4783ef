"""`dcme-w2v eval likelihood` against the softmax by hand, and against training's own report."""

from pathlib import Path

import numpy as np
import pytest
from helpers import manifest, write_corpus
from scipy.special import logsumexp

from dcme_w2v.words.vectors import Vectors


@pytest.fixture
def trained(here, cli):
    """Return a function that trains with held-out text."""
    write_corpus(here / "corpus.txt")
    write_corpus(here / "held.txt", seed=3, lines=60)
    line = (
        "train corpus.txt --dim 16 --quiet --threads 1 --window 3 --holdout held.txt --lr 0.2 "
        "--epochs 3 --output v.txt --output-context context.npy --save-vocab vocab --objective"
    )
    return lambda objective: cli(f"{line} {objective}")


def test_analogies_are_the_softmax_of_b_minus_a_plus_c(trained, cli):
    trained("nce")
    asked = ["fish1 fish2 wheel1 wheel2", "the of and fish3", "the of and nowhere"]
    Path("questions").write_text(": section\n" + "\n".join(asked))
    input, output = Vectors.load("v.txt"), Vectors.load("context.npy")
    logs = []
    for question in asked[:2]:
        a, b, c, d = (input.words.index(word) for word in question.split())
        h = (input.vectors[b] - input.vectors[a] + input.vectors[c]).astype(float)
        scores = output.vectors @ h
        logs.append(scores[d] - logsumexp(scores))
    found = cli.json("eval likelihood v.txt --analogies questions")
    assert found["questions"] == 2 and "words" not in found
    assert found["analogy_log_probability"] == pytest.approx(np.mean(logs), abs=1e-5)
    mean = np.log(np.mean(np.exp(logs)))
    assert found["analogy_log_mean_probability"] == pytest.approx(mean, abs=1e-5)


def test_noise_is_read_from_counts(trained, cli):
    trained("ns")
    line = "eval likelihood v.txt held.txt"
    whole = cli.json(line)
    Path("vocab").rename("counts")
    assert cli.json(f"{line} --read-vocab counts") == whole
    first, *lines = Path("counts").read_text().splitlines()
    Path("counts").write_text("\n".join(lines))
    error = cli.error(f"{line} --read-vocab counts")
    assert f"has no count of the word {first.split()[0]}" in error
    assert "log_probability_with_noise" in whole


@pytest.mark.parametrize(
    "name, context, counts",
    [
        ("v.txt", "c.txt", "c.txt.vocab"),
        ("v.bin", "c.bin", "c.bin.vocab"),
        ("v.txt", "c.npy", "c.vocab"),
        ("v.npy", "c.txt", "v.vocab"),
    ],
)
def test_counts_are_saved_for_likelihood(here, cli, name, context, counts):
    for part in ("corpus", "held"):
        write_corpus(here / part, seed=2)
    flags = f"--objective dcme --holdout held --output-context {context}"
    cli(f"train corpus --output {name} --dim 16 --epochs 1 --quiet {flags}")
    found = cli.json(f"eval likelihood {name} held")
    wanted = manifest(name)["heldout_log_probability"]
    assert found["log_probability"] == pytest.approx(wanted, abs=1e-6)
    assert Path(counts).exists()
    if counts.endswith(("txt.vocab", "bin.vocab")):
        Path(counts).unlink()
        error = cli.error(f"eval likelihood {name} held")
        assert "give the file of --save-vocab" in error


def test_missing_files_are_named(trained, cli):
    trained("nce")
    Vectors.load("v.txt", limit=5).save("few.txt")
    Path("v.txt.json").unlink()
    for arguments, expected in (
        ("held.txt", "give the file of --output-context"),
        ("", "give a corpus"),
        ("held.txt --window 0", "at least 1"),
        ("held.txt --context few.txt", "differs in words or dimensions"),
    ):
        assert expected in cli.error(f"eval likelihood v.txt {arguments}")
    Path("v.txt.json").write_text("[1]")
    assert "is not a manifest" in cli.error("eval likelihood v.txt held.txt")

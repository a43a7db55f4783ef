"""Held-out likelihood against a word-by-word softmax in double precision; 'eval likelihood'."""

from pathlib import Path

import numpy as np
import pytest
from data import write_corpus
from helpers import manifest
from scipy.special import log_softmax, logsumexp

import dcme_w2v as dw
from dcme_w2v import Vectors
from dcme_w2v.errors import UsageError
from dcme_w2v.words.language_model import eval_likelihood
from dcme_w2v.words.likelihood import (
    BATCH,
    LAST,
    WORDS,
    contexts,
    log_probabilities,
    pieces,
    summary,
)

SENTENCES = [[0, 1, 2, 3, 4, 1], [5], [2, 2], [3, 0, 5, 1, 1, 0, 4, 2]]


def encoded(sentences):
    ids = []
    for sentence in sentences:
        ids += [*sentence[:-1], sentence[-1] | int(LAST)]
    return np.array(ids, dtype=np.uint32)


def likelihood(ids, input, output, window, bias=None):
    biases = [np.zeros(len(output), dtype=np.float32) if bias is None else bias]
    logs = [np.zeros(0)]
    for piece in pieces(ids):
        h, targets = contexts(piece, input, window)
        logs.append(log_probabilities(h, targets, output, biases)[0])
    return summary(np.concatenate(logs))


def by_hand(sentences, input, output, window, bias):
    logs = []
    for sentence in sentences:
        for t, target in enumerate(sentence):
            around = [
                sentence[p]
                for p in range(max(0, t - window), min(len(sentence), t + window + 1))
                if p != t
            ]
            if around:
                scores = output @ input[around].mean(axis=0) + bias
                logs.append(scores[target] - np.log(np.exp(scores).sum()))
    return np.array(logs)


def test_text_is_split_as_in_training():
    text = write_corpus("lines.txt", lines=90)
    lines = Path(text).read_text().split("\n")
    Path("words.txt").write_text("\n\n".join(line.replace(" ", "\n") for line in lines))
    options = {"dim": 8, "epochs": 1, "threads": 1, "min_count": 4}
    by_line = dw.train("lines.txt", **options)
    by_paragraph = dw.train("words.txt", sentences="paragraphs", **options)
    assert np.array_equal(by_line.vectors, by_paragraph.vectors)
    expected = eval_likelihood(by_line, "lines.txt")
    assert eval_likelihood(by_paragraph, "words.txt") == expected
    assert eval_likelihood(by_paragraph, [line.split() for line in lines]) == expected


def test_rare_words_are_predicted_as_the_unknown_word():
    write_corpus("c.txt", lines=90)
    options = {"dim": 8, "epochs": 1, "threads": 1, "min_count": 4}
    every = eval_likelihood(dw.train("c.txt", unk="<unk>", **options), "c.txt")["words"]
    lines = [line.split() for line in Path("c.txt").read_text().splitlines()]
    assert every == sum(len(line) for line in lines if len(line) > 1)
    assert eval_likelihood(dw.train("c.txt", **options), "c.txt")["words"] < every


@pytest.mark.parametrize("window", [1, 2, 20])
@pytest.mark.parametrize("with_bias", [False, True])
def test_likelihood_equals_the_softmax(window, with_bias):
    random = np.random.default_rng(3)
    input, output = random.normal(size=(2, 6, 4)).astype(np.float32)
    bias = random.normal(size=6).astype(np.float32) if with_bias else None
    found = likelihood(encoded(SENTENCES), input, output, window, bias)
    logs = by_hand(SENTENCES, input, output, window, 0 if bias is None else bias)
    assert found.count == len(logs) == 16
    assert found.log_probability == pytest.approx(logs.mean(), abs=1e-5)
    assert found.log_mean_probability == pytest.approx(np.log(np.exp(logs).mean()), abs=1e-5)
    assert found.standard_error == pytest.approx(logs.std() / 4, abs=1e-5)


@pytest.mark.bits
@pytest.mark.parametrize("order", [1, -1])
def test_blocks_of_contexts_and_words(order):
    """Three blocks of words, whose scores differ by more than the range of exp()."""
    random = np.random.default_rng(1)
    h = random.normal(size=(2 * BATCH + 1, 8)).astype(np.float32)
    output = random.normal(size=(2 * WORDS + 5, 8)).astype(np.float32)
    bias = np.linspace(-150, 150, len(output), dtype=np.float32)[::order]
    targets = random.integers(len(output), size=len(h))
    one, three = (log_probabilities(h, targets, output, [bias], n) for n in (1, 3))
    assert one.tobytes() == three.tobytes()
    scores = h.astype(float) @ output.T.astype(float) + bias
    wanted = log_softmax(scores, axis=1)[np.arange(len(h)), targets]
    np.testing.assert_allclose(one[0], wanted, rtol=1e-5, atol=1e-4)


@pytest.mark.bits
def test_neighbors_are_added_to_contexts():
    random = np.random.default_rng(3)
    vectors, left, right = random.normal(size=(3, 6, 4)).astype(np.float32)
    plain, targets = contexts(encoded(SENTENCES), vectors, 2)
    h, same = contexts(encoded(SENTENCES), vectors, 2, (left, right))
    own = [
        (left[sentence[t - 1]] if t else 0)
        + (right[sentence[t + 1]] if t + 1 < len(sentence) else 0)
        for sentence in SENTENCES
        if len(sentence) > 1
        for t in range(len(sentence))
    ]
    np.testing.assert_array_equal(targets, same)
    np.testing.assert_allclose(h - plain, own, atol=1e-6)


# ---- the command ----


@pytest.fixture
def trained(here, cli):
    """Return a function that trains with held-out text."""
    write_corpus("corpus.txt")
    write_corpus("held.txt", seed=3, lines=60)
    line = (
        "train corpus.txt --dim 16 --quiet --threads 1 --window 3 --holdout held.txt --lr 0.2 "
        "--epochs 3 --output v.txt --output-tables tables "
        "--objective"
    )
    return lambda objective: cli(f"{line} {objective}")


def test_analogies_are_the_softmax_of_b_minus_a_plus_c(trained, cli):
    trained("nce")
    asked = ["fish1 fish2 wheel1 wheel2", "the of and fish3", "the of and nowhere"]
    Path("questions").write_text(": section\n" + "\n".join(asked))
    input = Vectors.load("tables")
    output = input.context
    logs = []
    for question in asked[:2]:
        a, b, c, d = (input.words.index(word) for word in question.split())
        h = (input.vectors[b] - input.vectors[a] + input.vectors[c]).astype(float)
        scores = output.vectors @ h
        logs.append(scores[d] - logsumexp(scores))
    found = cli.json("eval likelihood tables --analogies questions")
    assert found["questions"] == 2 and "words" not in found
    assert found["analogy_log_probability"] == pytest.approx(np.mean(logs), abs=1e-5)
    mean = np.log(np.mean(np.exp(logs)))
    assert found["analogy_log_mean_probability"] == pytest.approx(mean, abs=1e-5)


def test_a_file_of_tables_gives_the_likelihood_of_training(trained, cli):
    order = "--word-order --window-mode fixed"
    for objective, flags in (("ns", ""), ("nce", order), ("nce", "--prior 1")):
        trained(f"{objective} {flags}")
        found, made = cli.json("eval likelihood tables held.txt"), manifest("v.txt")
        for name in ("log_probability", "log_mean_probability"):
            assert found[name] == pytest.approx(made[f"heldout_{name}"], abs=1e-6)
        assert ("log_probability_with_noise" in found) == (objective == "ns")
        assert (Vectors.load("tables").neighbors is None) == (flags != order)
    found = Vectors.load("tables")
    uncounted = Vectors(found.words, found.vectors, context=found.context, manifest=found.manifest)
    with pytest.raises(UsageError, match="which requires word counts"):
        eval_likelihood(uncounted, "held.txt")

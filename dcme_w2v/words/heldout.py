"""Held-out text, scored after each epoch; for the trainer.

The names of all figures begin with "heldout_": the log-probabilities of the exact softmax (see
`dcme_w2v.words.likelihood`), for negative sampling also with the log of its noise distribution
added to the scores, and for DCME the dual bound of its clusters and its gap to the log-likelihood.
"""

import dataclasses
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dcme_w2v.errors import NoWordsError
from dcme_w2v.formats.sentences import Sentences
from dcme_w2v.formats.vocabulary import Vocabulary, Words
from dcme_w2v.numeric.arrays import F32, F64, I64, U32
from dcme_w2v.options import VocabularyOptions
from dcme_w2v.text.encode import encode

from .likelihood import contexts, figures_of, log_probabilities, pieces
from .trainer import Trainer

# Tokens scored after an epoch, up to the end of the sentence: with 100 dimensions and 70,000 words
# this takes a tenth of an epoch over 17 million tokens.
SCORED = 4096


def ids_of(
    files: Sequence[str] | Sentences,
    words: Words,
    options: VocabularyOptions,
    threads: int,
    unk: str | None = None,
) -> U32:
    """Encode text as word ids; out-of-vocabulary tokens are dropped, or become the word `unk`.

    Raises
    ------
    NoWordsError
        All are out of vocabulary.
    """
    all_words = dataclasses.replace(options, min_count=1, max_vocab=None, strict=False)
    known = Vocabulary(words.text, words.offsets, np.ones(len(words), dtype=np.int64))
    unk = unk if unk in words else None
    try:
        with encode(files, all_words, vocabulary=known, unk=unk, threads=threads) as text:
            return np.array(text.ids)
    except NoWordsError:
        name = "the text" if isinstance(files, Sentences) else files[0]
        raise NoWordsError(
            f"{name}: none of its words is among the {len(words):,} of the vocabulary; give "
            "text of the same language and tokenisation"
        ) from None


def evenly_spaced(ids: U32, words: int) -> U32:
    """Return sentences at even intervals of a text, with at least this many tokens in total."""
    sentences = list(pieces(ids, 1))
    total, kept, taken = len(ids), [], 0
    for number, sentence in enumerate(sentences):
        wanted = words if total <= words else words * (number + 1) / len(sentences)
        if taken < wanted:
            kept.append(sentence)
            taken += len(sentence)
    return np.concatenate(kept) if kept else ids


def biases_of(counts: I64, options: Mapping[str, Any]) -> list[F32]:
    """Return the biases that are added to the dot products before the softmax.

    First the log prior; then, for negative sampling, the log of the noise distribution, which its
    scores do not include. Each is the log of counts to a power, up to a constant.
    """
    powers = [float(options.get("prior") or 0)]
    if options.get("objective") == "ns":
        powers.append(float(options["noise_power"]))
    logs = np.log(np.maximum(counts, 1))
    return [(power * logs).astype(np.float32) for power in powers]


def _entropy(shares: F64) -> float:
    """Return the entropy, without importing scipy, which would slow down every start."""
    some = shares[shares > 0]
    return float(-(some * np.log(some)).sum())


def dual_bounds(
    h: F32,
    output: F32,
    centers: F32,
    bias: F32,
) -> tuple[F64, I64]:
    """Return max_k { u_k . h + alpha_k . bias + H_k } for each context, and its k.

    It is at most log sum_j exp(v_j . h + bias_j).

    Parameters
    ----------
    h : ndarray of float32, shape (m, dim)
    output : ndarray of float32, shape (words, dim)
    centers : ndarray of float32, shape (clusters, words)
        Distributions alpha_k; u_k = sum_j alpha_kj v_j and the entropies H_k are computed from the
        current rows, so that this is a bound (Wang, Wang and Zhai 2017, equations 5 and 11).
    bias : ndarray of float32, shape (words,)
    """
    total = centers.sum(axis=1, dtype=np.float64)[:, None]
    u = (centers @ output).astype(np.float64) / total
    entropy = np.array([_entropy(row / sum_) for row, sum_ in zip(centers, total, strict=True)])
    values = h.astype(np.float64) @ u.T + entropy + centers @ bias.astype(np.float64) / total[:, 0]
    return values.max(axis=1), values.argmax(axis=1)


class HeldOut:
    """Scores held-out text under a training run, between epochs.

    Parameters
    ----------
    ids : ndarray of uint32, shape (n,)
        Encoded text, of which about `SCORED` tokens are scored, in sentences at even intervals.
    counts : ndarray of int64, shape (words,)
        Counts of the training corpus.
    training : Trainer

    Attributes
    ----------
    figures : dict
        The last figures by name.
    line : str
        Message with the number of held-out and scored tokens.
    """

    def __init__(self, ids: U32, counts: I64, training: Trainer) -> None:
        self.ids = evenly_spaced(ids, SCORED)
        self.line = f"held out: {len(ids):,} tokens of the vocabulary"
        if len(self.ids) < len(ids):
            self.line += f", {len(self.ids):,} of them scored"
        self.figures: dict[str, float] = {}
        self._training, self._seconds = training, 0.0
        self._biases = biases_of(counts, dataclasses.asdict(training.options))

    def score(self) -> dict[str, float]:
        """Compute, store and return the figures of the current vectors."""
        start = time.monotonic()
        self.figures = self._scores()
        self._seconds += time.monotonic() - start
        self.figures["heldout_seconds"] = round(self._seconds, 3)
        return self.figures

    def _scores(self) -> dict[str, float]:
        training, window = self._training, self._training.options.window
        h, targets = contexts(self.ids, training.input, window, training.neighbors)
        if len(h) == 0:
            return {}
        threads = training.options.threads
        logs = log_probabilities(h, targets, training.output, self._biases, threads)
        names = "log_probability", "log_mean_probability", "standard_error"
        figures = figures_of("heldout_", logs, names)
        if not training.clusters:
            return figures
        centers = np.stack([training.center(k) for k in range(training.clusters)])
        bounds, chosen = dual_bounds(h, training.output, centers, self._biases[0])
        own = np.einsum("ij,ij->i", h, training.output[targets], dtype=np.float64)
        surrogate = float((own + self._biases[0][targets] - bounds).mean())
        used = np.bincount(chosen, minlength=len(centers))
        return figures | {
            "heldout_surrogate": surrogate,
            "heldout_gap": surrogate - figures["heldout_log_probability"],
            "heldout_clusters_used": int(np.count_nonzero(used)),
            "heldout_largest_cluster": float(used.max() / used.sum()),
        }

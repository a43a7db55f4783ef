"""Score held-out text after each training epoch.

The names of all measures begin with "heldout_": the log-probabilities of the exact softmax (see
`dcme_w2v.words.likelihood`), for negative sampling also with the log of its noise distribution
added to the scores, and for DCME the dual bound of its clusters and its gap to the log-likelihood.
"""

import time

import numpy as np

from dcme_w2v.formats.vocabulary import Vocabulary
from dcme_w2v.numeric.arrays import F32, F64, I64, U32
from dcme_w2v.numeric.parallel import one_blas_thread

from .language_model import LanguageModel, biases_of
from .likelihood import figures_of, pieces
from .trainer import Trainer

# Approximate number of held-out tokens to score after each epoch, in a tenth of its training time.
# The scoring time was measured with 100 dimensions, 70,000 words and 17 million tokens.
SCORED = 4096


def evenly_spaced(ids: U32, words: int) -> U32:
    """Select evenly spaced sentences that contain at least `words` tokens in total."""
    sentences = list(pieces(ids, 1))
    total, kept, taken = len(ids), [], 0
    for number, sentence in enumerate(sentences):
        wanted = words if total <= words else words * (number + 1) / len(sentences)
        if taken < wanted:
            kept.append(sentence)
            taken += len(sentence)
    return np.concatenate(kept) if kept else ids


def _entropy(shares: F64) -> float:
    """Return entropies in nats; scipy is not used because importing it is slow."""
    some = shares[shares > 0]
    return float(-(some * np.log(some)).sum())


@one_blas_thread()
def dual_bounds(
    h: F32,
    output: F32,
    centers: F32,
    bias: F32,
) -> tuple[F64, I64]:
    """Return each context's largest dual bound on the log normalizer, and the bound's cluster.

    The bound ``max_k (u_k . h + alpha_k . bias + H_k)`` is at most log sum_j exp(v_j . h + bias_j).

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
    """Score held-out text between epochs with the current vectors.

    Parameters
    ----------
    ids : ndarray of uint32, shape (n,)
        Encoded text, of which about `SCORED` tokens are scored, in sentences at even intervals.
    words : Vocabulary
        The words of the training corpus, with counts.
    training : Trainer

    Attributes
    ----------
    figures : dict
        The last figures by name.
    line : str
        Message with the number of held-out and scored tokens.
    """

    def __init__(self, ids: U32, words: Vocabulary, training: Trainer) -> None:
        self.ids = evenly_spaced(ids, SCORED)
        self.line = f"held out: {len(ids):,} tokens of the vocabulary"
        if len(self.ids) < len(ids):
            self.line += f", {len(self.ids):,} of them scored"
        self.figures: dict[str, float] = {}
        self._training, self._seconds, options = training, 0.0, training.options
        self._model = LanguageModel(
            words,
            training.input,
            training.output,
            options.window,
            biases_of(words.counts, vars(options)),
            training.neighbors,
        )

    def score(self) -> dict[str, float]:
        """Score the held-out text with the current vectors, and store and return the scores."""
        start = time.monotonic()
        self.figures = self._scores()
        self._seconds += time.monotonic() - start
        self.figures["heldout_seconds"] = round(self._seconds, 3)
        return self.figures

    def _scores(self) -> dict[str, float]:
        training, model = self._training, self._model
        logs = model.log_probabilities(self.ids, training.options.threads)
        names = "log_probability", "log_mean_probability", "standard_error"
        figures = figures_of("heldout_", logs, names)
        if not (figures and training.clusters):
            return figures
        h, targets = model.contexts(self.ids)
        bias = model.biases[0]
        centers = np.stack([training.center(k) for k in range(training.clusters)])
        bounds, chosen = dual_bounds(h, model.output, centers, bias)
        own = np.einsum("ij,ij->i", h, model.output[targets], dtype=np.float64)
        surrogate = float((own + bias[targets] - bounds).mean())
        used = np.bincount(chosen, minlength=len(centers))
        return figures | {
            "heldout_surrogate": surrogate,
            "heldout_gap": surrogate - figures["heldout_log_probability"],
            "heldout_clusters_used": int(np.count_nonzero(used)),
            "heldout_largest_cluster": float(used.max() / used.sum()),
        }

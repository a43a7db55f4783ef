"""A language model of word and context vectors: the likelihood of text and of analogies.

A model consists of the word vectors, the context vectors of --output-context, and the manifest of
the word vectors, which has the path of the context vectors and the window. Vectors of other
programs are also supported if both files and the window are given.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from dcme_w2v.declarations import threads_of
from dcme_w2v.errors import FormatError, UsageError
from dcme_w2v.formats.sentences import CorpusLike, paths_or_sentences
from dcme_w2v.formats.vocabulary import Vocabulary, Words
from dcme_w2v.numeric.arrays import F32, F64, I64, U32
from dcme_w2v.options import VocabularyOptions
from dcme_w2v.platform import PathLike
from dcme_w2v.text.tokenizer import Tokenizer

from .evaluate import covered_questions
from .heldout import biases_of, ids_of
from .likelihood import Neighbors, contexts, figures_of, log_probabilities, pieces
from .options import TrainOptions
from .tables import check_scoring_options, input_of
from .vectors import Vectors

ModelLike: TypeAlias = "PathLike | Vectors | LanguageModel"
FIGURES = ("log_probability", "log_mean_probability")  # of `Likelihood`


@dataclass(frozen=True)
class LanguageModel:
    """Input and output vectors of the same words.

    Attributes
    ----------
    words : Words
    input, output : ndarray of float32, shape (words, dim)
        Word vectors (input embeddings) and context vectors (output embeddings).
    window : int
        Context words on each side.
    biases : list of ndarray of float32, shape (words,)
        Added to the dot products: the log prior (see --prior); then, for negative sampling, the log
        of the noise distribution.
    neighbors : tuple of ndarray of float32, shape (words, dim), or None
        With word order: the vectors of the words just left and just right of a token.
    tokenizer : Tokenizer
        How text is split.
    """

    words: Words
    input: F32
    output: F32
    window: int
    biases: list[F32]
    neighbors: Neighbors | None = None
    tokenizer: Tokenizer = field(default_factory=Tokenizer)

    @classmethod
    def load(
        cls,
        model: ModelLike,
        context: str | None = None,
        vocabulary: str | None = None,
        window: int | None = None,
    ) -> LanguageModel:
        """Read a model.

        Parameters
        ----------
        model : path, Vectors or LanguageModel
            The word vectors, with their manifest beside them; a file of both tables; `Vectors`.
        context : str, optional
            The context vectors (default: `context_file` of the manifest).
        vocabulary : str, optional
            Lines "word count", required by priors and by the noise distribution of negative
            sampling (default: `vocabulary_file` of the manifest, or the counts of npy vectors).
        window : int, optional
            Default: from the manifest, or the default of `dcme-w2v train`.

        Raises
        ------
        UsageError
            The context vectors or required counts are neither given nor in the manifest, or the
            vectors of a model with word order are not given as its file.
        FormatError
            The two files differ in words or dimensions.
        """
        if isinstance(model, LanguageModel):
            return model
        if isinstance(model, Vectors):
            path, input = "the model", model
        else:
            path, input = os.fspath(model), Vectors.load(model)
        manifest = input.manifest or {}
        options = manifest.get("options", {})
        check_scoring_options(path, options)
        neighbors = input.neighbors
        if options.get("word_order") and neighbors is None:
            raise UsageError(
                f"{path}: its likelihood requires the vectors of neighbors (--word-order): "
                "train with --output-tables, and give that file"
            )
        if context is None and input.context is None:
            context = _beside(path, manifest.get("context_file"))
        output = input.context if context is None else Vectors.load(context)
        if output is None:
            raise UsageError(
                f"{path}: its context vectors are required: give the file of --output-context as "
                "--context, or the file of --output-tables"
            )
        if input.vectors.shape != output.vectors.shape or not input.words.equals(output.words):
            raise FormatError(
                f"{context}: differs in words or dimensions from {path}; give its own "
                "context vectors"
            )
        matrix = input_of(input.vectors, output.vectors, options.get("vectors", "input"), path)
        known = _beside(path, manifest.get("vocabulary_file"))
        if known is not None and not Path(known).exists():
            known = None
        counted = output if input.counts is None else input
        biases = _biases(path, options, counted, vocabulary or known)
        window = int(window or options.get("window", TrainOptions().window))
        tokenizer = input.tokenizer
        return cls(input.words, matrix, output.vectors, window, biases, neighbors, tokenizer)

    def text_likelihood(self, corpus: CorpusLike, threads: int = 1) -> dict[str, float]:
        """Return the log-likelihood of the tokens of a corpus given their contexts.

        Out-of-vocabulary tokens are dropped, as in training. Keys: `log_probability`,
        `log_mean_probability`, for negative sampling the same with `_with_noise`, and `words`.
        """
        paths, sentences = paths_or_sentences(corpus)
        options = VocabularyOptions(**asdict(self.tokenizer.options))
        ids = ids_of(sentences or paths, self.words, options, threads)
        logs = self._logs_of(ids, threads)
        return {**figures_of("", logs, FIGURES), "words": logs.shape[1]}

    def distribution(self, ids: U32, place: int) -> F64:
        """Return the probability of each word at a place of a sentence of at least two tokens."""
        h, _ = contexts(ids, self.input, self.window, self.neighbors)
        scores = (self.output @ h[place] + self.biases[-1]).astype(np.float64)
        shares = np.exp(scores - scores.max())
        return np.asarray(shares / shares.sum())

    def analogy_likelihood(self, path: PathLike) -> dict[str, float]:
        """Return the log-likelihood of d given the context h_b - h_a + h_c, for questions a b c d.

        The measure of Wang, Wang and Zhai (2017), table 1. Words are compared in upper case. Keys
        are the keys of `text_likelihood` with the prefix `analogy_`, and `questions`.
        """
        a, b, c, d = covered_questions(self.words, path).T
        h = self.input[b] - self.input[a] + self.input[c]
        logs = log_probabilities(h, d, self.output, self.biases)
        return {**figures_of("analogy_", logs, FIGURES), "questions": len(d)}

    def _logs_of(self, ids: U32, threads: int | None) -> F64:
        """Return the log-probabilities of the tokens of an encoded text, a row for each bias."""
        parts = []
        for piece in pieces(ids):
            h, targets = contexts(piece, self.input, self.window, self.neighbors)
            parts.append(log_probabilities(h, targets, self.output, self.biases, threads))
        return np.concatenate(parts, axis=1)


def eval_likelihood(
    model: ModelLike,
    corpus: CorpusLike | None = None,
    *,
    context: str | None = None,
    window: int | None = None,
    read_vocab: str | None = None,
    analogies: PathLike | None = None,
    threads: int | None = None,
) -> dict[str, float]:
    """Return the log-likelihood of a text, and of analogy questions, under a model.

    Each token is predicted from its context by the exact softmax.

    Parameters
    ----------
    model : path, Vectors or LanguageModel
        Vectors of `train`, a file of --output-tables, or vectors with --output-context.
    corpus : path, paths, or iterable of sentences, optional
        As in `train`.
    context, read_vocab : path, optional
        Context vectors and word counts, if the manifest does not name them.
    window : int, optional
        Context words on each side (default: as trained).
    analogies : path, optional
        Questions; see `eval_analogies`.
    threads : int, optional
        Default: the CPUs that this process may use.

    Returns
    -------
    dict of float
        Mean log-probability and log of the mean probability in nats, for negative sampling also
        with the noise distribution added back; and the number of words or questions.

    Raises
    ------
    UsageError
        There is neither a corpus nor a file of questions, or the model has no context vectors.

    Examples
    --------
    >>> import dcme_w2v as dw
    >>> v = dw.train("corpus.txt", objective="dcme", dim=8, epochs=1, threads=1)
    >>> sorted(dw.eval_likelihood(v, "corpus.txt"))
    ['log_mean_probability', 'log_probability', 'words']
    """
    if corpus is None and analogies is None:
        raise UsageError("no text; give a corpus, or --analogies=FILE")
    if window is not None and window < 1:
        raise UsageError(f"--window={window}: must be at least 1")
    loaded = LanguageModel.load(model, context, read_vocab, window)
    found = {} if corpus is None else loaded.text_likelihood(corpus, threads_of(threads))
    return found | ({} if analogies is None else loaded.analogy_likelihood(analogies))


def _beside(path: str, name: Any) -> str | None:
    """Return the path of a file that a manifest lists relative to its folder."""
    return str(Path(path).resolve().parent / name) if isinstance(name, str) else None


def _biases(
    path: str, options: Mapping[str, Any], vectors: Vectors, vocabulary: str | None
) -> list[F32]:
    """Return `LanguageModel.biases`; the bias of the noise distribution needs counts."""
    prior = options.get("prior") or 0
    counts = _counts(vectors, vocabulary) if prior or options.get("objective") == "ns" else None
    if counts is not None:
        return biases_of(counts, options)
    if prior:
        raise UsageError(
            f"{path}: its scores include a prior (--prior={prior:g}), which requires word counts: "
            "give the file of --save-vocab as --read-vocab"
        )
    return [np.zeros(len(vectors.words), dtype=np.float32)]


def _counts(vectors: Vectors, path: str | None) -> I64 | None:
    """Return the word counts from a vocabulary file, otherwise from the vectors."""
    if path is None:
        return vectors.counts
    vocabulary = Vocabulary.load(path)
    rows = [vocabulary.find(word) for word in vectors.words]
    if None in rows:
        word = vectors.words[rows.index(None)]
        raise FormatError(
            f"{path}: has no count of the word {word}; give the vocabulary of these vectors"
        )
    return vocabulary.counts[np.array(rows, dtype=np.int64)]

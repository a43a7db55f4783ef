"""A language model that computes the likelihood of text from word and context vectors.

A model is a file of --output-tables, or `Vectors` with context vectors. The window and the biases
of its scores follow from the options of its training.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from dcme_w2v.declarations import threads_of, whole_number
from dcme_w2v.errors import NoWordsError, UsageError
from dcme_w2v.formats.columns import Source
from dcme_w2v.formats.corpus import CorpusLike, Sentences, paths_or_sentences
from dcme_w2v.formats.vocabulary import Vocabulary, Words
from dcme_w2v.numeric.arrays import F32, F64, I64, U32
from dcme_w2v.options import VocabularyOptions
from dcme_w2v.platform import PathLike, path_name
from dcme_w2v.text.encode import encode
from dcme_w2v.text.tokenizer import Tokenizer

from .evaluate import covered_questions
from .likelihood import Neighbors, contexts, figures_of, log_probabilities, pieces
from .options import TrainOptions
from .trainer import check_scoring_options, input_of
from .vectors import Vectors, load_if_path

ModelLike: TypeAlias = "PathLike | Vectors | LanguageModel"
FIGURES = ("log_probability", "log_mean_probability")  # attributes of `Likelihood` to report


@dataclass(frozen=True)
class LanguageModel:
    """Input and output vectors for a vocabulary, which predict words from their contexts.

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
        How text is split into tokens.
    sentences : str
        What counts as a sentence in a file (--sentences), as in training.
    unk : str, optional
        The word that out-of-vocabulary tokens become.
    """

    words: Words
    input: F32
    output: F32
    window: int
    biases: list[F32]
    neighbors: Neighbors | None = None
    tokenizer: Tokenizer = field(default_factory=Tokenizer)
    sentences: str = VocabularyOptions.sentences
    unk: str | None = None

    @classmethod
    def load(cls, model: ModelLike, window: int | None = None) -> LanguageModel:
        """Load a model from a word-vector file.

        Parameters
        ----------
        model : path, Vectors or LanguageModel
            A file of both tables, or `Vectors` with context vectors.
        window : int, optional
            Default: from the manifest, or the default of `dcme-w2v train`.

        Raises
        ------
        UsageError
            The model lacks context vectors, counts for its prior, or the neighbor vectors that a
            model with word order requires.
        """
        if isinstance(model, LanguageModel):
            return model
        path = "the model" if isinstance(model, Vectors) else path_name(model)
        input = load_if_path(model)
        manifest = input.manifest or {}
        options = manifest.get("options", {})
        check_scoring_options(path, options)
        for missing, what in (
            (input.context is None, "its context vectors"),
            (options.get("word_order") and input.neighbors is None, "the vectors of neighbors"),
        ):
            if missing:
                raise UsageError(
                    f"{path}: scoring text requires {what}; train with --output-tables, and use "
                    "the file that it writes"
                )
        assert input.context is not None
        output = input.context.vectors
        matrix = input_of(input.vectors, output, options.get("output_vectors", "input"), path)
        return cls(
            input.words,
            matrix,
            output,
            int(options.get("window", TrainOptions().window) if window is None else window),
            _biases(path, options, input),
            input.neighbors,
            input.tokenizer,
            options.get("sentences", VocabularyOptions.sentences),
            options.get("unk"),
        )

    def text_likelihood(self, corpus: CorpusLike, threads: int = 1) -> dict[str, float]:
        """Return the log-likelihood of a corpus, predicting each token from its context.

        Sentences are as in training; with --sentences=paragraphs, each item of a list is one
        sentence. Out-of-vocabulary tokens are dropped, or become the word of --unk. The keys are
        `log_probability`, `log_mean_probability` and `words`. For negative sampling, the first two
        also exist with the suffix `_with_noise`.
        """
        paths, sentences = paths_or_sentences(corpus)
        in_list = sentences is not None and self.sentences == "paragraphs"
        options = VocabularyOptions(
            **asdict(self.tokenizer.options),
            sentences=VocabularyOptions.sentences if in_list else self.sentences,
        )
        ids = ids_of(sentences or paths, self.words, options, threads, self.unk)
        logs = self.log_probabilities(ids, threads)
        return {**figures_of("", logs, FIGURES), "words": logs.shape[1]}

    def distribution(self, ids: U32, place: int) -> F64:
        """Return the probability of each word at one position in a sentence."""
        h, _ = self.contexts(ids)
        scores = (self.output @ h[place] + self.biases[-1]).astype(np.float64)
        shares = np.exp(scores - scores.max())
        return np.asarray(shares / shares.sum())

    def analogy_likelihood(self, path: PathLike) -> dict[str, float]:
        """Return d's log-likelihood in analogies a b c d, given the vector ``h_b - h_a + h_c``.

        The measure of Wang, Wang and Zhai (2017), table 1. Words are compared in upper case. Keys
        are the keys of `text_likelihood` with the prefix `analogy_`, and `questions`.
        """
        a, b, c, d = covered_questions(self.words, path).T
        h = self.input[b] - self.input[a] + self.input[c]
        logs = log_probabilities(h, d, self.output, self.biases)
        return {**figures_of("analogy_", logs, FIGURES), "questions": len(d)}

    def contexts(self, ids: U32) -> tuple[F32, I64]:
        """Return the context vectors of encoded tokens, and the tokens that have a context."""
        return contexts(ids, self.input, self.window, self.neighbors)

    def log_probabilities(self, ids: U32, threads: int | None) -> F64:
        """Return the log-probabilities of encoded tokens, with one row per bias vector."""
        parts = []
        for piece in pieces(ids):
            h, targets = self.contexts(piece)
            parts.append(log_probabilities(h, targets, self.output, self.biases, threads))
        return np.concatenate(parts, axis=1)


def ids_of(
    files: Sequence[Source] | Sentences,
    words: Words,
    options: VocabularyOptions,
    threads: int,
    unk: str | None = None,
) -> U32:
    """Encode text as word IDs; out-of-vocabulary tokens are dropped, or replaced by `unk`.

    Raises
    ------
    NoWordsError
        All are out of vocabulary.
    """
    all_words = replace(options, min_count=1, max_vocab=None)
    known = Vocabulary(words.text, words.offsets, np.ones(len(words), dtype=np.int64))
    unk = unk if unk in words else None
    try:
        return encode(files, all_words, vocabulary=known, unk=unk, threads=threads).ids
    except NoWordsError:
        name = "the text" if isinstance(files, Sentences) else files[0]
        raise NoWordsError(
            f"{name}: no token is in the vocabulary of {len(words):,} words; use text with the "
            "language and the tokenization of the training text"
        ) from None


def biases_of(counts: I64, options: Mapping[str, Any]) -> list[F32]:
    """Return the biases that are added to dot products before the softmax is computed.

    The first vector of biases is the log prior. For negative sampling, the second vector is the log
    of the noise distribution, which the scores do not include. Each bias is the log of a count to a
    power, up to a constant.
    """
    powers = [float(options.get("prior") or 0)]
    if options.get("objective") == "ns":
        powers.append(float(options["noise_power"]))
    logs = np.log(np.maximum(counts, 1))
    return [(power * logs).astype(np.float32) for power in powers]


def eval_likelihood(
    model: ModelLike,
    corpus: CorpusLike | None = None,
    *,
    window: int | None = None,
    analogies: PathLike | None = None,
    threads: int | None = None,
) -> dict[str, float]:
    """Return the log-likelihood of a text, of analogy questions, or of both under a model.

    Each token is predicted from its context by the exact softmax.

    Parameters
    ----------
    model : path, Vectors or LanguageModel
        Vectors that `train` returned, or a file that ``train --output-tables`` wrote.
    corpus : path, paths, or iterable of sentences, optional
        Text to evaluate, as in `train`.
    window : int, optional
        Number of context words on each side (default: as in training).
    analogies : path, optional
        File with analogy questions; see `eval_analogies`.
    threads : int, optional
        Number of threads (default: the number of CPUs available to this process).

    Returns
    -------
    dict of float
        The mean log-probability and the log of the mean probability, both in nats, and the number
        of words or questions. For negative sampling, both measures are also returned with the noise
        distribution added back.

    Raises
    ------
    UsageError
        Neither a corpus nor a file with questions is given, or the model has no context vectors.

    Examples
    --------
    >>> import dcme_w2v as dw
    >>> v = dw.train("corpus.txt", dim=8, epochs=1, threads=1)
    >>> found = dw.eval_likelihood(v, "corpus.txt")
    >>> found["log_probability"] < 0, found["words"]
    (True, 4000)
    """
    if corpus is None and analogies is None:
        raise UsageError("there is no text to score; pass a corpus, or use --analogies=FILE")
    if window is not None:
        whole_number("window", window)
    loaded = LanguageModel.load(model, window)
    found = {} if corpus is None else loaded.text_likelihood(corpus, threads_of(threads))
    return found | ({} if analogies is None else loaded.analogy_likelihood(analogies))


def _biases(path: str, options: Mapping[str, Any], vectors: Vectors) -> list[F32]:
    """Return the biases of a model; raise an error if its prior requires missing word counts."""
    prior = options.get("prior") or 0
    if vectors.counts is not None:
        return biases_of(vectors.counts, options)
    if prior:
        raise UsageError(
            f"{path}: the model has a prior (--prior={prior:g}), which requires word counts; use "
            "the file that --output-tables wrote"
        )
    return [np.zeros(len(vectors.words), dtype=np.float32)]

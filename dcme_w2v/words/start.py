"""Initialize the tables of a training run with the vectors of an earlier run."""

import re
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from dcme_w2v.errors import FormatError, UsageError, warn
from dcme_w2v.formats.vectors.subwords import Subwords
from dcme_w2v.formats.vocabulary import Vocabulary, Words
from dcme_w2v.numeric.arrays import F32
from dcme_w2v.text.select_vocabulary import InitialWords
from dcme_w2v.training.trainer import hash_of

from .likelihood import Neighbors
from .options import TrainOptions, has_context
from .trainer import input_of
from .vectors import Vectors, load_if_path

_SEPARATORS = np.frombuffer(b"\0\t\n\v\f\r ", dtype=np.uint8)
_REPAIR = "repair it with: dcme-w2v convert IN OUT --invalid=skip"


class Trained(Protocol):
    """The weight tables of a trained model, held in this process or collected from a cluster."""

    options: TrainOptions
    kernels: str
    subwords: Subwords | None
    neighbors: Neighbors | None

    @property
    def input(self) -> F32:
        """The word vectors, shape (words, dim)."""

    @property
    def output(self) -> F32:
        """The context vectors, shape (words, dim)."""


@dataclass(frozen=True)
class Initial:
    """Vectors from which training starts.

    Attributes
    ----------
    vectors : Vectors
    name : str
        The name of the vectors in messages.
    options : dict
        The options of their training, if known.
    """

    vectors: Vectors
    name: str
    options: dict[str, Any]

    @property
    def hash(self) -> str:
        """A short hash that shows a resumed run whether the initial vectors have changed."""
        vectors = self.vectors
        return f"vectors {hash_of([vectors.words.text, vectors.vectors])[:12]}"

    def words(self, init_vocab: str) -> InitialWords | None:
        """Return the words that must get vectors, or None if the corpus determines the words.

        Raises
        ------
        FormatError
            Words have whitespace or are not distinct.
        """
        if init_vocab == "new":
            return None
        words, counts = self.vectors.words, self.vectors.counts
        # Omit </s>: word2vec.c adds it to every vocabulary, but the text does not contain it.
        if (end := words.find("</s>")) is not None:
            rest = np.delete(np.arange(len(words)), end)
            words = Words.from_words(words[int(row)] for row in rest)
            counts = None if counts is None else counts[rest]
        if np.isin(words.text, _SEPARATORS).any():
            raise FormatError(f"{self.name}: a word contains whitespace or NUL bytes; {_REPAIR}")
        return InitialWords(words, counts, init_vocab == "union")


def load_initial(given: str | Vectors) -> Initial:
    """Load the vectors that the option --init specifies."""
    name, vectors = "--init" if isinstance(given, Vectors) else given, load_if_path(given)
    return Initial(vectors, name, (vectors.manifest or {}).get("options", {}))


def start_from(initial: Initial, training: Trained, vocabulary: Vocabulary) -> None:
    """Copy the initial vectors into the training tables, for words that are in the vocabulary.

    Parameters
    ----------
    initial : Initial
        A file of word vectors, or of both tables.
    training : Trained
    vocabulary : Vocabulary
        The vocabulary of the training's corpus.

    Raises
    ------
    FormatError
        The dimensions differ.
    UsageError
        The vectors contain no word of the corpus.
    """
    vectors, name, options = initial.vectors, initial.name, initial.options
    matrix, output = vectors.vectors, vectors.context
    if training.subwords is not None and vectors.subwords is not None:
        matrix = _own_rows(vectors, name, training.subwords)
    if output is not None:
        if has_context(training.options):
            _copy(output, output.vectors, name, training.output, vocabulary)
        matrix = input_of(matrix, output.vectors, options.get("output_vectors", "input"), name)
    _copy(vectors, matrix, name, training.input, vocabulary)
    if output is None and has_context(training.options):
        _warn_of_new_words(vectors, name, vocabulary)
    for given, table in zip(vectors.neighbors or (), training.neighbors or (), strict=False):
        _copy(vectors, given, name, table, vocabulary)


def _warn_of_new_words(vectors: Vectors, name: str, vocabulary: Vocabulary) -> None:
    """Warn that new words are learned slowly, because the initial file has no context vectors."""
    new = sum(word not in vectors.words for word in vocabulary)
    if not new:
        return
    argv = (vectors.manifest or {}).get("argv")
    line = " ".join(map(str, argv)) if isinstance(argv, list) else ""
    both = re.search(r"--output-tables[ =](\S+)", line)
    file = f"--init={both[1]}" if both else "a file written by train --output-tables"
    warn(
        f"{name} has no context vectors, so the {new:,} new words learn slowly; use {file}, "
        "which contains both tables"
    )


def _own_rows(vectors: Vectors, name: str, subwords: Subwords) -> F32:
    """Copy the n-gram vectors, and return the word vectors without n-gram contributions."""
    found = vectors.subwords
    assert found is not None
    same = (found.shortest, found.longest) == (subwords.shortest, subwords.longest)
    if not same or found.rows.shape != subwords.rows.shape:
        raise FormatError(
            f"{name} has n-grams of {found.shortest}-{found.longest} characters in "
            f"{len(found.rows)} buckets of {vectors.dim} dimensions; use --subwords="
            f"{found.shortest}-{found.longest} --buckets={len(found.rows)} --dim={vectors.dim}"
        )
    subwords.rows[:] = found.rows
    return vectors.vectors if found.own is None else found.own


def _copy(
    vectors: Vectors,
    matrix: F32,
    name: str,
    table: F32,
    vocabulary: Vocabulary,
) -> None:
    if vectors.dim != table.shape[1]:
        raise FormatError(
            f"{name} has {vectors.dim} dimensions, but --dim is {table.shape[1]}; "
            f"use --dim={vectors.dim}"
        )
    found = [
        (here, there)
        for here, word in enumerate(vocabulary)
        if (there := vectors.words.find(word)) is not None
    ]
    if not found:
        raise UsageError(
            f"{name} has no word in common with the corpus; use vectors for the language and the "
            "tokenization of the corpus"
        )
    here, there = np.array(found).T
    table[here] = matrix[there]

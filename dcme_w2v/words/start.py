"""Initial tables of training: those of an earlier run for the words in its vocabulary.

Called by the train job for --init and --init-context.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dcme_w2v.errors import FormatError, UsageError
from dcme_w2v.text.vocabulary import Vocabulary
from dcme_w2v.text.words import Words
from dcme_w2v.words.defaults import has_context
from dcme_w2v.words.fasttext import NEGATIVE_SAMPLING, is_fasttext, open_model
from dcme_w2v.words.manifest import read_manifest
from dcme_w2v.words.subwords import Subwords
from dcme_w2v.words.tables import input_of, load_tables
from dcme_w2v.words.trainer import Trainer
from dcme_w2v.words.vectors import Vectors


def start_from(
    init: str | Vectors, context: str | Vectors | None, training: Trainer, vocabulary: Vocabulary
) -> None:
    """Copy the rows of the words that the given vectors have into the tables.

    Parameters
    ----------
    init : str or Vectors
        A file of word vectors, or a folder of both tables.
    context : str or Vectors, optional
        Context vectors; by default those of `init`, if it has any.
    training : Trainer
    vocabulary : Vocabulary
        Of the training's corpus.

    Raises
    ------
    FormatError
        The dimensions differ.
    UsageError
        None of the corpus's words is there.
    """
    vectors, name, options = _loaded(init, "--init")
    if training.subwords is not None and isinstance(init, str) and is_fasttext(init):
        vectors = _with_ngrams(vectors, init, training.subwords)
    output = vectors.context
    if context is not None:
        output, context_name, _ = _loaded(context, "--init-context")
        _copy(output, output.vectors, context_name, training.output, vocabulary)
        _check_same(vectors.words, output.words, name, context_name, options)
    elif output is not None and has_context(training.options):
        _copy(output, output.vectors, name, training.output, vocabulary)
    matrix = vectors.vectors
    if output is not None:
        matrix = input_of(matrix, output.vectors, options.get("vectors", "input"), name)
    _copy(vectors, matrix, name, training.input, vocabulary)
    if training.neighbours is not None and isinstance(init, str) and Path(init).is_dir():
        pairs = zip(load_tables(init).neighbours or (), training.neighbours, strict=False)
        for given, table in pairs:
            _copy(vectors, given, name, table, vocabulary)


def _loaded(given: str | Vectors, flag: str) -> tuple[Vectors, str, dict[str, Any]]:
    """Return vectors, what messages call them, and the options of their training, if known."""
    if isinstance(given, str):
        vectors = Vectors.load(given)
        manifest = vectors.manifest or read_manifest(given)
    else:
        vectors, manifest = given, given.manifest or {}
    return vectors, given if isinstance(given, str) else flag, manifest.get("options", {})


def _with_ngrams(vectors: Vectors, path: str, subwords: Subwords) -> Vectors:
    """Copy the n-grams of a model of fastText; return the words' own rows instead of means."""
    model = open_model(path)
    found, words = model.subwords, len(model.words)
    if found is None:
        return vectors
    same = (found.shortest, found.longest) == (subwords.shortest, subwords.longest)
    if not same or found.rows.shape != subwords.rows.shape:
        raise FormatError(
            f"{path}: has n-grams of {found.shortest}-{found.longest} characters in "
            f"{len(found.rows)} buckets of {vectors.dim} dimensions: give --subwords="
            f"{found.shortest}-{found.longest} --buckets={len(found.rows)} --dim={vectors.dim}"
        )
    subwords.rows[:] = found.rows
    has_context = len(model.output) == words and model.header["loss"] == NEGATIVE_SAMPLING
    context = Vectors(vectors.words, model.output) if has_context else None
    return Vectors(vectors.words, model.input[:words], context=context)


def _check_same(
    words: Words, others: Words, name: str, context: str, options: dict[str, Any]
) -> None:
    """Raise where the input vectors are what a sum is more than the context vectors, row by row."""
    if options.get("vectors", "input") != "input" and list(words) != list(others):
        raise FormatError(f"{context}: has other words than {name}; give its own")


def _copy(
    vectors: Vectors,
    matrix: NDArray[np.float32],
    name: str,
    table: NDArray[np.float32],
    vocabulary: Vocabulary,
) -> None:
    if vectors.dim != table.shape[1]:
        raise FormatError(
            f"{name}: has {vectors.dim} dimensions and --dim is {table.shape[1]}: "
            f"give --dim={vectors.dim}"
        )
    found = [
        (here, there)
        for here, word in enumerate(vocabulary)
        if (there := vectors.words.find(word)) is not None
    ]
    if not found:
        raise UsageError(f"{name}: has none of the corpus's words; give other vectors")
    here, there = np.array(found).T
    table[here] = matrix[there]

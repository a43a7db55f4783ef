"""The two tables of a run, input and output, as word vectors: one of them, or their sum.

Training leaves two vectors of each word, for the word as context (input) and as target (output).
Both describe the word; GloVe (Pennington et al. 2014, section 4.2) also writes their sum. --init
and the commands that compute likelihoods read a file with both tables.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dcme_w2v.errors import FormatError, UsageError
from dcme_w2v.formats.artifact import load_model, save_model, words_arrays
from dcme_w2v.formats.vectors.vectors_io import blocks_of, combined
from dcme_w2v.formats.vocabulary import Vocabulary
from dcme_w2v.numeric.arrays import F32
from dcme_w2v.platform import PathLike

from .likelihood import NEIGHBORS, Neighbors
from .options import TrainOptions

KIND, VERSION = "tables", 1  # of the file that --output-tables writes
_SCORING = ("objective", "prior", "noise_power", "window", "word_order")


def combine_in_place(input: F32, output: F32, vectors: str) -> F32:
    """Return the word vectors, in the memory of the input table where a new one would be needed."""
    if vectors == "context":
        return output
    for first, rows in blocks_of(input) if vectors != "input" else ():
        block = slice(first, first + len(rows))
        input[block] = combined(rows, output[block], vectors)
    return input


def input_of(vectors: F32, context: F32, kind: str, path: str) -> F32:
    """Return the input vectors, whichever vectors of `kind` were written to `path`.

    Raises
    ------
    UsageError
        They are not distinguishable from these.
    """
    if kind == "input":
        return vectors
    if kind == "sum":
        return np.asarray(vectors - context)
    raise UsageError(f"{path}: has no input vectors (--vectors={kind}); train with --vectors=input")


# ---- a file of both tables ----


def save_tables(
    path: PathLike,
    vocabulary: Vocabulary,
    input: F32,
    output: F32,
    options: Mapping[str, Any],
    neighbors: Neighbors | None = None,
) -> None:
    """Write words, counts and both tables, and the options of their training, to a file.

    With word order, `neighbors` are written, too.
    """
    arrays = {**words_arrays(vocabulary), "counts": vocabulary.counts}
    tables = {"input": input, "output": output}
    if neighbors is not None:
        tables |= dict(zip(NEIGHBORS, neighbors, strict=True))
    save_model(path, KIND, VERSION, {**arrays, **tables}, {"options": dict(options)})


@dataclass(frozen=True)
class Tables:
    """The contents of a file of `save_tables`; the tables are mapped."""

    vocabulary: Vocabulary
    input: F32
    output: F32
    options: dict[str, Any]
    neighbors: Neighbors | None = None


def load_tables(path: PathLike) -> Tables:
    """Read what `save_tables` wrote.

    Raises
    ------
    FormatError
        It is not such a file, or is corrupt.
    """
    model = load_model(path, KIND, VERSION)
    words, counts = model.words(), model.array("counts", "int64", None)
    options = model.description.get("options")
    if len(words) != len(counts) or not isinstance(options, dict):
        raise FormatError(f"{model.path}: words, counts or options are corrupt; train again")
    check_scoring_options(path, options)
    input = model.array("input", "float32", len(words), None)
    output = model.array("output", "float32", *input.shape)
    neighbors = None
    if options.get("word_order"):
        left, right = (model.array(name, "float32", *input.shape) for name in NEIGHBORS)
        neighbors = left, right
    if counts.min(initial=1) < 0:
        raise FormatError(f"{model.path}: a count is negative; train again")
    vocabulary = Vocabulary(words.text, words.offsets, np.asarray(counts))
    return Tables(vocabulary, input, output, options, neighbors)


def check_scoring_options(path: PathLike, options: dict[str, Any]) -> None:
    """Raise if options of a training that scores depend on are not valid."""
    try:
        TrainOptions.from_mapping({name: options[name] for name in _SCORING if name in options})
    except UsageError as error:
        raise FormatError(f"{path}: the options of its training: {error.message}") from None

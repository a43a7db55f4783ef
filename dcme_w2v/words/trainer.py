"""Train word vectors in the C core, which also keeps the clusters of the objective dcme."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from dcme_w2v._core import models as core
from dcme_w2v.errors import FormatError, UsageError
from dcme_w2v.formats.vectors.subwords import Subwords, WordNgrams
from dcme_w2v.formats.vectors.tables import NEIGHBORS
from dcme_w2v.numeric.arrays import F32, I64, U32, drop_pages, unit_vectors
from dcme_w2v.numeric.parallel import blocks_of_rows
from dcme_w2v.platform import PathLike
from dcme_w2v.training import trainer as engine
from dcme_w2v.training.trainer import core_options, kernels_named, new_table, table_of

from .likelihood import Neighbors
from .options import TrainOptions


class Trainer(engine.Trainer):
    """Train word vectors on an encoded corpus.

    Parameters
    ----------
    ids : ndarray of uint32, shape (n,)
        Word numbers by descending frequency; bit 31 marks the last word of a sentence.
    counts : ndarray of int64, shape (words,)
        Number of occurrences of each word.
    options : TrainOptions
        Resolved, see `dcme_w2v.words.options.resolved`.
    kernels : str, optional
        Instruction set: "scalar", "avx2", "avx512" or "neon"; by default from the environment
        variable DCME_W2V_KERNELS, or else the fastest that the machine supports.
    ngrams : WordNgrams, optional
        The character n-grams of the words, which have input vectors, too.
    start : (ndarray of float32, ndarray of float32), optional
        The input and the output vectors at the start, of shape (words, dim), which are copied;
        by default random numbers and zeros. n-grams exclude it.

    Attributes
    ----------
    input, output : ndarray of float32, shape (words, dim)
        The word vectors and the context vectors. Rows are padded: the arrays are views that are
        not contiguous. With n-grams, `input` has a word's own vectors only.
    subwords : Subwords or None
        The vectors of the n-grams.
    neighbors : tuple of ndarray of float32, shape (words, dim), or None
        With word order: the vectors of the words just left and just right of a target.
    """

    options: TrainOptions
    _core: core.Trainer

    def __init__(
        self,
        ids: U32,
        counts: I64,
        options: TrainOptions,
        kernels: str | None = None,
        ngrams: WordNgrams | None = None,
        start: Sequence[F32] | None = None,
    ) -> None:
        words = len(counts)
        rows = words + (ngrams.options.buckets if ngrams else 0)
        if start is None:
            input_table = new_table(rows, options.dim)
            output_table = new_table(words, options.dim, as_for=rows)
        else:
            input_table, output_table = map(table_of, start)
        self.input = input_table[:words, : options.dim]
        self.output = output_table[:, : options.dim]
        self.subwords: Subwords | None = None
        if ngrams is not None:
            self.subwords = Subwords(*ngrams.options.lengths, input_table[words:, : options.dim])
        self.neighbors: Neighbors | None = None
        both = [new_table(words, options.dim) for _ in range(2)] if options.word_order else None
        kernels = kernels_named(kernels)
        opened = core.Trainer(
            core_options(options, TrainOptions),
            ids,
            counts,
            input_table,
            output_table,
            kernels,
            (ngrams.starts, ngrams.numbers) if ngrams else None,
            both,
        )
        # Release the memory pages of the IDs, because the core has read all IDs.
        drop_pages(ids)
        if start is None:
            core.initialize(input_table, options.dim, options.seed)
        # The order of the tables determines the row numbers in the core.
        tables = {"vectors": self.input}
        if self.subwords is not None:
            tables["ngrams"] = self.subwords.rows
        tables["context"] = self.output
        if both is not None:
            self.neighbors = both[0][:, : options.dim], both[1][:, : options.dim]
            tables |= dict(zip(NEIGHBORS, self.neighbors, strict=True))
        super().__init__(opened, options, tables, kernels)
        self._mapped = ids

    @property
    def clusters(self) -> int:
        """Number of dual clusters, or 0 if the objective has no clusters."""
        return self._core.clusters()

    def center(self, k: int) -> F32:
        """Return a copy of a dual cluster's center (a distribution over words) between epochs."""
        return self._core.center(k)


_SCORING = ("objective", "prior", "noise_power", "window", "word_order")


def combined(input: F32, output: F32, kind: str, in_place: bool) -> F32:
    """Return word vectors of the given kind, which can overwrite the input table.

    Parameters
    ----------
    input, output : ndarray of float32, shape (n, d)
    kind : {"sum", "input", "context", "unit-sum"}
        ``unit-sum`` is the sum of both scaled to unit length; rows of zeros stay.
    in_place : bool
        Whether sums are made in the memory of `input`.

    Returns
    -------
    ndarray of float32, shape (n, d)
    """
    if kind in ("input", "context"):
        return input if kind == "input" else output
    found = input if in_place else np.array(input)
    for rows in blocks_of_rows(len(found)):
        if kind == "sum":
            found[rows] += output[rows]
        else:
            found[rows] = unit_vectors(found[rows]) + unit_vectors(output[rows])
    return found


def input_of(vectors: F32, context: F32, kind: str, path: str) -> F32:
    """Compute the input vectors from word vectors of another kind.

    Raises
    ------
    UsageError
        The input vectors cannot be recovered from vectors of this kind.
    """
    if kind == "input":
        return vectors
    if kind == "sum":
        return np.asarray(vectors - context)
    raise UsageError(
        f"{path} has no input vectors (--output-vectors={kind}); train with --output-vectors=input"
    )


def check_scoring_options(path: PathLike, options: dict[str, Any]) -> None:
    """Raise an error if a recorded training option that affects scores is invalid."""
    try:
        TrainOptions.from_mapping({name: options[name] for name in _SCORING if name in options})
    except UsageError as error:
        raise FormatError(
            f"{path}: the recorded training options are not valid: {error.message}"
        ) from None

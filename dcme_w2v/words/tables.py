"""Makes word vectors from the input and output tables of a training run.

Training leaves two vectors of each word, for the word as context (input) and as target (output).
Both describe the word; GloVe (Pennington et al. 2014, section 4.2) also writes their sum. --init
and the commands that compute likelihoods read a file with both tables.
"""

from typing import Any

import numpy as np

from dcme_w2v.errors import FormatError, UsageError
from dcme_w2v.numeric.arrays import F32, unit_vectors
from dcme_w2v.numeric.parallel import blocks_of_rows
from dcme_w2v.platform import PathLike

from .options import TrainOptions

_SCORING = ("objective", "prior", "noise_power", "window", "word_order")


def combined(input: F32, output: F32, kind: str, in_place: bool) -> F32:
    """Overwrite the input table with the word vectors of this kind, and return it.

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


def check_scoring_options(path: PathLike, options: dict[str, Any]) -> None:
    """Raise an error if training options that affect scores are not valid."""
    try:
        TrainOptions.from_mapping({name: options[name] for name in _SCORING if name in options})
    except UsageError as error:
        raise FormatError(
            f"{path}: the training options in it are not valid: {error.message}"
        ) from None

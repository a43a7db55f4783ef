"""Word vectors made of two tables: the input vectors, the context vectors, or their sum."""

from dataclasses import dataclass

import numpy as np

from dcme_w2v.numeric.arrays import F32, unit_vectors


def combined(input: F32, output: F32, vectors: str) -> F32:
    """Return the word vectors that some rows of both tables make.

    Parameters
    ----------
    input, output : ndarray of float32, shape (n, d)
    vectors : {"sum", "input", "context", "unit-sum"}
        ``unit-sum`` is the sum of both scaled to unit length; rows of zeros stay.

    Returns
    -------
    ndarray of float32, shape (n, d)
    """
    if vectors == "input":
        return input
    if vectors == "context":
        return output
    return input + output if vectors == "sum" else unit_vectors(input) + unit_vectors(output)


@dataclass(frozen=True)
class CombinedRows:
    """The word vectors that two tables make, computed for the rows that are asked for.

    `save_vectors` writes them like a matrix, without a third table in memory.
    """

    input: F32
    output: F32
    vectors: str

    dtype = np.dtype(np.float32)
    ndim = 2

    @property
    def shape(self) -> tuple[int, int]:
        """Words and dimensions."""
        return self.input.shape[0], self.input.shape[1]

    def __len__(self) -> int:
        return len(self.input)

    def __getitem__(self, rows: slice) -> F32:
        return combined(self.input[rows], self.output[rows], self.vectors)

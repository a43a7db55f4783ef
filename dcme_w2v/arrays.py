"""What readers of arrays from files needs: whether numbers are finite, and no warnings."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray


def all_finite(array: NDArray[Any]) -> bool:
    """Return whether an array has no NaN and no infinity; only floats can have them.

    A finite sum has finite terms only; terms of a sum that is not may still be finite.
    """
    if array.dtype.kind not in "fc" or not array.size:
        return True
    with np.errstate(all="ignore"):
        total = array.sum(dtype=np.float64)
    return bool(np.isfinite(total)) or bool(np.isfinite(array).all())


@contextlib.contextmanager
def without_warnings() -> Iterator[None]:
    """Ignore numpy's warnings of damaged and old headers: a file is read, or is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield

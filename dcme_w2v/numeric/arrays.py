"""Array helpers: checks for NaN, immutability, memory mapping, chunks and weighted means."""

import contextlib
import math
import mmap
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dcme_w2v.errors import FormatError, UsageError

# Aliases for array types, named after the element types.
Array = NDArray[Any]
Bools = NDArray[np.bool_]
F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
I8 = NDArray[np.int8]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]
U16 = NDArray[np.uint16]
U32 = NDArray[np.uint32]


class Immutable:
    """Base class whose public attributes cannot be reassigned; private attributes can be caches."""

    def __setattr__(self, name: str, value: object) -> None:
        if name in vars(self) and not name.startswith("_"):
            raise AttributeError(
                f"{name} cannot be set, because {type(self).__name__} objects are immutable; "
                "create a new object"
            )
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        raise AttributeError(
            f"{name} cannot be deleted, because {type(self).__name__} objects are immutable; "
            "create a new object"
        )


# `sealed` also makes objects of these modules' classes read-only.
_OWN = ("dcme_w2v.", "scipy.sparse.")


def _refuse(self: object, *_: object, **__: object) -> NoReturn:
    kind = type(self).__bases__[0].__name__
    raise TypeError(f"this {kind} is read-only; to change it, make a copy with {kind}(...)")


class ReadOnlyDict(dict[str, Any]):
    """A dict that cannot be changed; it is compared, copied and written as JSON like any dict."""

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (dict(self),)


class ReadOnlyList(list[Any]):
    """A list that cannot be changed; it is compared, copied and written as JSON like any list."""

    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = extend = insert = remove = pop = clear = sort = reverse = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (list(self),)


class Sealed:
    """Base class of models that remain read-only after they are copied or unpickled."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        seal(self)


def sealed(value: Any) -> Any:
    """Make a value read-only in place if possible; otherwise return a read-only copy.

    Arrays become read-only in place, including those in objects of this package; dicts and lists
    are replaced by read-only copies.
    """
    if isinstance(value, np.ndarray):
        value.flags.writeable = False
    elif isinstance(value, dict):
        return ReadOnlyDict({key: sealed(part) for key, part in value.items()})
    elif isinstance(value, list):
        return ReadOnlyList(map(sealed, value))
    elif type(value) is tuple:
        return tuple(map(sealed, value))
    elif type(value).__module__.startswith(_OWN):
        seal(value)
    return value


def seal(
    owner: Any, is_learned: Callable[[str], bool] = lambda name: not name.startswith("_")
) -> None:
    """Make the public attributes of an object read-only; private attributes can be caches."""
    held = getattr(owner, "__dict__", {})
    held.update({name: sealed(part) for name, part in held.items() if is_learned(name)})


def read_only(values: ArrayLike, dtype: type | None = None) -> Array:
    """Return a read-only view of an array, which is converted to `dtype` first."""
    try:
        array: Array = np.asanyarray(values, dtype=dtype).view()
    except OverflowError:
        raise UsageError(
            "vectors: a value is too large for float32; use values below 3.4e38"
        ) from None
    array.flags.writeable = False
    return array


def all_finite(array: Array) -> bool:
    """Return whether an array contains neither NaN nor infinity.

    If a sum is finite, so are all its terms; a sum that overflows may still have finite terms.
    """
    if array.dtype.kind not in "fc" or not array.size:
        return True
    with np.errstate(all="ignore"):
        total = array.sum()
    return bool(np.isfinite(total)) or bool(np.isfinite(array).all())


def infinite_row(rows: Array) -> int | None:
    """Return the index of the first row with NaN or infinity, or None if there is no such row."""
    finite = np.isfinite(rows).all(axis=1)
    return None if finite.all() else int(np.argmin(finite))


@contextlib.contextmanager
def without_warnings() -> Iterator[None]:
    """Ignore numpy's warnings about damaged or old file headers; errors are still raised."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@dataclass(frozen=True)
class ChunkedArray:
    """An array that is produced in chunks, so that it is never entirely in memory.

    Attributes
    ----------
    shape : tuple of int
    dtype : dtype
    make : callable
        Function that returns the pieces in C order; it may be called several times.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    make: Callable[[], Iterable[Array]]

    @property
    def nbytes(self) -> int:
        """Size of the whole array in bytes."""
        return math.prod(self.shape) * self.dtype.itemsize

    def __iter__(self) -> Iterator[Array]:
        """Yield the array in chunks.

        Raises
        ------
        ValueError
            The pieces do not have the array's dtype and size.
        """
        size = 0
        for piece in self.make():
            if piece.dtype != self.dtype:
                raise ValueError(
                    f"a chunk has the type {piece.dtype}, but the array has the type {self.dtype}"
                )
            size += piece.nbytes
            yield piece
        if size != self.nbytes:
            raise ValueError(
                f"the chunks have {size} bytes in total, but the array has {self.nbytes} bytes"
            )


def drop_pages(array: Array) -> None:
    """Release a mapped file's pages from memory; the system reads them again when they are needed.

    Nothing happens for arrays that are not mapped files, or on systems without support.
    """
    found = _map_of(array)
    if found is not None and found.mode != "c" and hasattr(mmap, "MADV_DONTNEED"):
        with contextlib.suppress(OSError, ValueError):
            found._mmap.madvise(mmap.MADV_DONTNEED)  # type: ignore[attr-defined]


def check_mapped(*arrays: Array | None) -> None:
    """Raise `FormatError` if a mapped file was truncated, because reading it would cause SIGBUS."""
    for array in arrays:
        if array is not None and (found := _map_of(array)) is not None:
            whole: mmap.mmap = found._mmap  # type: ignore[attr-defined]
            begin = found.offset // mmap.ALLOCATIONGRANULARITY * mmap.ALLOCATIONGRANULARITY
            if whole.size() < begin + len(whole):
                raise FormatError(
                    f"{found.filename}: the file was truncated while it was open; write the file "
                    "again, and then reload it"
                )


def _map_of(array: Array) -> np.memmap[Any, Any] | None:
    """Return the memory map that an array is part of, or None if the array is in memory."""
    base: Any = array
    while isinstance(base, np.ndarray):
        if isinstance(base, np.memmap) and base._mmap is not None:  # type: ignore[attr-defined]
            return base
        base = base.base
    return None


def unit_vectors(rows: Array) -> Array:
    """Scale each row of a matrix (n, d) to unit length, except rows that contain only zeros."""
    with np.errstate(over="ignore", under="ignore"):
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    units: Array = rows / np.where(lengths > 0, lengths, 1)
    # Rescale rows whose squared values would overflow or underflow.
    extreme = np.flatnonzero(~((lengths > 1e-15) & (lengths < 1e15)))
    if len(extreme) and (largest := np.abs(rows[extreme]).max(axis=1, keepdims=True)).any():
        scaled = rows[extreme] / np.where(largest > 0, largest, 1)
        lengths = np.linalg.norm(scaled, axis=1, keepdims=True)
        units[extreme] = scaled / np.where(lengths > 0, lengths, 1)
    return units


def specificity(rarity: Array) -> F64:
    """Return each word's specificity to a group, given the logarithm of its rarity in other groups.

    A word that occurs everywhere (rarity 0) does not describe any group, and few readers know the
    rarest words.
    """
    logs = np.maximum(rarity.astype(np.float64), 1e-9)
    return logs * (logs.max(initial=0.0) + 1 - logs)


def mean_by_counts(
    start: F32, learned: Sequence[F32], counts: Sequence[NDArray[np.integer | np.floating]]
) -> F32:
    """Average several tables; each row is weighted by its count in the respective table.

    This is the weighted parameter mixture of Mann et al. (2009), with counts as weights.

    Parameters
    ----------
    start : ndarray of float32, shape (n, d)
        The rows that are returned if all counts are 0.
    learned : sequence of ndarray of float32, shape (n, d)
    counts : sequence of ndarray, shape (n,)
        Counts of each table's rows, at least 0.
    """
    weights = [np.asarray(one, dtype=np.float64)[:, None] for one in counts]
    total = np.zeros((len(start), 1))
    mixed = np.zeros(start.shape)
    for rows, weight in zip(learned, weights, strict=True):
        total += weight
        mixed += weight * rows
    seen = total[:, 0] > 0
    np.divide(mixed, total, out=mixed, where=total > 0)
    return np.where(seen[:, None], mixed.astype(np.float32), start)


def correlations(x: Any, y: Any) -> tuple[float, float]:
    """Return Pearson's and Spearman's correlation coefficients of x and y."""
    from scipy import stats  # slow to import

    return float(stats.pearsonr(x, y).statistic), float(stats.spearmanr(x, y).statistic)

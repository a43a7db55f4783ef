"""The entries of a model folder: arrays, and values of its JSON file, checked when read."""

from __future__ import annotations

import reprlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from dcme_w2v.declarations import Checked
from dcme_w2v.errors import FormatError, UsageError
from dcme_w2v.numeric.arrays import Array, all_finite

from .vectors.vectors_reader import FAULT_NAMES, SEPARATOR, word_faults
from .word_list import Words

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

MODEL_FILE = "model.json"
_KINDS = {float: "a finite number", int: "an integer", bool: "true or false", str: "a string",
          list: "a list", dict: "an object"}  # fmt: skip
Value = TypeVar("Value")
Options = TypeVar("Options", bound=Checked)


@dataclass(frozen=True)
class Model:
    """The content of a model's folder.

    Attributes
    ----------
    path : Path
        The folder.
    description : dict
        The other fields of the JSON file, such as the options.
    arrays : dict of ndarray
        The arrays by name, memory-mapped and read-only.
    """

    path: Path
    description: dict[str, Any]
    arrays: dict[str, Array]

    def array(self, name: str, dtype: str, *shape: int | None) -> Array:
        """Return a required array, checking its dtype and shape (None: any length).

        Raises
        ------
        FormatError
            It is not there, is another, or has a number that is NaN or infinite.
        """
        found = self.arrays.get(name)
        if found is None:
            raise self.fault(name, "there is no such array")
        fits = len(shape) == found.ndim and all(
            want in (None, have) for want, have in zip(shape, found.shape, strict=True)
        )
        if found.dtype != np.dtype(dtype) or not fits:
            wanted = ", ".join("any" if length is None else str(length) for length in shape)
            raise self.fault(
                name,
                f"is {found.dtype} of shape {found.shape}, must be {dtype} of shape ({wanted})",
            )
        if not all_finite(found):
            raise self.fault(name, "has a number that is NaN or infinite")
        return np.asarray(found)

    def rows(
        self, names: tuple[str, str, str], count: int | None, width: int, dtype: str = "float32"
    ) -> csr_matrix:
        """Return sparse rows of a dtype from the arrays of row starts, columns and values.

        Parameters
        ----------
        names : tuple of str
        count : int or None
            How many rows there are; None for any number.
        width : int
            Columns are 0 to width - 1.
        """
        from scipy.sparse import csr_matrix  # not for models of word vectors

        from dcme_w2v.numeric.sparse_rows import check_numbers, check_pointers

        starts = self.array(names[0], "int64", None if count is None else count + 1)
        columns = self.array(names[1], "int32", None)
        values = self.array(names[2], dtype, len(columns))
        name = names[0]
        try:
            check_pointers(starts, len(columns), max(0, len(starts) - 1))
            name = names[1]
            check_numbers("column", columns, len(values), width)
        except ValueError as error:
            raise self.fault(name, str(error)) from None
        return csr_matrix((values, columns, starts), shape=(len(starts) - 1, width))

    def words(self) -> Words:
        """Return a list of words from the arrays that `words_arrays` made."""
        text = self.array("words_text", "uint8", None)
        offsets = self.array("words_offsets", "int64", None)
        rising = len(offsets) and offsets[0] == 0 and (offsets[1:] > offsets[:-1]).all()
        if not rising or offsets[-1] != len(text):
            raise self.fault("words_offsets", "does not rise from 0 to the length of the text")
        return self.checked_words(Words(text, offsets))

    def checked_words(self, words: Words) -> Words:
        """Return a list of words, or raise where one cannot be a feature."""
        faults = word_faults(words)
        faults[SEPARATOR] = 0  # a feature may be several words
        for kind in np.flatnonzero(faults[:, 0]):
            row = int(faults[kind, 1]) + 1
            raise self.fault("words_text", f"{FAULT_NAMES[kind]} (words {row})")
        return words

    def value(self, name: str, kind: type[Value]) -> Value:
        """Return an entry of the JSON file that has to be there, of a type."""
        if name not in self.description:
            raise self.fault(name, f"there is no such entry in {MODEL_FILE}")
        value: Any = self.description[name]
        if kind is float and type(value) is int and abs(value) < 1 << 53:
            value = float(value)
        if isinstance(value, kind) and type(value) is kind:
            return value
        raise self.fault(name, f"is {shown(value)}, must be {_KINDS[kind]}")

    def number(self, name: str, lowest: float, highest: float) -> float:
        """Return a number of the JSON file within bounds."""
        value = self.value(name, float)
        if not lowest <= value <= highest:
            raise self.fault(name, f"is {value:g}, must be {lowest:g} to {highest:g}")
        return value

    def strings(self, name: str) -> list[str]:
        """Return a list of the JSON file, of distinct strings, at least one."""
        found = self.value(name, list)
        for number, item in enumerate(found, 1):
            if type(item) is not str or not _is_unicode(item):
                raise self.fault(name, f"item {number} is {shown(item)}, must be a string")
        if not found:
            raise self.fault(name, "is empty")
        if len(set(found)) < len(found):
            twice = next(item for i, item in enumerate(found) if item in found[:i])
            raise self.fault(name, f"has {shown(twice)} twice")
        return found

    def options(self, name: str, cls: type[Options]) -> Options:
        """Return options of the JSON file; see `Checked.from_stored`."""
        try:
            return cls.from_stored(self.value(name, dict))
        except UsageError as error:
            raise self.fault(name, error.message) from None

    def fault(self, entry: str, what: str) -> FormatError:
        """Return the error of an entry: an array, or one of the JSON file."""
        return FormatError(f"{self.path}: {entry}: {what}; fit the model again")


def shown(value: Any) -> str:
    """Return a value on one line, not too long."""
    return reprlib.repr(value).encode("unicode_escape").decode()


def _is_unicode(text: str) -> bool:
    """Return whether a string has no unpaired surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True

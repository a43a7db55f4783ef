"""A MODEL: a folder of .npy files, memory-mapped, and a JSON file, both checked; no pickle."""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import reprlib
import stat
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from dcme_w2v import __version__, platform
from dcme_w2v.declarations import Checked
from dcme_w2v.errors import FormatError, UsageError
from dcme_w2v.files.atomic import check_parent, is_mount_point, target_of, write_errors
from dcme_w2v.files.folders import atomic_folder, new_file, restore
from dcme_w2v.files.opening import JSON_BYTES, open_regular
from dcme_w2v.files.temporary import ATTEMPTS, is_at
from dcme_w2v.numeric.arrays import Array, ChunkedArray, all_finite
from dcme_w2v.platform import PathLike

from .npy import npy_header, npy_pieces, read_npy
from .vectors.manifest import recorded_arguments
from .vectors.vectors_reader import FAULT_NAMES, SEPARATOR, word_faults
from .vocabulary import Words

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
        return found

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
        return self.checked_words(Words(np.asarray(text), np.asarray(offsets)))

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
        """Return options of the JSON file."""
        try:
            return cls.from_mapping(self.value(name, dict))
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


_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}", re.ASCII)
OF_CLASSES = ("classifier", "label-trees", "shrunk")
_OWN_KEYS = ("kind", "version", "program", "argv", "arrays")


def words_arrays(words: Words) -> dict[str, Array]:
    """Return a list of words as arrays for `save_model`."""
    return {"words_text": words.text, "words_offsets": words.offsets}


def save_model(
    path: PathLike,
    kind: str,
    version: int,
    arrays: Mapping[str, Array | ChunkedArray],
    description: Mapping[str, Any],
) -> None:
    """Write a model's folder atomically: the target is the old model or the complete new one.

    Parameters
    ----------
    path : path
        The folder. An existing one is replaced if it is empty or has only a model of this kind. A
        symbolic link to a folder is kept.
    kind : str
        The kind of model, which `load_model` requires.
    version : int
        Version of this kind's format; increase it when older programs cannot read it.
    arrays : mapping of ndarray or ChunkedArray
        Names of lower-case letters, digits and ``_``.
    description : mapping
        Written to the JSON file.

    Raises
    ------
    UsageError
        `path` has other content.
    """
    kinds, target = kinds_like(kind), target_of(path)
    check_model_target(path, *kinds)
    for name in arrays:
        if not _NAME.fullmatch(name):
            raise ValueError(f"array name {name!r}: use lower-case letters, digits and _")
    text = _head_text(kind, version, arrays, description)
    with write_errors(path), atomic_folder(target, partial(_files_in, kinds)) as temporary:
        for name, array in arrays.items():
            with new_file(temporary / f"{name}.npy") as file:
                file.writelines(npy_pieces(array))
        with new_file(temporary / MODEL_FILE) as file:
            file.write(text)


def size_of_model(
    kind: str, version: int, arrays: Mapping[str, Array], description: Mapping[str, Any]
) -> int:
    """Return the bytes of the files that `save_model` would write."""
    size = len(_head_text(kind, version, arrays, description))
    return size + sum(len(npy_header(a.dtype, a.shape)) + a.nbytes for a in arrays.values())


def _head_text(
    kind: str,
    version: int,
    arrays: Mapping[str, Array | ChunkedArray],
    description: Mapping[str, Any],
) -> bytes:
    """Return the JSON file of a model."""
    listed = {name: _kind_of(array) for name, array in arrays.items()}
    head: dict[str, Any] = {"kind": kind, "version": version, "program": f"dcme-w2v {__version__}"}
    if (arguments := recorded_arguments()) is not None:
        head["argv"] = arguments
    text = json.dumps({**head, **description, "arrays": listed}, indent=1, allow_nan=False)
    return text.encode() + b"\n"


def kind_of_model(path: PathLike) -> str:
    """Return the kind of model in a folder.

    Raises
    ------
    FormatError
        It is not a model.
    """
    return str(_head(Path(path)).get("kind"))


def describe_model(path: PathLike) -> dict[str, Any]:
    """Return the JSON file of a model of any kind, with dtype and shape of each array as text.

    Raises
    ------
    FormatError
        It is not a model, or an array is missing or differs from the description.
    """
    head, arrays = _read(Path(path), lambda head: None)
    if type(head.get("kind")) is not str:
        raise FormatError(f"{Path(path, MODEL_FILE)}: has no kind or arrays; fit the model again")
    return {**head, "arrays": {name: f"{one.dtype} {one.shape}" for name, one in arrays.items()}}


def load_model(path: PathLike, kind: str, version: int) -> Model:
    """Open a model's folder; the arrays are memory-mapped.

    Raises
    ------
    FormatError
        It is not a model of this kind and version, or is corrupt.
    """

    def check(head: dict[str, Any]) -> None:
        found, version_found = shown(head.get("kind")), shown(head.get("version"))
        if head.get("kind") != kind:
            raise FormatError(f"{path}: is a model of kind {found}; give one of {kind}")
        if head.get("version") != version:
            raise FormatError(
                f"{path}: has version {version_found} (by {shown(head.get('program'))}), this "
                f"program reads version {version}; fit the model again"
            )

    head, arrays = _read(Path(path), check)
    rest = {key: value for key, value in head.items() if key not in _OWN_KEYS}
    return Model(Path(path), rest, arrays)


def _read(
    path: Path, check: Callable[[dict[str, Any]], None]
) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the JSON file and the arrays of one model."""

    def read(folder: int) -> tuple[dict[str, Any], dict[str, Array]]:
        head = _read_head(path, folder)
        check(head)
        listed = head.get("arrays")
        if not isinstance(listed, dict):
            raise FormatError(f"{path / MODEL_FILE}: arrays: is no object; fit the model again")
        return head, {name: _map(path, folder, name, one) for name, one in listed.items()}

    return _of_one_model(path, read)


def _of_one_model(path: Path, read: Callable[[int], Value]) -> Value:
    """Return the result of reading one model, also while others replace the folder."""
    for _ in range(ATTEMPTS):
        with _opened(path) as folder:
            try:
                return read(folder)
            except FormatError:
                if is_at(path.resolve(), folder):
                    raise  # else its files were removed because a new folder is in its place
    raise FormatError(f"{path}: is replaced all the time; try again later")


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[int]:
    """Open a model's folder: all files are of one model, whatever has the name later."""
    target = path.resolve()
    restore(target)
    try:
        number = platform.open_folder(target)
    except (FileNotFoundError, NotADirectoryError):
        raise _no_model(path) from None
    try:
        yield number
    finally:
        platform.close(number)


def _no_model(path: Path) -> FormatError:
    return FormatError(f"{path}: is not a model (it has no {MODEL_FILE}); give the folder of one")


def kinds_like(kind: str) -> tuple[str, ...]:
    """Return the kinds of models, one of which a training writes, depending on its documents."""
    return OF_CLASSES if kind in OF_CLASSES else (kind,)


def replaces(*kinds: str) -> Callable[[str], None]:
    """Return the check of `dcme_w2v.files.paths.Paths.model` for a model of one of some kinds."""
    return lambda path: check_model_target(path, *kinds)


def check_model_target(path: PathLike, *kinds: str) -> None:
    """Raise before work starts if `save_model` could not write `path`."""
    check_folder_target(path, lambda name, folder: _check_replaceable(name, folder, kinds))


def check_folder_target(path: PathLike, check_replaceable: Callable[[str, Path], None]) -> None:
    """Raise if a folder cannot be written.

    Parameters
    ----------
    path : path
    check_replaceable : callable
        Raises if a folder, given as its name in messages and its path, must not be replaced.
    """
    name = os.fspath(path)
    with write_errors(path):
        target = target_of(path)
        check_parent(name, target)
        if target.is_dir():
            check_replaceable(name, target)
        elif target.exists():
            raise UsageError(f"{name}: is a file; a model is a folder, choose a new one")
        if Path(os.path.realpath(".")).is_relative_to(target):
            raise UsageError(
                f"{name}: is the current folder or above it, and would be replaced; name another"
            )
        if is_mount_point(target):
            raise UsageError(
                f"{name}: is a mount point, which cannot be replaced; name a folder in it"
            )
        with tempfile.TemporaryFile(dir=target.parent):
            pass


def _check_replaceable(name: str, folder: Path, kinds: Sequence[str]) -> None:
    """Raise if a folder has anything other than a model of one of these kinds."""
    found = {one.name for one in folder.iterdir()}
    if not found:
        return
    try:
        head = _head(folder)
    except (FormatError, OSError):
        raise UsageError(f"{name}: is a folder with other content; choose a new one") from None
    if head.get("kind") not in kinds:
        raise UsageError(f"{name}: is not a model of kind {kinds[0]}; choose a new folder")
    foreign = found - _files_of(head)
    foreign |= {one for one in found if not stat.S_ISREG((folder / one).lstat().st_mode)}
    if foreign:
        raise UsageError(
            f"{name}: is a model with other content ({min(foreign)}); choose a new "
            "folder, or move that"
        )


def _files_of(head: dict[str, Any]) -> set[str]:
    """Return the names of the files of a model."""
    listed = head.get("arrays")
    names = listed if isinstance(listed, dict) else {}
    return {MODEL_FILE, *(f"{name}.npy" for name in names if _NAME.fullmatch(name))}


def _files_in(kinds: Collection[str], folder: Path) -> set[str]:
    """Return the names of the files of a model of one of these kinds."""
    head = {}
    with contextlib.suppress(FormatError):
        head = _head(folder)
    return _files_of(head) if head.get("kind") in kinds else set()


def _kind_of(array: Array | ChunkedArray) -> dict[str, Any]:
    return {"dtype": array.dtype.str, "shape": list(array.shape)}


def _head(path: Path) -> dict[str, Any]:
    """Return the JSON file of a model."""
    return _of_one_model(path, lambda folder: _read_head(path, folder))


def _read_head(path: Path, folder: int) -> dict[str, Any]:
    file = path / MODEL_FILE
    try:
        with open_regular(file, JSON_BYTES, folder) as opened:
            head = json.load(opened, parse_constant=_finite, parse_float=_finite)
    except FileNotFoundError:
        raise _no_model(path) from None
    except FormatError as error:
        raise _fit_again(error) from None
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{file}: is corrupt ({error}); fit the model again") from None
    if not isinstance(head, dict):
        raise FormatError(f"{file}: is corrupt (no object); fit the model again")
    return head


def _fit_again(error: FormatError) -> FormatError:
    """Return the error of a damaged file with the advice for one of a model."""
    return FormatError(f"{error.message.rpartition(';')[0]}; fit the model again")


def _finite(text: str) -> float:
    """Return a number of a JSON text, which may have NaN, Infinity and 1e999."""
    if not math.isfinite(number := float(text)):
        raise ValueError(f"{text[:40]} is not a finite number")
    return number


def _map(path: Path, folder: int, name: str, listing: Any) -> Array:
    """Map one array and check it against the JSON file."""
    if not _NAME.fullmatch(name):
        raise FormatError(
            f"{path / MODEL_FILE}: {shown(name)} is no array's name; fit the model again"
        )
    file = path / f"{name}.npy"
    try:
        array = read_npy(file, folder)
    except FileNotFoundError:
        raise FormatError(f"{file}: there is no such file; fit the model again") from None
    except FormatError as error:
        raise _fit_again(error) from None
    if _kind_of(array) != listing:
        raise FormatError(
            f"{file}: differs from its description in {MODEL_FILE}; fit the model again"
        )
    return array

"""A MODEL: a folder of .npy files and one JSON file, memory-mapped, without pickle.

``model.json`` names the kind of model, its version and every array with its dtype and shape; array
NAME is always the file NAME.npy in the same folder. Called by `dcme_w2v.scdv` and
`dcme_w2v.classify`.
"""

from __future__ import annotations

import io
import json
import math
import os
import re
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.lib.format import open_memmap, read_array, write_array, write_array_header_1_0
from numpy.typing import NDArray

from dcme_w2v import __version__
from dcme_w2v.errors import FormatError, UsageError
from dcme_w2v.files.atomic import target_of, write_errors
from dcme_w2v.files.folders import atomic_folder, new_file
from dcme_w2v.formats.command_line import recorded_arguments
from dcme_w2v.formats.model_entries import MODEL_FILE, Model, shown
from dcme_w2v.formats.word_list import Words
from dcme_w2v.numeric.arrays import Pieces, without_warnings

_LARGEST_JSON = 1 << 30
_EMPTY_BYTES = 4096  # that a file of no numbers has at most
_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}", re.ASCII)
_OWN_KEYS = ("kind", "version", "program", "argv", "arrays")


def words_arrays(words: Words, name: str = "words") -> dict[str, NDArray[Any]]:
    """Return a list of words as arrays for `save_model`."""
    return {f"{name}_text": words.text, f"{name}_offsets": words.offsets}


def save_model(
    path: str | os.PathLike[str],
    kind: str,
    version: int,
    arrays: Mapping[str, NDArray[Any] | Pieces],
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
    arrays : mapping of ndarray or Pieces
        Names of lower-case letters, digits and ``_``.
    description : mapping
        Written to the JSON file.

    Raises
    ------
    UsageError
        `path` has other content.
    """
    check_model_target(path, kind)
    target = target_of(path)
    for name in arrays:
        if not _NAME.fullmatch(name):
            raise ValueError(f"array name {name!r}: use lower-case letters, digits and _")
    for key in description:
        if key in _OWN_KEYS:
            raise ValueError(f"description key {key!r} is taken")
    text = _head_text(kind, version, arrays, description)
    with write_errors(path), atomic_folder(target, _files_of(_head_of(target))) as temporary:
        for name, array in arrays.items():
            with new_file(temporary / f"{name}.npy") as file:
                _write_array(file, array)
        with new_file(temporary / MODEL_FILE) as file:
            file.write(text)


def size_of_model(
    kind: str, version: int, arrays: Mapping[str, NDArray[Any]], description: Mapping[str, Any]
) -> int:
    """Return the bytes of the files that `save_model` would write."""
    size = len(_head_text(kind, version, arrays, description))
    for array in arrays.values():
        header = io.BytesIO()
        write_array(
            header, array[:0], allow_pickle=False
        )  # of the same length, except for the shape
        size += -(-len(header.getvalue()) // 64) * 64 + array.nbytes
    return size


def _head_text(
    kind: str,
    version: int,
    arrays: Mapping[str, NDArray[Any] | Pieces],
    description: Mapping[str, Any],
) -> bytes:
    """Return the JSON file of a model."""
    listed = {name: _kind_of(array) for name, array in arrays.items()}
    head: dict[str, Any] = {"kind": kind, "version": version, "program": f"dcme-w2v {__version__}"}
    if (arguments := recorded_arguments()) is not None:
        head["argv"] = arguments
    text = json.dumps({**head, **description, "arrays": listed}, indent=1, allow_nan=False)
    return text.encode() + b"\n"


def kind_of_model(path: str | os.PathLike[str]) -> str:
    """Return the kind of model in a folder.

    Raises
    ------
    FormatError
        It is not a model.
    """
    return str(_read_head(Path(path)).get("kind"))


def describe_model(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the JSON file of a model of any kind, with dtype and shape of each array as text.

    Raises
    ------
    FormatError
        It is not a model, or an array is missing or differs from the description.
    """
    folder = Path(path)
    head = _read_head(folder)
    listed = head.get("arrays")
    if not isinstance(listed, dict) or type(head.get("kind")) is not str:
        raise FormatError(f"{folder / MODEL_FILE}: has no kind or arrays; fit the model again")
    arrays = {name: _map(folder, name, listing) for name, listing in listed.items()}
    shown = {name: f"{one.dtype} {one.shape}" for name, one in arrays.items()}
    return {**head, "arrays": shown}


def load_model(path: str | os.PathLike[str], kind: str, version: int) -> Model:
    """Open a model's folder; the arrays are memory-mapped.

    Raises
    ------
    FormatError
        It is not a model of this kind and version, or is corrupt.
    """
    folder = Path(path)
    head = _read_head(folder)
    found, version_found = shown(head.get("kind")), shown(head.get("version"))
    if head.get("kind") != kind:
        raise FormatError(f"{folder}: is a model of kind {found}; give one of {kind}")
    if head.get("version") != version:
        raise FormatError(
            f"{folder}: has version {version_found} (by {shown(head.get('program'))}), this "
            f"program reads version {version}; fit the model again"
        )
    listed = head.get("arrays")
    if not isinstance(listed, dict):
        raise FormatError(f"{folder / MODEL_FILE}: arrays: is no object; fit the model again")
    arrays = {name: _map(folder, name, listing) for name, listing in listed.items()}
    rest = {key: value for key, value in head.items() if key not in _OWN_KEYS}
    return Model(folder, rest, arrays)


def check_model_target(path: str | os.PathLike[str], kind: str) -> None:
    """Raise before work starts if `save_model` could not write `path`."""
    name = os.fspath(path)
    with write_errors(path):
        target = target_of(path)
        if not target.parent.is_dir():
            raise UsageError(f"{name}: there is no folder {target.parent}; create it first")
        if target.is_dir():
            _check_replaceable(name, target, kind)
        elif target.exists():
            raise UsageError(f"{name}: is a file; a model is a folder, choose a new one")
        with tempfile.TemporaryFile(dir=target.parent):
            pass


def _check_replaceable(name: str, folder: Path, kind: str) -> None:
    """Raise if a folder has anything other than a model of one kind."""
    found = {one.name for one in folder.iterdir()}
    if not found:
        return
    try:
        head = _read_head(folder)
    except (FormatError, OSError):
        raise UsageError(f"{name}: is a folder with other content; choose a new one") from None
    if head.get("kind") != kind:
        raise UsageError(f"{name}: is not a model of kind {kind}; choose a new folder")
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


class _Bytes:
    """A file object that has only `write` for numpy."""

    def __init__(self, file: BinaryIO) -> None:
        self.write = file.write


def _write_array(file: BinaryIO, array: NDArray[Any] | Pieces) -> None:
    if isinstance(array, Pieces):
        head = {"descr": array.dtype.str, "fortran_order": False, "shape": array.shape}
        write_array_header_1_0(file, head)
        for piece in array:
            file.write(np.ascontiguousarray(piece).data)
    else:  # by our own write: numpy's says nothing of why it fails
        write_array(_Bytes(file), _by_rows(array), allow_pickle=False)


def _by_rows(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array that numpy writes row by row; views of larger ones are not copied."""
    return np.ascontiguousarray(array) if array.flags.f_contiguous else array


def _kind_of(array: NDArray[Any] | Pieces) -> dict[str, Any]:
    return {"dtype": array.dtype.str, "shape": list(array.shape)}


def _head_of(target: Path) -> dict[str, Any]:
    """Return the JSON file of a model that would be replaced, if there is one."""
    return _read_head(target) if (target / MODEL_FILE).exists() else {}


def _read_head(folder: Path) -> dict[str, Any]:
    file = folder / MODEL_FILE
    try:
        _check_regular(file, _LARGEST_JSON)
        head = json.loads(file.read_bytes(), parse_constant=_finite, parse_float=_finite)
    except (FileNotFoundError, NotADirectoryError):
        raise FormatError(
            f"{folder}: is not a model (it has no {MODEL_FILE}); give the folder of one"
        ) from None
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{file}: is corrupt ({error}); fit the model again") from None
    if not isinstance(head, dict):
        raise FormatError(f"{file}: is corrupt (no object); fit the model again")
    return head


def _finite(text: str) -> float:
    """Return a number of a JSON text, which may have NaN, Infinity and 1e999."""
    if not math.isfinite(number := float(text)):
        raise ValueError(f"{text[:40]} is not a finite number")
    return number


def _check_regular(file: Path, largest: int | None = None) -> None:
    """Raise ValueError for what could be read without end, as a pipe or a device."""
    status = file.stat()
    if not stat.S_ISREG(status.st_mode):
        raise ValueError("not a regular file")
    if largest is not None and status.st_size > largest:
        raise ValueError(f"{status.st_size:,} bytes where {largest:,} are possible")


def _map(folder: Path, name: str, listing: Any) -> NDArray[Any]:
    """Map one array and check it against the JSON file."""
    if not _NAME.fullmatch(name):
        raise FormatError(
            f"{folder / MODEL_FILE}: {shown(name)} is no array's name; fit the model again"
        )
    file = folder / f"{name}.npy"
    try:
        _check_regular(file, _EMPTY_BYTES if _is_empty(listing) else None)
        with without_warnings():
            array = _read_empty(file) if _is_empty(listing) else open_memmap(file, mode="r")
    except FileNotFoundError:
        raise FormatError(f"{file}: there is no such file; fit the model again") from None
    except OSError:
        raise
    except Exception as error:  # numpy passes on any error of Python's parser from a corrupt header
        said = " ".join(str(error).split())[:200]
        raise FormatError(f"{file}: is corrupt ({said}); fit the model again") from None
    if _kind_of(array) != listing:
        raise FormatError(
            f"{file}: differs from its description in {MODEL_FILE}; fit the model again"
        )
    return array


def _is_empty(listing: Any) -> bool:
    shape = listing.get("shape") if isinstance(listing, dict) else None
    return isinstance(shape, list) and 0 in shape


def _read_empty(file: Path) -> NDArray[Any]:
    """Read an array without items, which cannot be mapped."""
    with file.open("rb") as opened:
        array: NDArray[Any] = read_array(opened, allow_pickle=False)
    return array

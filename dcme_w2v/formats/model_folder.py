"""A MODEL: a folder of .npy files and one JSON file, memory-mapped, without pickle.

``model.json`` names the kind of model, its version and every array with its dtype and shape; array
NAME is always the file NAME.npy in the same folder.
"""

import contextlib
import json
import math
import os
import re
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from dcme_w2v import __version__, platform
from dcme_w2v.errors import FormatError, UsageError
from dcme_w2v.files.atomic import check_parent, is_mount_point, target_of, write_errors
from dcme_w2v.files.folders import atomic_folder, new_file, restore
from dcme_w2v.files.opening import JSON_BYTES, open_regular
from dcme_w2v.files.temporary import ATTEMPTS, is_at
from dcme_w2v.numeric.arrays import Array, ChunkedArray
from dcme_w2v.platform import PathLike

from .command_line import recorded_arguments
from .model_entries import MODEL_FILE, Model, shown
from .npy import npy_header, npy_pieces, read_npy
from .word_list import Words

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
    check_model_target(path, *kinds_like(kind))
    target = target_of(path)
    for name in arrays:
        if not _NAME.fullmatch(name):
            raise ValueError(f"array name {name!r}: use lower-case letters, digits and _")
    text = _head_text(kind, version, arrays, description)
    with write_errors(path), atomic_folder(target, _files_of(_head_of(target))) as temporary:
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
    with _opened(Path(path)) as folder:
        return str(_read_head(Path(path), folder).get("kind"))


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
    """Return the JSON file and the arrays of one model, also while others replace the folder."""
    for _ in range(ATTEMPTS):
        with _opened(path) as folder:
            try:
                head = _read_head(path, folder)
                check(head)
                listed = head.get("arrays")
                if not isinstance(listed, dict):
                    raise FormatError(
                        f"{path / MODEL_FILE}: arrays: is no object; fit the model again"
                    )
                return head, {name: _map(path, folder, name, one) for name, one in listed.items()}
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
        with _opened(folder) as number:
            head = _read_head(folder, number)
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


def _kind_of(array: Array | ChunkedArray) -> dict[str, Any]:
    return {"dtype": array.dtype.str, "shape": list(array.shape)}


def _head_of(target: Path) -> dict[str, Any]:
    """Return the JSON file of a model that would be replaced, if there is one."""
    if not (target / MODEL_FILE).exists():
        return {}
    with _opened(target) as folder:
        return _read_head(target, folder)


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

"""Read and write native files: safetensors files with arrays and a metadata record.

Libraries for safetensors can read these files, because the layout is the same. Nothing is pickled::

    8 bytes   length of the header, little-endian
    header    JSON: dtype, shape and data_offsets of each array by name, and ``__metadata__``, in
              which ``dcme_w2v`` has the record as JSON: kind, version, program, argv and more
    arrays    one after another
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import math
import os
import reprlib
import shlex
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.lib import format as numpy_format

from dcme_w2v import __version__
from dcme_w2v.declarations import Checked
from dcme_w2v.errors import FormatError, UsageError, without_secrets
from dcme_w2v.files.atomic import atomic_write, check_writable, is_stream, suffixes_of
from dcme_w2v.files.opening import open_regular, parsed_json
from dcme_w2v.numeric.arrays import U8, Array, ChunkedArray, all_finite, sealed, without_warnings
from dcme_w2v.numeric.parallel import blocks_of_rows
from dcme_w2v.platform import PathLike, path_name

from .vectors.vectors_reader import FAULT_NAMES, SEPARATOR, word_faults
from .vocabulary import Words

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


_KINDS = {float: "a finite number", int: "an integer", bool: "true or false", str: "a string",
          list: "a list", dict: "an object"}  # fmt: skip
_DTYPES = {
    name: np.dtype(kind)
    for name, kind in {
        "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2",
        "I8": "i1", "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "u1", "BOOL": "?",
    }.items()
}  # fmt: skip
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}
_METADATA, _RECORD = "__metadata__", "dcme_w2v"
_PIECE_BYTES = 8 << 20  # maximum chunk size in bytes for writing arrays
# Maximum size of a safetensors header in bytes, as in the safetensors library.
MAX_HEADER = 100_000_000
# Maps each file kind to the class ("module:class") whose method `load` reads files of this kind.
LOADERS = {
    "vectors": "dcme_w2v.words.vectors:Vectors",
    "classifier": "dcme_w2v.classify.model:Classifier",
    "fused": "dcme_w2v.few_labels.model:FusedModel",
    "latent": "dcme_w2v.latent.model:LatentClassifier",
    "shrunk": "dcme_w2v.classify.shrink:ShrunkModel",
    "scdv": "dcme_w2v.scdv.model:DocumentModel",
    "search": "dcme_w2v.search.searcher:Search",
}
OF_CLASSES = ("classifier", "shrunk")
_PROGRAM = "dcme-w2v"
_OWN_KEYS = ("kind", "version", "program", "argv")
Value = TypeVar("Value")
Options = TypeVar("Options", bound=Checked)
Arrays = Mapping[str, Array | ChunkedArray]


@dataclass(frozen=True)
class Model:
    """The contents of a native file: its arrays and its metadata record.

    Attributes
    ----------
    path : Path
    description : dict
        The entries of the record, such as the options.
    arrays : dict of ndarray
        Read-only arrays by name. A large file is memory-mapped.
    """

    path: Path
    description: dict[str, Any]
    arrays: dict[str, Array]

    def array(self, name: str, dtype: str, *shape: int | None, finite: bool = True) -> Array:
        """Return a required array after checking its dtype and shape (None allows any length).

        Parameters
        ----------
        finite : bool
            Also check the numbers, which reads the whole array.

        Raises
        ------
        FormatError
            The array is missing, has another dtype or shape, or has a NaN or infinite number.
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
                f"is {found.dtype} of shape {found.shape}, but must be {dtype} of shape ({wanted})",
            )
        if finite and not all_finite(found):
            raise self.fault(name, "has a number that is NaN or infinite")
        return found

    def rows(
        self, names: tuple[str, str, str], count: int | None, width: int, dtype: str = "float32"
    ) -> csr_matrix:
        """Build sparse rows from three arrays: row starts, columns and values of type `dtype`.

        Parameters
        ----------
        names : tuple of str
        count : int or None
            Required number of rows; None allows any number.
        width : int
            Number of columns.
        """
        from scipy.sparse import csr_matrix  # import scipy here, because only sparse rows need it

        starts = self.array(names[0], "int64", None if count is None else count + 1)
        columns = self.array(names[1], "int32", None)
        values = self.array(names[2], dtype, len(columns))
        try:
            found = csr_matrix((values, columns, starts), shape=(max(0, len(starts) - 1), width))
            found.check_format(full_check=True)
        except ValueError as error:
            raise self.fault(", ".join(names[:2]), str(error)) from None
        return found

    def words(self) -> Words:
        """Return the list of words that `words_arrays` stored in two arrays."""
        return self.checked_words(self.texts("words"))

    def texts(self, name: str) -> Words:
        """Return the texts that `words_arrays` stored in two arrays."""
        text = self.array(f"{name}_text", "uint8", None)
        offsets = self.array(f"{name}_offsets", "int64", None)
        rising = len(offsets) and offsets[0] == 0 and (offsets[1:] >= offsets[:-1]).all()
        if not rising or offsets[-1] != len(text):
            raise self.fault(f"{name}_offsets", "does not ascend from 0 to the length of the text")
        return Words(np.asarray(text), np.asarray(offsets))

    def checked_words(self, words: Words) -> Words:
        """Return `words` unchanged; raise `FormatError` if any word is not a valid feature name."""
        faults = word_faults(words)
        # Allow spaces in feature names, because a feature can consist of several words.
        faults[SEPARATOR] = 0
        for kind in np.flatnonzero(faults[:, 0]):
            row = int(faults[kind, 1]) + 1
            raise self.fault("words_text", f"{FAULT_NAMES[kind]} (words {row})")
        return words

    def value(self, name: str, kind: type[Value]) -> Value:
        """Return a required entry of the record after checking its type."""
        if name not in self.description:
            raise self.fault(name, "there is no such entry")
        value: Any = self.description[name]
        if kind is float and type(value) is int and abs(value) < 1 << 53:
            value = float(value)
        if isinstance(value, kind) and type(value) is kind:
            return value
        raise self.fault(name, f"is {shown(value)}, must be {_KINDS[kind]}")

    def number(self, name: str, lowest: float, highest: float) -> float:
        """Return a number from the record after checking its bounds."""
        value = self.value(name, float)
        if not lowest <= value <= highest:
            raise self.fault(name, f"is {value:g}, must be {lowest:g} to {highest:g}")
        return value

    def strings(self, name: str) -> list[str]:
        """Return a nonempty list of distinct strings from the record."""
        found = self.value(name, list)
        # `encode` raises an error if a string contains an unpaired surrogate (invalid Unicode).
        with contextlib.suppress(TypeError, UnicodeEncodeError):
            "".join(found).encode()
            if 0 < len(found) == len(set(found)):
                return found
        raise self.fault(name, f"is {shown(found)}, must be distinct strings, at least one")

    def options(self, name: str, cls: type[Options]) -> Options:
        """Return the options stored under `name` in the record, as an object of `cls`."""
        try:
            return cls.from_mapping(self.value(name, dict))
        except UsageError as error:
            raise self.fault(name, error.message) from None

    def fault(self, entry: str, what: str) -> FormatError:
        """Return the error for an invalid array or record entry."""
        return fault(self.path, f"{entry}: {what}", "fit the model again")


def shown(value: Any) -> str:
    """Format a value as one short line for error messages."""
    return reprlib.repr(value).encode("unicode_escape").decode()


# ---- the recorded command line ----


def recorded_arguments() -> list[str] | None:
    """Return the command-line arguments of this dcme-w2v process, or None in other programs."""
    parts = PurePath(sys.argv[0] if sys.argv else "").parts
    if parts[-1:] != (_PROGRAM,) and parts[-2:] != ("dcme_w2v", "__main__.py"):
        return None
    return [without_secrets(os.fsencode(one).decode("utf-8", "replace")) for one in sys.argv]


def command_of(arguments: Any) -> str | None:
    """Format recorded arguments as a shell command line; return None if none were recorded."""
    # Ignore invalid records, which another program may have written.
    with contextlib.suppress(TypeError, KeyError):
        return shlex.join([_PROGRAM, *arguments[1:]])
    return None


# ---- writing ----


def words_arrays(words: Words, name: str = "words") -> dict[str, Array]:
    """Convert a list of words to arrays that `save_model` can write."""
    return {f"{name}_text": words.text, f"{name}_offsets": words.offsets}


def rows_arrays(names: tuple[str, str, str], rows: csr_matrix) -> dict[str, Array]:
    """Convert sparse rows to arrays for `save_model`; `Model.rows` converts them back."""
    parts = rows.indptr.astype(np.int64), rows.indices.astype(np.int32), rows.data
    return dict(zip(names, parts, strict=True))


def save_model(
    path: PathLike, kind: str, version: int, arrays: Arrays, description: Mapping[str, Any]
) -> None:
    """Atomically write arrays and their metadata record to a native file.

    Parameters
    ----------
    path : path
        An existing file is replaced if it is empty or of this kind.
    kind : str
        The kind of file, which `load_model` requires.
    version : int
        Version of this kind's format; increase it when older programs cannot read it.
    arrays : mapping of ndarray or ChunkedArray
    description : mapping
        Further entries of the record.

    Raises
    ------
    UsageError
        `path` has other content.
    """
    check_model_target(path, kind)
    header = _record(kind, version, description)
    with atomic_write(path) as file:
        file.writelines(tensor_pieces(arrays, header))


def size_of_model(
    kind: str, version: int, arrays: Mapping[str, Array], description: Mapping[str, Any]
) -> int:
    """Return the size in bytes of the file that `save_model` would write."""
    return sum(map(len, tensor_pieces(arrays, _record(kind, version, description))))


def _record(kind: str, version: int, description: Mapping[str, Any]) -> dict[str, str]:
    """Return the safetensors metadata for a new native file, including its record as JSON."""
    head: dict[str, Any] = {"kind": kind, "version": version, "program": f"dcme-w2v {__version__}"}
    if (arguments := recorded_arguments()) is not None:
        head["argv"] = arguments
    return {_RECORD: _json({**head, **description})}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def tensor_pieces(arrays: Arrays, metadata: Mapping[str, str] | None = None) -> Iterator[Any]:
    """Yield the bytes of a safetensors file with the given arrays, piece by piece."""
    # Write the arrays in descending order of item size, which keeps every array aligned.
    ordered = sorted(arrays.items(), key=lambda item: -item[1].dtype.itemsize)
    header: dict[str, Any] = {_METADATA: dict(metadata)} if metadata else {}
    end = 0
    for name, array in ordered:
        begin, end = end, end + math.prod(array.shape) * array.dtype.itemsize
        if array.dtype not in _NAMES:
            raise ValueError(
                f"the array {name!r} has the type {array.dtype}, which cannot be written"
            )
        about = {"dtype": _NAMES[array.dtype], "shape": array.shape, "data_offsets": [begin, end]}
        header[name] = about
    text = _json(header).encode()
    text += b" " * (-len(text) % 8)
    yield len(text).to_bytes(8, "little") + text
    for _, array in ordered:
        yield from bytes_of(array)


def bytes_of(array: Array | ChunkedArray) -> Iterator[Any]:
    """Yield the bytes of an array in chunks, in C order."""
    chunks: Iterable[Array] = [array] if isinstance(array, np.ndarray) else array
    if isinstance(array, np.ndarray) and array.nbytes > _PIECE_BYTES:
        step = max(1, _PIECE_BYTES * len(array) // array.nbytes)
        chunks = (array[rows] for rows in blocks_of_rows(len(array), step))
    for chunk in chunks:
        yield np.ascontiguousarray(chunk).reshape(-1).view(np.uint8).data


def check_model_target(path: PathLike, kind: str) -> None:
    """Raise an error before work starts if `save_model` could not write `path`."""
    name = path_name(path)
    if is_stream(path) or suffixes_of(path)[1]:
        raise UsageError(
            f"{name}: a model cannot be written to a pipe or to a compressed file; choose the name "
            "of an uncompressed file"
        )
    check_writable(path)
    if not Path(path).exists() or not Path(path).stat().st_size:
        return
    # The documents determine the kind of model, so any kind in OF_CLASSES may be replaced.
    if kind_of_artifact(path) not in (OF_CLASSES if kind in OF_CLASSES else [kind]):
        raise UsageError(f"{name} already exists, but is not a {kind} model; choose another file")


# ---- reading ----


def load_model(path: PathLike, kinds: str | Collection[str], version: int) -> Model:
    """Open a model file that `save_model` wrote; raise an error if its kind is not in `kinds`.

    Raises
    ------
    FormatError
        The file is not a model of one of these kinds and this version, or is corrupt.
    """
    record, arrays = read_artifact(path)
    kinds = (kinds,) if isinstance(kinds, str) else kinds
    if record["kind"] not in kinds:
        raise _of_another_kind(path, record["kind"], kinds)
    if record.get("version") != version:
        raise FormatError(
            f"{path} has format version {shown(record.get('version'))} (written by "
            f"{shown(record.get('program'))}), but this program reads version {version}; fit the "
            "model again"
        )
    rest = {key: value for key, value in record.items() if key not in _OWN_KEYS}
    return Model(Path(path), rest, arrays)


def load_artifact(path: PathLike, kinds: Collection[str] = LOADERS) -> Any:
    """Load a native file as an object of the class that `LOADERS` lists for the file's kind.

    Raises
    ------
    FormatError
        The file is of another kind, or is corrupt.
    """
    kind = read_artifact(path)[0]["kind"]
    if kind not in kinds:
        raise _of_another_kind(path, kind, kinds)
    module, _, name = LOADERS[kind].partition(":")
    return sealed(getattr(importlib.import_module(module), name).load(path))


def _of_another_kind(path: PathLike, kind: str, kinds: Collection[str]) -> FormatError:
    return FormatError(
        f"{os.fspath(path)} is a {shown(kind)} file; use a {' or '.join(map(shown, kinds))} file"
    )


def kind_of_artifact(path: PathLike) -> str | None:
    """Return the kind of a native file, or None for other files, folders and streams."""
    if not is_stream(path) and Path(path).is_file():
        with contextlib.suppress(FormatError):
            return str(read_artifact(path)[0]["kind"])
    return None


def read_artifact(path: PathLike) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the metadata record and the arrays of a native file.

    Raises
    ------
    FormatError
        The file is not a native file, or is corrupt.
    """
    try:
        metadata, arrays = read_tensors(path)
    except FileNotFoundError:
        raise fault(path, "there is no such file", "use a model file") from None
    record = _parsed(path, metadata.get(_RECORD, "{}"), "its record")
    if type(record.get("kind")) is not str:
        raise fault(
            path,
            "was not written by this program",
            "use a file that was, or a static model's folder",
        )
    return record, arrays


def read_tensors(path: PathLike) -> tuple[dict[str, str], dict[str, Array]]:
    """Return the metadata and the read-only arrays of a safetensors file.

    Raises
    ------
    FormatError
        The file is not a safetensors file, or is corrupt or truncated.
    OSError
        The file cannot be opened.
    """
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        start = 8 + int.from_bytes(file.read(8), "little")
        if start > min(size, MAX_HEADER + 8):
            raise fault(path, "is not a safetensors file, or is truncated")
        header = _parsed(path, file.read(start - 8), "its header")
        data = contents(file, path)
    metadata = header.pop(_METADATA, {})
    if not isinstance(metadata, dict) or any(type(one) is not str for one in metadata.values()):
        raise fault(path, f"its {_METADATA} are not strings")
    entries = sorted(_entry(path, name, entry) for name, entry in header.items())
    if len(data) != (size := entries[-1][1] if entries else 0):
        raise fault(path, f"has {len(data):,} bytes, not the {size:,} that its header requires")
    arrays, end = {}, 0
    for begin, stop, name, dtype, shape in entries:
        try:
            found = data[end:stop].view(dtype).reshape(shape)
        except (ValueError, OverflowError):
            found = None
        if begin != end or found is None:
            raise fault(path, f"the entry of {shown(name)} is not valid")
        end = stop
        arrays[name] = found if found.flags.aligned else found.copy()
    return metadata, arrays


def _parsed(path: PathLike, text: str | bytes, what: str) -> dict[str, Any]:
    """Parse a JSON object; raise an error if a key is repeated or a number is not finite."""
    try:
        found = parsed_json(text)
        if not isinstance(found, dict):
            raise ValueError("no object")
    except (ValueError, RecursionError) as error:
        said = str(error)[:100].encode("unicode_escape").decode()
        raise fault(path, f"{what} is corrupt ({said})") from None
    return found


def _entry(path: PathLike, name: str, entry: Any) -> tuple[int, int, str, np.dtype[Any], Any]:
    """Return an array's start, end, name, dtype and shape from its header entry."""
    try:
        kind, shape = str(entry["dtype"]), tuple(entry["shape"])
        begin, end = entry["data_offsets"]
        if any(type(number) is not int or number < 0 for number in (*shape, begin, end)):
            raise ValueError
    except (KeyError, TypeError, ValueError):
        raise fault(path, f"the entry of {shown(name)} is not valid") from None
    if kind not in _DTYPES:
        raise fault(
            path, f"{shown(name)} has the unsupported type {shown(kind)}", "convert it to F32"
        )
    return begin, end, name, _DTYPES[kind], shape


def fault(path: PathLike, what: str, advice: str = "write it again") -> FormatError:
    """Return the error for a file that is corrupt or is of the wrong kind."""
    return FormatError(f"{os.fspath(path)}: {what}; {advice}")


MAGIC = b"\x93NUMPY"
READ_BYTES = 4 << 20  # size in bytes above which files are memory-mapped


def contents(file: Any, path: PathLike) -> U8:
    """Return the rest of an open file as read-only bytes, memory-mapped if it is large."""
    begin, size = file.tell(), os.fstat(file.fileno()).st_size
    if size > max(READ_BYTES, begin):
        mapped = np.memmap(file, np.uint8, "r", begin)
        mapped.filename = os.fspath(path)  # `check_mapped` reads this attribute in error messages
        return mapped
    data = np.fromfile(file, np.uint8)
    data.flags.writeable = False
    return data


def npy_header(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """Return the .npy header for an array in C order with the given dtype and shape."""
    start = io.BytesIO()
    numpy_format.write_array_header_1_0(
        start, {"descr": dtype.str, "fortran_order": False, "shape": shape}
    )
    return start.getvalue()


def read_npy(path: PathLike) -> Array:
    """Return the array of an .npy file, memory-mapped if it is large.

    Raises
    ------
    FormatError
        The file is not an .npy file, or is truncated.
    OSError
        The file cannot be opened.
    """
    with open_regular(path) as file:
        try:
            with without_warnings():
                dtype, shape, order = read_head(file)
                size = math.prod(shape) * dtype.itemsize
                if not size:
                    return np.empty(shape, dtype, order)
                data = contents(file, path)
                if size > len(data):
                    raise ValueError("it is truncated")
                return data[:size].view(dtype).reshape(shape, order=order)
        except OSError:
            raise
        except Exception as error:  # numpy propagates every exception of Python's parser
            said = " ".join(str(error).split())[:200]
            raise FormatError(
                f"{os.fspath(path)} is corrupt ({said}); write the file again"
            ) from None


def read_head(file: Any) -> tuple[np.dtype[Any], tuple[int, ...], Any]:
    """Return the dtype, shape and memory order from the header of an .npy file."""
    version = numpy_format.read_magic(file)
    readers = {
        (1, 0): numpy_format.read_array_header_1_0,
        (2, 0): numpy_format.read_array_header_2_0,
    }
    if version not in readers:
        raise ValueError(f"version {version} of the .npy format is not supported")
    shape, fortran, dtype = readers[version](file)
    if dtype.hasobject:
        raise ValueError("the array contains Python objects, which cannot be read safely")
    if min(shape, default=0) < 0:
        raise ValueError(f"the array shape {shape} has a negative dimension")
    return dtype, shape, "F" if fortran else "C"

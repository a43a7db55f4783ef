r"""Numpy's .npy files: guarded reading, writing in chunks, and a checksum of a second file.

X.npy of word vectors has the CRC-32 of its X.vocab, so that a reader never combines the vectors of
one run with the words of another. The checksum is in the padding of the header, where every
reader expects only whitespace: a tab, then 32 bits from the highest, a tab for 1 and a space for 0.
"""

import io
import math
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.lib import format as numpy_format

from dcme_w2v.errors import FormatError
from dcme_w2v.files.opening import open_regular
from dcme_w2v.numeric.arrays import Array, ChunkedArray, without_warnings
from dcme_w2v.platform import PathLike

MAGIC = b"\x93NUMPY"
_ALIGNMENT, _BITS = 64, 32


def npy_header(dtype: np.dtype[Any], shape: tuple[int, ...], checksum: int | None = None) -> bytes:
    """Return the header of an .npy file in C order, with the checksum of its second file."""
    start = io.BytesIO()
    numpy_format.write_array_header_1_0(
        start, {"descr": dtype.str, "fortran_order": False, "shape": shape}
    )
    data = start.getvalue()
    if checksum is None:
        return data
    text = data[10:].rstrip() + f"\t{checksum:0{_BITS}b}".translate({48: " ", 49: "\t"}).encode()
    padding = -(10 + len(text) + 1) % _ALIGNMENT
    text += b" " * padding + b"\n"
    return data[:8] + len(text).to_bytes(2, "little") + text


def npy_pieces(array: Array | ChunkedArray) -> Iterator[Any]:
    """Yield the bytes of an .npy file: the header, then the numbers in C order."""
    if array.dtype.hasobject:
        raise ValueError("an array of Python objects is not written")
    yield npy_header(array.dtype, array.shape)
    for chunk in array if isinstance(array, ChunkedArray) else _chunks(array):
        yield np.ascontiguousarray(chunk).reshape(-1).view(np.uint8).data


def _chunks(array: Array) -> Iterator[Array]:
    if array.ndim == 0 or not array.size:
        yield array
        return
    rows = max(1, (1 << 21) * len(array) // array.nbytes)
    for first in range(0, len(array), rows):
        yield array[first : first + rows]


def read_npy(path: PathLike, folder: int | None = None) -> Array:
    """Return the array of an .npy file, mapped into memory; see `open_npy`."""
    return open_npy(path, folder)[0]


def open_npy(path: PathLike, folder: int | None = None) -> tuple[Array, int | None]:
    """Map the array of an .npy file; also return the checksum of its second file, if it has one.

    Parameters
    ----------
    path : path
    folder : int, optional
        The descriptor of the folder that has the file; see `open_regular`.

    Raises
    ------
    FormatError
        It is not such a file, or is truncated.
    OSError
        It cannot be opened.
    """
    with open_regular(path, folder=folder) as file:
        try:
            with without_warnings():
                dtype, shape, order, padding = read_head(file)
                if 0 in shape:
                    return np.empty(shape, dtype, order), _checksum(padding)
                size = file.tell() + math.prod(shape) * dtype.itemsize
                if size > os.fstat(file.fileno()).st_size:  # Windows calls this a lack of memory
                    raise ValueError("mmap length is greater than file size")
                array = np.memmap(file, dtype, "r", file.tell(), shape, order)
                return array, _checksum(padding)
        except OSError:
            raise
        except Exception as error:  # numpy passes on any error of Python's parser
            said = " ".join(str(error).split())[:200]
            raise FormatError(f"{os.fspath(path)}: is corrupt ({said}); write it again") from None


def _checksum(padding: bytes) -> int | None:
    bits = padding[1 : 1 + _BITS]
    if not padding.startswith(b"\t") or len(bits) < _BITS:
        return None
    return int(bits.replace(b" ", b"0").replace(b"\t", b"1"), 2)


def read_head(file: Any) -> tuple[np.dtype[Any], tuple[int, ...], Any, bytes]:
    """Return dtype, shape, order and padding of a header."""
    version = numpy_format.read_magic(file)
    begin = file.tell()
    readers = {
        (1, 0): numpy_format.read_array_header_1_0,
        (2, 0): numpy_format.read_array_header_2_0,
    }
    if version not in readers:
        raise ValueError(f"format version {version} is not supported")
    shape, fortran, dtype = readers[version](file)
    if dtype.hasobject:
        raise ValueError("it has Python objects, which are not read")
    if min(shape, default=0) < 0:
        raise ValueError(f"it has the shape {shape}")
    end = file.tell()
    file.seek(begin)
    text = file.read(end - begin)
    return dtype, shape, "F" if fortran else "C", text[text.rfind(b"}") + 1 :]

"""Numpy's .npy files: guarded reading, and writing in chunks."""

import io
import math
import os
from typing import Any

import numpy as np
from numpy.lib import format as numpy_format

from dcme_w2v.errors import FormatError
from dcme_w2v.files.opening import open_regular
from dcme_w2v.numeric.arrays import U8, Array, without_warnings
from dcme_w2v.platform import PathLike

MAGIC = b"\x93NUMPY"
READ_BYTES = 4 << 20  # a smaller file is read, a larger one is mapped


def contents(file: Any, path: PathLike) -> U8:
    """Return the rest of an open file as read-only bytes, memory-mapped if it is large."""
    begin, size = file.tell(), os.fstat(file.fileno()).st_size
    if size > max(READ_BYTES, begin):
        mapped = np.memmap(file, np.uint8, "r", begin)
        mapped.filename = os.fspath(path)  # for `check_mapped`
        return mapped
    data = np.fromfile(file, np.uint8)
    data.flags.writeable = False
    return data


def npy_header(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """Return the header of an .npy file in C order."""
    start = io.BytesIO()
    numpy_format.write_array_header_1_0(
        start, {"descr": dtype.str, "fortran_order": False, "shape": shape}
    )
    return start.getvalue()


def read_npy(path: PathLike) -> Array:
    """Return the array of an .npy file, mapped if it is large.

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
        except Exception as error:  # numpy raises any error that Python's parser raises
            said = " ".join(str(error).split())[:200]
            raise FormatError(f"{os.fspath(path)}: is corrupt ({said}); write it again") from None


def read_head(file: Any) -> tuple[np.dtype[Any], tuple[int, ...], Any]:
    """Return the dtype, shape and order that a header states."""
    version = numpy_format.read_magic(file)
    readers = {
        (1, 0): numpy_format.read_array_header_1_0,
        (2, 0): numpy_format.read_array_header_2_0,
    }
    if version not in readers:
        raise ValueError(f"format version {version} is not supported")
    shape, fortran, dtype = readers[version](file)
    if dtype.hasobject:
        raise ValueError("it contains Python objects, which cannot be read safely")
    if min(shape, default=0) < 0:
        raise ValueError(f"it has the shape {shape}")
    return dtype, shape, "F" if fortran else "C"

"""Interface to the C core: memory layout of tables, option structs, kernel selection."""

import contextlib
import mmap
import os
from typing import Any

import numpy as np

from dcme_w2v._core import models as core
from dcme_w2v.declarations import options_in
from dcme_w2v.errors import UsageError

from .arrays import F32

CACHE_LINE = 64
SPARE = CACHE_LINE // 4  # float32


def new_table(rows: int, dim: int, as_for: int | None = None) -> F32:
    """Return zeros of shape (rows, stride), stride >= dim, that start at a cache line.

    The stride is that of a table with `as_for` rows (default: `rows`). Rows are accessed
    at random, so with small pages most accesses miss the TLB. Huge pages need newly mapped memory,
    whereas `np.zeros` may reuse freed memory.
    """
    stride = core.row_stride(rows if as_for is None else as_for, dim)
    count = rows * stride + SPARE
    if not hasattr(mmap, "MADV_HUGEPAGE"):
        block = np.zeros(count, dtype=np.float32)
    else:
        try:
            mapped = mmap.mmap(-1, 4 * count, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        except (OSError, OverflowError) as error:
            raise MemoryError(f"{4 * count} bytes for a table") from error
        with contextlib.suppress(OSError):  # not supported by this system
            mapped.madvise(mmap.MADV_HUGEPAGE)
        block = np.frombuffer(mapped, dtype=np.float32)
    return _aligned(block, count - SPARE).reshape(rows, stride)


def table_of(rows: F32) -> F32:
    """Return a copy of rows as a table; see `new_table`.

    It may reuse freed memory, which is faster than new memory.
    """
    count, dim = rows.shape
    stride = core.row_stride(count, dim)
    block = np.empty(count * stride + SPARE, dtype=np.float32)
    table = _aligned(block, count * stride).reshape(count, stride)
    table[:, :dim], table[:, dim:] = rows, 0
    return table


def _aligned(block: F32, size: int) -> F32:
    """Return `size` numbers of a block, starting at its first cache line."""
    start = -block.ctypes.data % CACHE_LINE // block.itemsize
    return block[start : start + size]


def core_options(options: Any, declared: type | None = None) -> dict[str, float]:
    """Convert resolved options to the fields of the C struct; a choice becomes its index."""
    values = {}
    for item in options_in(declared or type(options)):
        if item.presets:
            continue
        value = getattr(options, item.name)
        values[item.name] = item.choices.index(value) if item.choices else value
    return values


def kernels_named(name: str | None = None) -> str:
    """Return the kernels for an instruction set, by default the fastest one."""
    name = name or os.environ.get("DCME_W2V_KERNELS") or core.KERNELS[0]
    if name not in core.KERNELS:
        raise UsageError(
            f"kernels {name}: not supported by this CPU; unset DCME_W2V_KERNELS, or choose one of "
            + ", ".join(core.KERNELS)
        )
    return name

import numpy as np
from numpy.typing import NDArray

FAULT_KINDS: int

def write_rows(
    binary: bool,
    matrix: NDArray[np.float32],
    text: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    first: int,
) -> NDArray[np.uint8]: ...
def cut_rows(
    binary: bool, data: NDArray[np.uint8], dim: int, limit: int, final: bool
) -> tuple[int, int]: ...
def read_rows(
    binary: bool,
    data: NDArray[np.uint8],
    dim: int,
    count: int,
    matrix: NDArray[np.float32] | None,
    faults: NDArray[np.int64],
    skip: bool,
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]: ...
def read_counts(
    data: NDArray[np.uint8], limit: int, faults: NDArray[np.int64]
) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64], int]: ...
def check_words(
    text: NDArray[np.uint8], offsets: NDArray[np.int64], faults: NDArray[np.int64]
) -> None: ...
def find_duplicates(
    text: NDArray[np.uint8], offsets: NDArray[np.int64], faults: NDArray[np.int64]
) -> None: ...

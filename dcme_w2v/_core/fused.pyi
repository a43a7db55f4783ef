import numpy as np
from numpy.typing import NDArray

LARGEST: float

def cluster_numbers(
    numbers: NDArray[np.float64], weights: NDArray[np.float64], count: int
) -> tuple[NDArray[np.int64], float]: ...
def bin_numbers(
    numbers: NDArray[np.float64],
    weights: NDArray[np.float64],
    low: float,
    scale: float,
    bins: int,
) -> NDArray[np.float64]: ...
def assign_levels(
    numbers: NDArray[np.float64],
    weights: NDArray[np.float64],
    borders: NDArray[np.float64],
    named: NDArray[np.int8],
    values: NDArray[np.float64],
) -> tuple[NDArray[np.int8], float]: ...
def add_statistics(
    starts: NDArray[np.int64],
    features: NDArray[np.int32],
    values: NDArray[np.float32],
    log_probabilities: NDArray[np.float64],
    cut: float,
    joint: NDArray[np.int64],
    counts: NDArray[np.int64],
    prior: NDArray[np.int64],
    threads: int,
    kernels: str | None = None,
) -> None: ...
def pack_levels(
    starts: NDArray[np.int64],
    columns: NDArray[np.int32],
    levels: NDArray[np.int8],
    kinds: NDArray[np.uint8],
    classes: int,
) -> NDArray[np.uint8]: ...
def unpack_levels(
    data: NDArray[np.uint8], kinds: NDArray[np.uint8], classes: int, entries: int
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int8]]: ...
def pack_numbers(numbers: NDArray[np.uint32], bits: int) -> NDArray[np.uint8]: ...
def unpack_numbers(data: NDArray[np.uint8], count: int, bits: int) -> NDArray[np.uint32]: ...
def pack_words(text: NDArray[np.uint8], offsets: NDArray[np.int64]) -> NDArray[np.uint8]: ...
def unpack_words(
    data: NDArray[np.uint8], count: int, length: int
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]: ...

import numpy as np
from numpy.typing import NDArray

LARGEST: float

def cluster_numbers(
    numbers: NDArray[np.float64], weights: NDArray[np.float64], count: int, pinned: bool
) -> tuple[NDArray[np.int64], float]: ...
def bin_numbers(
    numbers: NDArray[np.float64],
    weights: NDArray[np.float64],
    low: float,
    scale: float,
    bins: int,
) -> NDArray[np.float64]: ...
def assign_levels(
    numbers: NDArray[np.float64], borders: NDArray[np.float64]
) -> NDArray[np.int8]: ...
def add_statistics(
    starts: NDArray[np.int64],
    features: NDArray[np.int32],
    values: NDArray[np.float32],
    width: int,
    log_probabilities: NDArray[np.float64] | None,
    cut: float,
    joint: NDArray[np.int64] | None,
    counts: NDArray[np.int64],
    prior: NDArray[np.int64],
    rows: NDArray[np.int32] | None,
    threads: int,
) -> None: ...

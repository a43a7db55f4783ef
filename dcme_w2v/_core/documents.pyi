import numpy as np
from numpy.typing import NDArray

class Composer:
    def __init__(
        self,
        vectors: NDArray[np.float32],
        weights: NDArray[np.float32],
        starts: NDArray[np.int64],
        topic: NDArray[np.int32],
        share: NDArray[np.float32],
        topics: int,
        log_counts: bool = False,
        kernels: str | None = None,
    ) -> None: ...
    def extremes(
        self, starts: NDArray[np.int64], ids: NDArray[np.uint32]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]: ...
    def rows(
        self, starts: NDArray[np.int64], ids: NDArray[np.uint32], threshold: float
    ) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]: ...

def write_entries(columns: NDArray[np.int32], values: NDArray[np.float32]) -> bytes: ...

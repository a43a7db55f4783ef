from collections.abc import Mapping
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

class _Progress(TypedDict):
    trained: int
    subsampled: int
    without_context: int
    loss: float
    losses: int
    rate: float

def row_stride(dim: int) -> int: ...
def has_kernels(name: str) -> bool: ...
def initialise(table: NDArray[np.float32], dim: int, seed: int) -> None: ...

class Trainer:
    def __init__(
        self,
        options: Mapping[str, float],
        ids: NDArray[np.uint32],
        counts: NDArray[np.int64],
        input: NDArray[np.float32],
        output: NDArray[np.float32],
        kernels: str | None = None,
    ) -> None: ...
    def epoch(self, number: int) -> bool: ...
    def progress(self) -> _Progress: ...
    def stop(self) -> None: ...
    @property
    def kernels(self) -> str: ...

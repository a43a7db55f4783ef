from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from dcme_w2v._core.engine import Run

def row_stride(rows: int, dim: int) -> int: ...
def has_kernels(name: str) -> bool: ...
def initialize(table: NDArray[np.float32], dim: int, seed: int) -> None: ...

class Trainer(Run):
    def __init__(
        self,
        options: Mapping[str, float],
        ids: NDArray[np.uint32],
        counts: NDArray[np.int64],
        input: NDArray[np.float32],
        output: NDArray[np.float32],
        kernels: str | None = None,
        subwords: tuple[NDArray[np.int64], NDArray[np.int32]] | None = None,
        neighbors: Sequence[NDArray[np.float32]] | None = None,
    ) -> None: ...
    def clusters(self) -> int: ...
    def center(self, k: int, alpha: NDArray[np.float32]) -> None: ...
    @property
    def kernels(self) -> str: ...

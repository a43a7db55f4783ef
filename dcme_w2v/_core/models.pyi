from collections.abc import Mapping, Sequence
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

_F32 = NDArray[np.float32]
_I32 = NDArray[np.int32]
_I64 = NDArray[np.int64]
_U32 = NDArray[np.uint32]

KERNELS: list[str]  # those that this machine supports, fastest first

def row_stride(rows: int, dim: int) -> int: ...
def initialize(rows: _F32, dim: int, seed: int) -> None: ...

class _Progress(TypedDict):
    trained: int
    subsampled: int
    without_context: int
    loss: float
    losses: int
    rate: float

class Run:
    def epoch(self, number: int) -> bool: ...
    def progress(self) -> _Progress: ...
    def stop(self) -> None: ...
    def unfinished(self) -> int: ...
    def state(self) -> list[tuple[str, NDArray[np.uint8]]]: ...
    def restored(self) -> None: ...
    def is_finite(self, start: int, end: int) -> bool: ...

class Trainer(Run):
    def __init__(
        self,
        options: Mapping[str, float],
        ids: _U32,
        counts: _I64,
        input: _F32,
        output: _F32,
        kernels: str = ...,
        subwords: tuple[_I64, _I32] | None = None,
        neighbors: Sequence[_F32] | None = None,
    ) -> None: ...
    def clusters(self) -> int: ...
    def center(self, k: int) -> _F32: ...

class SparseRows:
    def __init__(self, matrix: csr_matrix) -> None: ...
    def __len__(self) -> int: ...

class Instances:
    def __init__(
        self,
        documents: _I64,
        labels: _I32,
        document_count: int,
        classes: int,
        weights: _F32 | None = None,
        sets: _I64 | None = None,
    ) -> None: ...

class Columns:
    def __init__(self, documents: SparseRows, instances: Instances) -> None: ...

class Linear:
    def __init__(self, weights: _F32, classes: int, bias: float, kernels: str = ...) -> None: ...
    def scores(
        self, documents: SparseRows, begin: int, end: int, out: _F32, threads: int
    ) -> None: ...
    def gradient(
        self,
        documents: SparseRows,
        instances: Instances,
        columns: Columns | None,
        out: NDArray[np.float64] | None,
        threads: int,
        targets: _F32 | None = None,
        posterior: _F32 | None = None,
        latent: bool = False,
    ) -> float: ...

class Learner(Run):
    def __init__(
        self,
        options: Mapping[str, float],
        documents: SparseRows,
        instances: Instances,
        counts: _I64,
        linear: Linear,
    ) -> None: ...

class LabelTree:
    def __init__(
        self,
        children: _I64,
        rows: _I64,
        features: _I32,
        starts: _I64,
        columns: NDArray[np.uint16],
        values: _F32,
        bias_feature: int,
        bias: float,
    ) -> None: ...
    def best(
        self, documents: SparseRows, begin: int, end: int, beam: int, best: _I32, scores: _F32
    ) -> None: ...

class Composer:
    def __init__(
        self,
        vectors: _F32,
        weights: _F32,
        posteriors: SparseRows,
        log_counts: bool = False,
        kernels: str = ...,
    ) -> None: ...
    def extremes(self, starts: _I64, ids: _U32) -> _F32: ...
    def rows(self, starts: _I64, ids: _U32, threshold: float) -> tuple[_I64, _I32, _F32]: ...

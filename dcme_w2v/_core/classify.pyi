from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from dcme_w2v._core.engine import Run

class Documents:
    def __init__(
        self,
        starts: NDArray[np.int64],
        features: NDArray[np.int32],
        values: NDArray[np.float32],
        width: int,
    ) -> None: ...
    def __len__(self) -> int: ...

class Instances:
    def __init__(
        self,
        documents: NDArray[np.int64],
        labels: NDArray[np.int32],
        document_count: int,
        classes: int,
        weights: NDArray[np.float32] | None = None,
        sets: NDArray[np.int64] | None = None,
    ) -> None: ...

class Columns:
    def __init__(self, documents: Documents, instances: Instances) -> None: ...

class Linear:
    def __init__(
        self,
        weights: NDArray[np.float32],
        classes: int,
        bias: float,
        kernels: str | None = None,
    ) -> None: ...
    @property
    def kernels(self) -> str: ...
    def scores(
        self, documents: Documents, begin: int, end: int, out: NDArray[np.float32], threads: int
    ) -> None: ...
    def gradient(
        self,
        documents: Documents,
        instances: Instances,
        columns: Columns,
        out: NDArray[np.float64],
        threads: int,
    ) -> float: ...
    def soft_gradient(
        self,
        documents: Documents,
        instances: Instances,
        columns: Columns | None,
        rows: NDArray[np.float32],
        out: NDArray[np.float64] | None,
        posterior: NDArray[np.float32] | None,
        latent: bool,
        threads: int,
    ) -> float: ...

class LabelTree:
    def __init__(
        self,
        children: NDArray[np.int64],
        rows: NDArray[np.int64],
        features: NDArray[np.int32],
        starts: NDArray[np.int64],
        columns: NDArray[np.uint16],
        values: NDArray[np.float32],
        bias_feature: int,
        bias: float,
    ) -> None: ...
    def best(
        self,
        documents: Documents,
        begin: int,
        end: int,
        beam: int,
        best: NDArray[np.int32],
        scores: NDArray[np.float32],
    ) -> None: ...

class Learner(Run):
    def __init__(
        self,
        options: Mapping[str, float],
        documents: Documents,
        instances: Instances,
        counts: NDArray[np.int64],
        linear: Linear,
    ) -> None: ...

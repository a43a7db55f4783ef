"""Several linear models that vote: the mean of their probabilities.

Mann et al. (2009) count votes, or average probabilities, which is better with few shards.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dcme_w2v._core import classify as core
from dcme_w2v.numeric.arrays import F32, F64

from .metrics import log_softmax
from .trainer import Weights


class VotingWeights(Weights):
    """Linear models of the same features and classes.

    Parameters
    ----------
    models : sequence of Weights
        At least one.

    Attributes
    ----------
    models : list of Weights
    """

    def __init__(self, models: Sequence[Weights]) -> None:
        self.models = list(models)
        self.classes, self.bias = models[0].classes, models[0].bias
        self.order = np.arange(self.classes)
        self.place = np.arange(self.classes, dtype=np.int32)
        self.offset = np.zeros(self.classes, dtype=np.float32)

    @property
    def tables(self) -> dict[str, F32]:
        """None: the models are not trained together."""
        return {}

    @property
    def features(self) -> int:
        """Number of features without the bias feature."""
        return self.models[0].features

    def get(self) -> F32:
        """Raise TypeError: there is no single table."""
        raise TypeError("a model by vote has several tables of weights")

    def set(self, weights: F32) -> None:
        """Raise TypeError."""
        self.get()

    def blocks(self) -> Iterator[F32]:
        """Raise TypeError."""
        self.get()
        yield from ()

    def above_mean(self, number: int) -> F32:
        """Return the mean over the models."""
        found = np.mean([one.above_mean(number) for one in self.models], axis=0, dtype=np.float64)
        return np.asarray(found, dtype=np.float32)

    def __getstate__(self) -> dict[str, Any]:
        """Return the models."""
        return {"models": self.models}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    def scores(self, documents: core.Documents, begin: int, end: int, threads: int) -> F64:
        """Return the logarithms of the mean probabilities."""
        total = np.zeros((end - begin, self.classes))
        for one in self.models:
            total += np.exp(log_softmax(one.scores(documents, begin, end, threads)))
        total /= len(self.models)
        return np.log(np.maximum(total, np.finfo(np.float64).tiny))

    def raw_scores(self, documents: core.Documents, begin: int, end: int, threads: int) -> F32:
        """Return them in single precision."""
        return self.scores(documents, begin, end, threads).astype(np.float32)

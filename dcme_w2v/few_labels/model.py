"""The model that `fuse fit` writes: a linear classifier with levels."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from dcme_w2v.classify.levels import Evidence
from dcme_w2v.classify.model import VERSION, Classifier, restored, text_of
from dcme_w2v.classify.trainer import Weights
from dcme_w2v.classify.weight_files import arrays_of, weights_of
from dcme_w2v.errors import UsageError
from dcme_w2v.formats.artifact import Model, load_model
from dcme_w2v.numeric.sparse_rows import fit_columns
from dcme_w2v.platform import PathLike

from .options import FusedOptions

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

KIND = "fused"
LEVELS = ("levels_indptr", "levels_indices", "levels_data")


@dataclass(frozen=True, repr=False)
class FusedModel(Classifier):
    """A linear classifier that was also trained on unlabeled documents.

    Attributes
    ----------
    evidence : Evidence or None
        The levels; None if the model has none.
    """

    weights: Weights = field(kw_only=True)
    evidence: Evidence | None = field(kw_only=True)

    @property
    def is_binary(self) -> bool:
        """Whether all nonzero feature values count as 1."""
        return bool(self.options.is_paper)

    def transform(self, matrix: csr_matrix, threads: int | None = None) -> csr_matrix:
        """Return the fused features h as float32, shape (documents, classes x levels)."""
        if self.evidence is None:
            raise UsageError(
                "this model cannot transform documents, because it has no impact levels; fit a "
                "model with --final=levels"
            )
        return self.evidence.transform(fit_columns(matrix, self.features), self.is_binary)

    def column_names(self) -> list[str]:
        """Return the names of the columns of `transform`."""
        levels = 0 if self.evidence is None else len(self.evidence.values)
        return [f"{name} level {k + 1}" for name in self.classes for k in range(levels)]

    def save(self, path: PathLike) -> None:
        """Write the model to a file, atomically."""
        arrays: dict[str, Any] = arrays_of(self.weights)
        if self.evidence is not None:
            levels = self.evidence.levels
            parts = (
                levels.indptr.astype(np.int64), levels.indices.astype(np.int32),
                levels.data.astype(np.int8),
            )  # fmt: skip
            arrays |= {**dict(zip(LEVELS, parts, strict=True)), "values": self.evidence.values}
        self.write(path, KIND, arrays, bias=self.weights.bias)

    @classmethod
    def load(cls, path: PathLike) -> FusedModel:
        """Read a model from a file.

        Raises
        ------
        FormatError
            The file is not a fused model, or is corrupt.
        """
        model = load_model(path, KIND, VERSION)
        weights = weights_of(model, len(model.strings("classes")), model.number("bias", 0, 1e3))
        own = restored(model, FusedOptions, text_of(model, weights.features))
        evidence = _evidence(model, weights.features, weights.classes)
        return cls(*own, weights=weights, evidence=evidence)


def _evidence(model: Model, features: int, classes: int) -> Evidence | None:
    if "values" not in model.arrays:
        return None
    values = model.array("values", "float64", None)
    levels = model.rows(LEVELS, features, classes, "int8")
    highest = int(np.abs(levels.data.astype(np.int64)).max(initial=0))
    if highest > len(values) or not levels.data.all():
        raise model.fault(LEVELS[2], f"contains levels outside the range 1 to {len(values)}")
    return Evidence(levels, values, 0.0)

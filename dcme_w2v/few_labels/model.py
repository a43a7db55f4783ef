"""A model of `fuse fit`: a linear classifier with the levels that it was made with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from dcme_w2v.classify.model import VERSION, Classifier, offset_of, restored, text_of
from dcme_w2v.classify.trainer import Weights
from dcme_w2v.formats.artifact import Model, load_model
from dcme_w2v.numeric.sparse_rows import fit_columns
from dcme_w2v.platform import PathLike

from .evidence import Evidence, Tied
from .fit import Fitted, linear
from .options import FusedOptions

KIND = "fused"
LEVELS = ("levels_indptr", "levels_indices", "levels_data")
FINALS = ("sum", "distill", "tied", "beside", "supervised", "self-training")
BY_LEVELS = ("tied", "beside")  # final models whose weights follow from the levels


@dataclass
class FusedModel(Classifier):
    """A classifier that has learned from unlabeled documents.

    Attributes
    ----------
    fitted : Fitted
        The levels and how the weights were made; the options are resolved.
    """

    fitted: Fitted = field(kw_only=True)

    @property
    def is_binary(self) -> bool:
        """Whether values of features count as 1."""
        return self.fitted.predicts_binary

    def transform(self, matrix: csr_matrix, threads: int | None = None) -> csr_matrix:
        """Return h of documents: float32, shape (documents, classes x levels)."""
        return self.fitted.transform(fit_columns(matrix, self.features))

    def column_names(self) -> list[str]:
        """Return the names of the columns of `transform`."""
        levels = range(1, self.fitted.levels + 1)
        return [f"{name} level {k}" for name in self.classes for k in levels]

    def save(self, path: PathLike) -> None:
        """Write the model's file."""
        found, arrays = self.fitted, dict[str, Any]()
        if found.evidence is not None:
            levels = found.evidence.levels
            arrays["levels_data"] = levels.data.astype(np.int8)
            arrays["levels_indices"] = levels.indices.astype(np.int32)
            arrays["levels_indptr"] = levels.indptr.astype(np.int64)
            arrays["values"] = found.evidence.values
        if found.tied is not None:
            arrays |= {"weights": found.tied.weights, "biases": found.tied.biases}
        if found.base is not None:
            arrays["initial"] = found.base.get()
        if found.final not in BY_LEVELS:
            arrays["table"] = self.weights.get()
        if self.weights.offset.any():
            arrays["offset"] = self.weights.offset
        self.write(
            path, KIND, arrays, final=found.final, binary=found.binary, bias=self.weights.bias,
            initial_bias=found.base.bias if found.base is not None else None,
            loss=found.evidence.loss if found.evidence is not None else None,
        )  # fmt: skip

    @classmethod
    def load(cls, path: PathLike) -> FusedModel:
        """Open a model's file.

        Raises
        ------
        FormatError
            It is not a fused model, or is corrupt.
        """
        model = load_model(path, KIND, VERSION)
        classes = model.strings("classes")
        final, binary = model.value("final", str), model.value("binary", bool)
        if final not in FINALS:
            raise model.fault("final", f"is {final!r}, must be one of {', '.join(FINALS)}")
        evidence = _evidence(model, len(classes)) if "values" in model.arrays else None
        tied = _tied(model, len(classes)) if "biases" in model.arrays else None
        base = _weights(model, "initial", len(classes), "initial_bias")
        weights = _weights(model, "table", len(classes), "bias")
        if weights is None:
            weights = _of_levels(model, final, evidence, tied, base)
        offset_of(model, weights)
        own = restored(model, FusedOptions, text_of(model, weights.features))
        fitted = Fitted(weights, final, evidence, tied, base, binary)
        return cls(*own, weights=weights, fitted=fitted)


def _of_levels(
    model: Model, final: str, evidence: Evidence | None, tied: Tied | None, base: Weights | None
) -> Weights:
    if evidence is None or tied is None or final not in BY_LEVELS:
        raise model.fault("table", "there is no such array")
    if len(tied.weights) != len(evidence.values) + (base is not None):
        raise model.fault("weights", "do not fit the values")
    if base is not None and base.features != evidence.levels.shape[0]:
        raise model.fault("initial", "does not fit the levels")
    with np.errstate(over="ignore", invalid="ignore"):
        weights = linear(evidence, tied, base)
    if not np.isfinite(weights.table).all():
        raise model.fault("values", "give weights that are NaN or infinite")
    return weights


def _weights(model: Model, name: str, classes: int, bias: str) -> Weights | None:
    if name not in model.arrays:
        return None
    table = model.array(name, "float32", None, classes)
    if not len(table):
        raise model.fault(name, "has no rows")
    weights = Weights(len(table) - 1, classes, model.number(bias, 0, 1e3))
    weights.set(np.asarray(table))
    return weights


def _evidence(model: Model, classes: int) -> Evidence:
    values = model.array("values", "float64", None)
    levels = model.rows(LEVELS, None, classes, "int8")
    highest = int(np.abs(levels.data.astype(np.int64)).max(initial=0))
    if highest > len(values) or not levels.data.all():
        raise model.fault(LEVELS[2], f"has levels that are not 1 to {len(values)}")
    return Evidence(levels, values, model.value("loss", float))


def _tied(model: Model, classes: int) -> Tied:
    weights = model.array("weights", "float64", None)
    return Tied(weights, model.array("biases", "float64", classes))

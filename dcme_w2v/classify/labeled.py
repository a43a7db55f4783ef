"""The class `Labeled`, which contains weighted labeled documents for training and evaluation."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np

from dcme_w2v.errors import UsageError
from dcme_w2v.formats.labels import label_of
from dcme_w2v.numeric.arrays import F32, F64, I32, I64, Array
from dcme_w2v.numeric.sparse_rows import AnyRows

MOST_WEIGHT = 1_000_000  # maximum class weight
# Drop as many of the lowest-weighted documents as possible while their weights sum to at most this
# fraction of the total weight.
NEGLIGIBLE = 1e-6
SAME = 1e-6  # weights that differ by less than this fraction count as equal


def instances_of(labels: Sequence[Sequence[int]]) -> tuple[I64, I32]:
    """Return the document index and class index of each document-label pair (instance)."""
    sizes = [len(own) for own in labels]
    flat = [label for own in labels for label in own]
    return np.repeat(np.arange(len(sizes)), sizes), np.array(flat, dtype=np.int32)


@dataclass(frozen=True)
class Labeled:
    """Weighted documents, each with a list of labels: class indices, or -1 for unknown labels.

    Attributes
    ----------
    matrix : csr_matrix or CompressedRows, of float32, shape (documents, features)
        The documents.
    labels : sequence of sequence of int
        The labels of each document, at least one.
    weights : ndarray of float32, shape (documents,), optional
        How often each document counts, normalized by `weighted`, above 0 (default: 1).
    groups : ndarray of int64, shape (documents,), optional
        The group of each document; the documents of a group are held out together (default: each
        document is its own group).
    """

    matrix: AnyRows
    labels: Sequence[Sequence[int]]
    weights: F32 | None = None
    groups: I64 | None = None

    def weighted(self, weights: F64) -> Labeled:
        """Set the document weights, scaled to a mean of 1 because only their ratios matter.

        The mean weight becomes 1. Documents with weight 0, and the lightest documents that together
        have less than a millionth of the total weight, are left out.

        Parameters
        ----------
        weights : ndarray of float64, shape (documents,)
            Not negative, finite, and not all 0.
        """
        order = np.argsort(weights, kind="stable")
        shares = np.cumsum(weights[order] / weights.max())
        kept = np.sort(order[shares > NEGLIGIBLE * shares[-1]])
        data, own = self.some(kept), weights[kept] / weights[kept].max()
        own = own / own.mean()
        return data if np.ptp(own) <= SAME else data.with_weights(own.astype(np.float32))

    def with_weights(self, weights: F32 | None) -> Labeled:
        """Replace the document weights without scaling."""
        return Labeled(self.matrix, self.labels, weights, self.groups)

    @property
    def total(self) -> float:
        """The sum of the documents' weights."""
        return float(len(self.labels) if self.weights is None else self.weights.sum(dtype=float))

    @property
    def held_together(self) -> int:
        """Number of groups that no fold splits: documents, or sentences if rows are tokens."""
        return len(self.labels) if self.groups is None else len(np.unique(self.groups))

    def shares(self) -> F64:
        """Return the documents' weights, scaled so that their sum is 1."""
        if self.weights is None:
            return np.full(len(self.labels), 1 / max(1, len(self.labels)))
        found = self.weights.astype(np.float64)
        return found / found.sum()

    def instance_weights(self) -> F32 | None:
        """Return the weight of each instance."""
        return None if self.weights is None else self.weights[instances_of(self.labels)[0]]

    def counts(self, classes: int) -> F64:
        """Return the total weight of the documents in each class."""
        found = np.bincount(instances_of(self.labels)[1], self.instance_weights(), classes)
        return found.astype(np.float64)

    def some(self, chosen: I64) -> Labeled:
        """Return the documents with the given indices."""
        weights = None if self.weights is None else self.weights[chosen]
        groups = None if self.groups is None else self.groups[chosen]
        return Labeled(self.matrix[chosen], [self.labels[i] for i in chosen], weights, groups)


def class_weights(
    given: Any, names: Sequence[Any], labels: Sequence[Sequence[int]], weights: F64 | None = None
) -> F64:
    """Return the weight of each class, either balanced or set by the user.

    Parameters
    ----------
    given : mapping or {"balanced"}
        Weights by name, 1 by default; "balanced" gives all classes the same total weight.
    names : sequence
        The classes.
    labels : sequence of sequence of int
        Class indices of each document.
    weights : ndarray of float64, shape (documents,), optional
        Weights of the documents themselves.

    Raises
    ------
    UsageError
        A name is not a class, or a weight is not a number from 0 to `MOST_WEIGHT`.
    """
    (rows, numbers), found = instances_of(labels), np.ones(len(names))
    if given == "balanced":
        sums = np.bincount(numbers, None if weights is None else weights[rows], len(names))
        held = sums > 0
        found[held] = sums.sum() / (held.sum() * sums[held])
    elif not isinstance(given, Mapping):
        raise UsageError(
            f"--class-weight={given!r} must be 'balanced' or a dict that maps labels to weights"
        )
    else:
        place = {name: number for number, name in enumerate(names)}
        for name, weight in given.items():
            if name not in place:
                # Weights of labels without documents are ignored, as in scikit-learn.
                if place.keys() <= given.keys():
                    continue
                raise UsageError(
                    f"--class-weight: no document has the label {name!r}; remove this label from "
                    "--class-weight"
                )
            if not isinstance(weight, Real) or weight < 0 or not weight <= MOST_WEIGHT:
                raise UsageError(
                    f"--class-weight: the label {name!r} has the weight {weight!r}; use a "
                    f"positive number, at most {MOST_WEIGHT:,}"
                )
            found[place[name]] = weight
    return found


def of_documents(class_weights: F64, labels: Sequence[Sequence[int]]) -> F64:
    """Return the mean class weight of each document's labels, or 1 if it has no labels."""
    rows, numbers = instances_of(labels)
    own = np.append(class_weights, 1.0)[numbers]  # label -1, which is not a class, gets weight 1
    sizes, sums = (np.bincount(rows, one, len(labels)) for one in (None, own))
    return np.where(sizes, sums / np.maximum(sizes, 1), 1.0)


# ---- conversion of labels between Python and files ----

_NOT_IN_FILES = re.compile("[\0\ud800-\udfff]")


def kind_of_labels(labels: Iterable[Any]) -> str:
    """Return the label type: str, int (including whole-number floats) or bool.

    Raises
    ------
    UsageError
        A label is something else, or there are several kinds.
    """
    kinds: dict[str, Any] = {}
    for label in labels:
        if isinstance(label, str) and not _NOT_IN_FILES.search(label):
            kind = "text"
        elif isinstance(label, bool | np.bool_):
            kind = "boolean"
        elif isinstance(label, Integral) or (
            isinstance(label, float | np.floating) and float(label).is_integer()
        ):
            kind = "integer"
        else:
            raise UsageError(
                f"the label {reprlib.repr(label)} (type {type(label).__name__}) is not supported; "
                "use integers, booleans, or Unicode text without NUL characters"
            )
        kinds.setdefault(kind, label)
    if len(kinds) > 1:
        one, other, *_ = (reprlib.repr(label) for label in kinds.values())
        raise UsageError(
            f"the labels {one} and {other} have different types; convert all labels to one type"
        )
    return next(iter(kinds), "text")


def name_of_label(label: Any, kind: str) -> str:
    """Return the string that represents a label in files."""
    given = str.__str__(label) if isinstance(label, str) else str(label)  # for enum members
    name = label_of(str(int(label)) if kind == "integer" else given)
    if not name:
        raise UsageError(f"the label {label!r} is empty; use a nonempty label")
    return name


def label_of_name(name: str, kind: str) -> Any:
    """Convert a string from a file to a label; raise ValueError if the conversion is impossible."""
    if kind == "boolean":
        return {"True": True, "False": False}[name]
    return int(name) if kind == "integer" else name


def array_of_labels(labels: Sequence[Any]) -> Array:
    """Convert labels of one type to an array (of dtype object for very large integers)."""
    found = np.array(labels) if len(labels) else np.zeros(0, dtype=np.str_)
    return found if found.dtype.kind in "bUiu" else np.array(labels, dtype=object)

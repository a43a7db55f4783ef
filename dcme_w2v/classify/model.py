"""Trained classifiers with their features, classes and weights, and their model files."""

from __future__ import annotations

import math
import reprlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dcme_w2v._core.models import SparseRows
from dcme_w2v.declarations import Checked, threads_of, whole_number
from dcme_w2v.errors import UsageError
from dcme_w2v.formats.artifact import Model, load_artifact, load_model, save_model, words_arrays
from dcme_w2v.formats.texts import Text, as_texts, told_texts
from dcme_w2v.hints import closest
from dcme_w2v.numeric.arrays import F32, F64, Array, Sealed
from dcme_w2v.numeric.shown import Rows, Shown
from dcme_w2v.numeric.sparse_rows import CompressedRows, check_rows, ones, truncate_columns
from dcme_w2v.platform import PathLike

from .calibration import Calibration
from .features import TextFeatures
from .label_tree import Forest
from .labeled import array_of_labels, label_of_name, name_of_label
from .metrics import Top, best_classes, check_scores, log_of_probability
from .options import ClassifyOptions, FeatureOptions
from .trainer import Scorer, Weights
from .weight_files import arrays_of, scorer_of

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

KIND, VERSION = "classifier", 2
# Default probability threshold for multilabel data, tuned on Reuters.
THRESHOLD = 0.15
# For fewer multiplications than this, extra threads cost more time than they save.
ALONE = 1 << 20
MAX_IDF = 1e6  # maximum idf in a valid model file
# Model-record key for the number of training documents without labels.
NONE = "none_of_the_labels"
COLUMNS = "columns"  # model-record key for the number of columns in .npz training files
PREDICTORS = (KIND, "fused", "latent", "shrunk")  # kinds of models that predict classes


class Explanation(Rows[tuple[str, float]]):
    """The features that explain a class or a prediction, and their weights.

    For a text, the weights are contributions: the value of a feature times the difference of its
    weights for two classes. Together with `rest`, they add up to the difference of the scores of
    these classes.

    Attributes
    ----------
    label : str
        The class.
    against : str or None
        For a text, the most probable other class; None means the average over all classes.
    rest : float
        For a text, the contribution of all other features and the bias.
    """

    def __init__(
        self,
        features: Iterable[tuple[str, float]],
        label: Any,
        against: Any = None,
        rest: float = 0,
    ) -> None:
        super().__init__(features)
        self.label, self.against, self.rest = label, against, rest


@dataclass(frozen=True, repr=False)
class Predictor(Sealed, Shown, ABC):
    """Base class of all models that predict classes.

    Attributes
    ----------
    classes : list of str
        Names of the classes.
    text : TextFeatures or None
        The features of text; None for a model of vectors.
    options : Checked
        Options of the training.
    multilabel : bool
        Whether documents may have several labels.
    threshold : float
        With several labels, the minimum probability of a predicted label.
    record : dict
        Other entries of the record about the training.
    calibration : Calibration
        Converts scores to probabilities.
    label_kind : str
        The Python type of the labels: "text", "integer" or "boolean".
    """

    classes: list[str]
    text: TextFeatures | None
    options: Any
    multilabel: bool = False
    threshold: float = THRESHOLD
    record: dict[str, Any] = field(default_factory=dict)
    calibration: Calibration = field(default_factory=Calibration)
    label_kind: str = "text"

    @property
    def labels(self) -> list[Any]:
        """The labels in their Python type, in the order of `classes`."""
        return [label_of_name(name, self.label_kind) for name in self.classes]

    @property
    def classes_(self) -> Array:
        """The sorted labels, in the order of the columns of `predict_proba`."""
        return array_of_labels(sorted(self.labels))

    @property
    @abstractmethod
    def features(self) -> int:
        """Number of columns that the model's input rows have."""

    def _facts(self) -> dict[str, Any]:
        return {
            "classes": len(self.classes), "names": reprlib.repr(self.classes),
            "features": self.features, "documents": self.record.get("documents"),
            **self.record.get("heldout", {}),
        }  # fmt: skip

    @abstractmethod
    def log_probabilities(self, matrix: csr_matrix, threads: int | None = None) -> Iterator[F64]:
        """Yield the log-probabilities of all classes for batches of documents.

        Each batch is an ndarray of float64, shape (documents, classes).
        """

    @abstractmethod
    def weights_of_class(self, number: int) -> F32:
        """Return a class's weights, shape (features,)."""

    def rows(self, texts: Sequence[Text]) -> CompressedRows:
        """Convert documents to vectors; raise an error if the model does not accept text."""
        if self.text is None:
            raise UsageError(
                "the model classifies vectors, not text; use an svmlight file or an .npz file"
            )
        return self.text.transform(texts)

    def align_features(self, matrix: csr_matrix) -> csr_matrix:
        """Align document vectors with the columns on which the weights were trained."""
        return truncate_columns(matrix, self.features)

    def most_probable(
        self, matrix: csr_matrix, count: int, threads: int | None = None
    ) -> Iterator[Top]:
        """Yield the most probable classes of documents and their log-probabilities, in batches."""
        return (best_classes(log_p, count) for log_p in self.log_probabilities(matrix, threads))

    def _in_order(self, batches: Iterable[F64]) -> F64:
        """Reorder columns from the order of `classes` to the order of `classes_`."""
        labels = self.labels
        order = sorted(range(len(labels)), key=labels.__getitem__)
        found = np.concatenate([np.empty((0, len(labels))), *batches])
        return np.take(found, order, axis=1)

    def predict_log_proba(self, texts: Any, threads: int | None = None) -> F64:
        """Return the logarithms of the probabilities that `predict_proba` returns."""
        return self._in_order(self.log_probabilities(self.rows_of(texts), threads))

    def predict_proba(self, texts: Any, threads: int | None = None) -> F64:
        """Return each text's probability of every class in `classes_`, shape (texts, classes).

        Parameters
        ----------
        texts : iterable of str, bytes or token lists; rows for a model of vectors
        threads : int, optional
        """
        return np.exp(self.predict_log_proba(texts, threads))

    def decision_function(self, texts: Any, threads: int | None = None) -> F64:
        """Return each text's score for every class in `classes_`, shape (texts, classes).

        The most probable class has the highest score. Models without linear scores return
        log-probabilities. If each text has one of two classes, the result is the difference of
        their scores, shape (texts,), as in scikit-learn.
        """
        rows = self.align_features(self.rows_of(texts))
        batches = self.log_probabilities(rows, threads)
        if (scorer := self.scorer_of(rows)) is not None:
            batches = scorer.batches(SparseRows(rows), threads_of(threads))
        scores = self._in_order(batches)
        is_binary = len(self.classes) == 2 and not self.multilabel
        return scores[:, 1] - scores[:, 0] if is_binary else scores

    def rows_of(self, texts: Any) -> csr_matrix:
        """Convert texts to rows; if the model expects vectors, return the input unchanged."""
        if self.text is None:
            return check_rows(texts)
        return self.rows(told_texts(texts))

    @property
    def is_of_texts(self) -> bool:
        """Whether the model classifies texts, rather than vectors or tokens."""
        return self.text is not None and not self.text.is_by_token

    def predict(
        self,
        texts: Iterable[Any],
        *,
        min_probability: float | None = None,
        threads: int | None = None,
        several: bool | None = None,
    ) -> Any:
        """Return the most probable class of each text, shape (texts,).

        A model with several labels returns lists: the most probable class, and all classes whose
        probability is at least `threshold`.

        Parameters
        ----------
        texts : iterable of str, bytes or token lists
        min_probability : float, optional
            Return only classes with at least this probability, and None, or an empty list, if there
            are none.
        threads : int, optional
        several : bool, optional
            Whether to return lists (default: only if the model has several labels).
        """
        several = self.multilabel if several is None else several
        if not several and min_probability is None:
            batches = self.most_probable(self.rows_of(texts), 1, threads)
            best = [np.zeros(0, dtype=np.int64)] + [numbers[:, 0] for numbers, _ in batches]
            return array_of_labels(self.labels)[np.concatenate(best)]
        count = 0 if self.multilabel else 1
        found = self.predict_top(texts, count, min_probability, threads)
        if several:
            return [[label for label, _ in one] for one in found]
        return np.array([one[0][0] if one else None for one in found], dtype=object)

    def predict_top(
        self,
        texts: Iterable[Any],
        topn: int = 1,
        min_probability: float | None = None,
        threads: int | None = None,
    ) -> list[list[tuple[Any, float]]]:
        """Return the most probable classes of each text, with their probabilities.

        Parameters
        ----------
        texts : iterable of str, bytes or token lists
        topn : int
            Number of classes. If 0, return the most probable class, and all classes whose
            probability is at least `threshold`.
        min_probability : float, optional
            Return only classes with at least this probability; a list can be empty.
        threads : int, optional
        """
        whole_number("topn", topn, 0)
        known = dict(zip(self.classes, self.labels, strict=True))
        found = self.predicted(self.rows_of(texts), topn, threads, min_probability)
        return [[(known[name], p) for name, p in one] for one in found]

    def predicted(
        self,
        matrix: csr_matrix,
        topn: int,
        threads: int | None = None,
        min_probability: float | None = None,
    ) -> Iterator[list[tuple[str, float]]]:
        """Yield the results of `predict_top` for documents that are already vectors."""
        if min_probability is None and not topn and self.record.get(NONE):
            min_probability = self.threshold
        threshold = self.threshold if min_probability is None else min_probability
        is_open = topn and min_probability is None
        least = -math.inf if is_open else log_of_probability(threshold)
        count = min(topn or len(self.classes), len(self.classes))
        for numbers, log_p in self.most_probable(matrix, count, threads):
            kept = log_p >= least
            kept[:, 0] |= min_probability is None
            for found in zip(numbers.tolist(), np.exp(log_p).tolist(), kept.tolist(), strict=True):
                yield [
                    (self.classes[j], p) for j, p, is_kept in zip(*found, strict=True) if is_kept
                ]

    def explain(self, text: Any = None, label: Any = None, count: int = 20) -> Explanation:
        """Return a class's highest-weighted features, or the contributions of a text's features.

        Without a text, these are the features with the highest weights for the class. With a text,
        these are the features of the text that contribute most to the difference between the scores
        of the class and of the best other class.

        Parameters
        ----------
        text : str, bytes or token list, optional
        label : optional
            The class (default: the most probable one of the text).
        count : int
            Number of features.

        Raises
        ------
        UsageError
            There is no such class (the message suggests the nearest name), the model has no weights
            per word, or neither a text nor a label is given.
        """
        whole_number("count", count)
        if label is not None:
            label = name_of_label(label, self.label_kind)
        if label is not None and label not in self.classes:
            near = closest(label, self.classes)
            hint = f"did you mean {near}?" if near else f"choose a class such as {self.classes[0]}"
            raise UsageError(f"{label} is not a class of this model; {hint}")
        known = dict(zip(self.classes, self.labels, strict=True))
        if text is not None:
            found = self._explain_text(label, count, text)
            found.label, found.against = known[found.label], known[found.against]
            return found
        if label is None:
            raise UsageError("neither a label nor a text was given; pass a label, a text, or both")
        weights = self.weights_of_class(self.classes.index(label))
        return Explanation(self.highest_weighted(weights, count), known[label])

    def _explain_text(self, label: str | None, count: int, text: Any) -> Explanation:
        if self.text is None or self.text.is_by_token:
            raise UsageError(
                "--text is not supported, because the model does not classify texts; omit --text"
            )
        rows = self.align_features(self.rows(list(as_texts([text]))))
        scorer = self.scorer_of(rows)
        if not isinstance(scorer, Weights):
            raise UsageError(
                "--text is not supported, because the model does not store a weight for each "
                "word-label pair; omit --text"
            )
        scores = scorer.scores(SparseRows(rows), 0, 1, 1)
        check_scores(scores)
        ranked = np.argsort(-scores[0], kind="stable").tolist()
        own = ranked[0] if label is None else self.classes.index(label)
        other = ranked[ranked[0] == own]
        first, second = (scorer.table[rows.indices, scorer.place[one]] for one in (own, other))
        parts = rows.data.astype(np.float64) * (first - second)
        chosen = np.argsort(-np.abs(parts), kind="stable")[:count]
        chosen = chosen[np.argsort(-parts[chosen], kind="stable")]
        found = ((self.feature_name(rows.indices[i]), float(parts[i])) for i in chosen)
        rest = float(scores[0, own] - scores[0, other] - parts[chosen].sum())
        return Explanation(found, self.classes[own], self.classes[other], rest)

    def scorer_of(self, rows: csr_matrix) -> Scorer | None:
        """Return this model in a linear form that can score rows, or None if it is not linear."""
        return None

    def feature_name(self, column: int) -> str:
        """Return the name of a feature."""
        return f"column {column}" if self.text is None else self.text.name(int(column))

    def highest_weighted(
        self, weights: NDArray[np.floating], count: int
    ) -> list[tuple[str, float]]:
        """Return the features with the highest weights (multiplied by idf for tf-idf text)."""
        if self.text is not None and self.text.options.weighting == "tfidf":
            weights = weights * self.text.idf
        chosen = np.argsort(-weights, kind="stable")[:count]
        return Rows((self.feature_name(i), float(weights[i])) for i in chosen)

    def described(self, **more: Any) -> dict[str, Any]:
        """Return the entries of the model description, except those for text features."""
        found = {
            "classes": self.classes,
            "options": None if self.options is None else asdict(self.options),
            "several_labels": self.multilabel,
            "threshold": self.threshold,
            "record": self.record,
            **more,
        }
        if self.label_kind != "text":
            found["label_kind"] = self.label_kind
        is_plain = self.calibration == Calibration()
        return found if is_plain else {**found, "calibration": self.calibration.stored()}

    def write(self, path: PathLike, kind: str, arrays: dict[str, Any], **more: Any) -> None:
        """Write the model file, including text features."""
        description = self.described(**more)
        store_text(self.text, arrays, description)
        save_model(path, kind, VERSION, arrays, description)


def restored(
    model: Model, options: type[Checked] | None, text: TextFeatures | None
) -> tuple[Any, ...]:
    """Restore the attributes of `Predictor` from the record of a model file."""
    record = model.value("record", dict)
    if type(record.get(COLUMNS, 0)) not in (int, type(None)):
        raise model.fault("record", f"{COLUMNS} is not a number")
    return (
        model.strings("classes"), text,
        None if options is None else model.options("options", options),
        model.value("several_labels", bool), model.number("threshold", 0, 1), record,
        _calibration_in(model), _kind_of_labels_in(model),
    )  # fmt: skip


def scored(
    model: Predictor, matrix: csr_matrix, threads: int | None, is_latent: bool = False
) -> Iterator[tuple[slice, F64]]:
    """Yield each batch's slice of rows, and the rows' log-probabilities of (latent) classes."""
    begin, log_probabilities = 0, model.log_probabilities
    if is_latent:
        log_probabilities = getattr(model, "latent_log_probabilities", log_probabilities)
    for log_p in log_probabilities(matrix, threads):
        yield slice(begin, begin + len(log_p)), log_p
        begin += len(log_p)


def load_classifier(path: PathLike) -> Predictor:
    """Load a model file of any kind that predicts classes.

    Raises
    ------
    FormatError
        The file is not a model that predicts classes, or is corrupt.
    """
    found: Predictor = load_artifact(path, PREDICTORS)
    return found


@dataclass(frozen=True, repr=False)
class Classifier(Predictor):
    """A classifier trained by `classify train`, with its features.

    Attributes
    ----------
    weights : Scorer
        Weights by feature and class, voting models, or label trees.
    """

    weights: Scorer = field(kw_only=True)

    @property
    def features(self) -> int:
        """Number of columns that the model's input rows have."""
        return self.weights.features

    @property
    def is_binary(self) -> bool:
        """Whether all nonzero feature values count as 1."""
        return False

    def align_features(self, matrix: csr_matrix) -> csr_matrix:
        """Align document vectors with the columns on which the weights were trained."""
        rows = super().align_features(ones(matrix) if self.is_binary else matrix)
        return rows if rows.has_sorted_indices else rows.sorted_indices()

    def most_probable(
        self, matrix: csr_matrix, count: int, threads: int | None = None
    ) -> Iterator[Top]:
        """Yield the most probable classes; with label trees, avoid scoring all classes."""
        if not (self.multilabel and isinstance(self.weights, Forest)):
            yield from super().most_probable(matrix, count, threads)
            return
        documents = SparseRows(self.align_features(matrix))
        for numbers, scores in self.weights.best(documents, count, threads_of(threads)):
            yield numbers, self.calibration.apply(scores)

    def log_probabilities(self, matrix: csr_matrix, threads: int | None = None) -> Iterator[F64]:
        """Yield the calibrated log-probabilities of all classes for batches of documents."""
        rows = self.align_features(matrix)
        scorer = self.scorer_of(rows)
        if threads is None and rows.nnz * len(self.classes) < ALONE:
            threads = 1
        for scores in scorer.batches(SparseRows(rows), threads_of(threads)):
            yield self.calibration.apply(scores)

    def scorer_of(self, rows: csr_matrix) -> Scorer:
        """Return a linear model that has all weights, or at least those that the rows need."""
        return self.weights

    def weights_of_class(self, number: int) -> F32:
        """Return the weights of a class minus the mean weights over all classes.

        Only differences between classes affect the probabilities.
        """
        return self.weights.above_mean(number)

    def save(self, path: PathLike) -> None:
        """Write the model to a file, atomically."""
        self.write(path, KIND, arrays_of(self.weights))

    @classmethod
    def load(cls, path: PathLike) -> Classifier:
        """Load a model from a file.

        Raises
        ------
        FormatError
            It is not a classifier, or is corrupt.
        """
        model = load_model(path, KIND, VERSION)
        classes, bias = model.strings("classes"), model.options("options", ClassifyOptions).bias
        weights = scorer_of(model, len(classes), bias)
        own = restored(model, ClassifyOptions, text_of(model, weights.features))
        return cls(*own, weights=weights)


def _kind_of_labels_in(model: Model) -> str:
    """Return the recorded type of a model's labels, after checking the class names against it."""
    kind = model.description.get("label_kind", "text")
    try:
        labels = [label_of_name(name, kind) for name in model.strings("classes")]
    except (KeyError, ValueError):
        raise model.fault("label_kind", "does not match the classes") from None
    if len({*labels}) < len(labels):
        raise model.fault("classes", "contains a label twice")
    return str(kind)


def _calibration_in(model: Model) -> Calibration:
    """Restore the calibration from a model record, or use the softmax if the record has none."""
    found = model.description.get("calibration")
    try:
        return Calibration() if found is None else Calibration.restored(found)
    except ValueError as error:
        raise model.fault("calibration", str(error)) from None


def store_text(
    text: TextFeatures | None, arrays: dict[str, Any], description: dict[str, Any]
) -> None:
    """Add text features to the arrays and the description of a model file."""
    description["features"] = None
    if text is not None:
        description["features"] = asdict(text.options)
        arrays["idf"] = text.idf
        if text.names is not None:
            arrays |= words_arrays(text.names)
        if text.buckets is not None:
            arrays["buckets"] = text.buckets
        if text.tag_pairs is not None:
            arrays["tag_pairs"] = text.tag_pairs


def restore_tag_pairs(model: Model, text: TextFeatures) -> None:
    """Restore the counts of tag pairs if the model classifies tokens.

    Raises
    ------
    FormatError
        The counts are missing, have the wrong shape, or are negative.
    """
    if text.is_by_token:
        size = len(model.strings("classes")) + 1
        text.tag_pairs = model.array("tag_pairs", "int64", size, size)
        if (text.tag_pairs < 0).any():
            raise model.fault("tag_pairs", "contains a negative number")


def text_of(model: Model, columns: int) -> TextFeatures | None:
    """Restore the text features from a model file; return None if the model expects vectors."""
    if model.description.get("features", {}) is None:
        return None
    options = model.options("features", FeatureOptions)
    names = None if options.hashing is not None else model.words()
    buckets = None
    if names is None and "buckets" in model.arrays:
        buckets = model.array("buckets", "int64", None)
        rising = len(buckets) == 0 or (buckets[0] >= 0 and (np.diff(buckets) > 0).all())
        if not rising or (len(buckets) and buckets[-1] >= (options.hashing or 0)):
            raise model.fault("buckets", f"must ascend and stay below {options.hashing}")
    found = len(names) if names is not None else options.hashing
    found = found if buckets is None else len(buckets)
    if found != columns:
        raise model.fault("weights", f"cover {columns:,} features, but must cover {found:,}")
    idf = model.array("idf", "float32", columns)
    if idf.min(initial=0) < 0 or idf.max(initial=0) > MAX_IDF:
        raise model.fault("idf", f"contains numbers outside the range 0 to {MAX_IDF:g}")
    text = TextFeatures.restored(options, names, idf, buckets)
    restore_tag_pairs(model, text)
    return text

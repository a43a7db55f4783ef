"""Continue training a classifier on new documents, starting from its current weights.

The more earlier documents contain a feature, the less its weights move: its learning rate is
multiplied by the share of its documents that are new. A new word is thus learned from scratch, and
a word that occurs in many earlier documents keeps most of what was learned from them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from dcme_w2v.declarations import flag_of
from dcme_w2v.errors import UsageError, warn
from dcme_w2v.formats.texts import Text
from dcme_w2v.formats.vocabulary import Words
from dcme_w2v.numeric.arrays import F64, I64, Bools
from dcme_w2v.numeric.sparse_rows import CompressedRows, fit_columns, truncate_columns
from dcme_w2v.platform import PathLike
from dcme_w2v.text.select_vocabulary import ids_of
from dcme_w2v.training.progress import Reporter

from .choose import OutOfFold, accuracy
from .constants import CERTAIN
from .dataset import Dataset
from .doubts import MIN_DOUBTED
from .features import Counted, TextFeatures, documents_with
from .fit import Fitted, scores_of, set_probabilities
from .labeled import label_of_name
from .model import NONE, Classifier, Predictor, load_classifier
from .options import BIAS, ClassifyOptions, FeatureOptions
from .shrink import ShrunkModel
from .trainer import Start, Weights

ANY = 2**31 - 2  # a limit on the number of features that no model reaches
# two fewer epochs than for all documents at once, because the weights start near the optimum
EPOCHS = 8
# Options that continued training does not copy from the old model.
OF_RUN = ("threads", "seed", "patience")
MAY_DIFFER = (*OF_RUN, "lr", "min_lr", "epochs", "l2", "batch", "features", "encoding_errors")


class GrownFeatures(TextFeatures):
    """A model's features, extended by `fit_transform` with features of new documents.

    Parameters
    ----------
    before : TextFeatures
    options : FeatureOptions
    documents : int
        Number of documents that `before` has counted. In each batch, weights have the mean 1.
    kept : float
        Factor of the document counts of `before`, which is less than 1 if they fade.

    Attributes
    ----------
    origin : ndarray of int32, shape (columns,)
        The column of each feature in `before`; -1 for a new feature.
    factor : ndarray of float32, shape (columns,)
        Factor by which the values of an earlier feature differ from its values in `before`.
    share : ndarray of float64, shape (columns,)
        The share of each feature's documents that are new.
    """

    def __init__(
        self, before: TextFeatures, options: FeatureOptions, documents: int, kept: float
    ) -> None:
        super().__init__(options)
        self._before, self._documents, self._kept = before, documents, kept

    def fit_transform(
        self,
        documents: Iterable[Text],
        most: Callable[[], tuple[int, bool]] | None = None,
        weights: Sequence[float] | F64 = (),
    ) -> CompressedRows:
        """Add columns for new features, and return the rows of the new documents."""
        before, known = self._before, np.arange(self._before.columns)
        if before.names is None:
            if before.buckets is not None:
                self._set_buckets(before.buckets)
            counts, place = self._counts(documents, self._hashed, before.columns), known
        else:
            counts, _ = self._chosen(self._read(documents, None, weights)[0], ANY)
            assert self.names is not None
            table = before.names.new_table()
            place = ids_of(table, self.names).astype(np.int64)
        width = max(len(known), int(place.max(initial=-1)) + 1)
        own = np.asarray(weights, dtype=np.float64)
        new = np.zeros(width)
        new[place] = documents_with(counts, own / own.mean() if len(own) else None)
        total, order = new + self._earlier(new, counts.shape[0]), np.arange(width)
        if before.names is not None:
            order = np.flatnonzero((total >= self.options.min_df) | (order < len(known)))
            limit = max(len(known), most()[0] if most else self.options.most_features)
            order = order[np.argsort(-total[order], kind="stable")][:limit]
            self.names = Words(*table.words(order))
        column = np.full(width, -1)
        column[order] = np.arange(len(order))
        self.origin = np.where(order < len(known), order, -1).astype(np.int32)
        self.share = np.divide(new, total, out=np.zeros(width), where=total > 0)[order]
        return self._weigh(counts.in_columns(column[place], len(order)), total[order])

    def _earlier(self, new: F64, documents: int) -> F64:
        """Compute from each feature's idf how many earlier documents contain the feature.

        Without idf, the frequency of a feature in the new documents is used instead.
        """
        known, found = self._before.columns, np.zeros(len(new))
        if self.options.weighting == "tfidf":
            found[:known] = self._documents / np.exp(self._before.idf.astype(np.float64) - 1)
        else:
            found[:known] = new[:known] * self._documents / max(1, documents)
        return self._kept * np.maximum(found, np.arange(len(found)) < known)

    def _weigh(self, counts: CompressedRows, total: F64) -> CompressedRows:
        """Multiply counts by idf values that are computed from earlier and new documents."""
        rows = self._fitted(counts, total, counts.shape[0] + self._kept * self._documents)
        # New features have origin -1, which selects the idf of 1 that is appended here.
        before = np.append(self._before.idf, 1.0)
        self.factor = np.where(self.origin < 0, 1, self.idf / before[self.origin])
        return rows

    def _eligible(self, counted: Counted, words: I64) -> Bools:
        """Accept all features, because new documents do not show how frequent features are."""
        return np.ones(counted.counts.shape[0], dtype=np.bool_)


class Continued:
    """A trained model whose training continues on new documents.

    Parameters
    ----------
    init : path or Predictor
        The model or its file.
    fade : float
        The fraction of the model's weights and document counts to forget.

    Raises
    ------
    UsageError
        The model does not consist of linear weights that `classify train` has learned.
    """

    def __init__(self, init: PathLike | Predictor, fade: float = 0.0) -> None:
        self.name = "the model" if isinstance(init, Predictor) else f"--init={os.fspath(init)}"
        model = init if isinstance(init, Predictor) else load_classifier(init)
        reason = _why_not(model)
        if reason:
            raise UsageError(f"{self.name} {reason}; train a new model on all documents")
        assert isinstance(model, Classifier)
        self.model = model
        self._weights: Any = model.weights
        self._options = _for_sgd(model.options)
        self._kept = 1 - fade
        self._documents = int(model.record["documents"])

    def settings(
        self, options: ClassifyOptions, features: FeatureOptions
    ) -> tuple[ClassifyOptions, FeatureOptions]:
        """Return the model's options, updated with the user's options for the training schedule.

        Raises
        ------
        UsageError
            A given option contradicts the model.
        """
        text = self.model.text
        own = features if text is None else self._filled(features, text.options, text.options)
        return self._filled(options, self._options, self.model.options), own

    def features(self, options: FeatureOptions, text: TextFeatures | None) -> TextFeatures | None:
        """Return text features that new documents can extend, or None if the model uses vectors."""
        own = self.model.text
        if (own is None) != (text is None):
            takes = "vectors" if own is None else "text"
            raise UsageError(
                f"{self.name}: this model classifies {takes}; to continue its training, use "
                f"{takes} as input"
            )
        return None if own is None else GrownFeatures(own, options, self._documents, self._kept)

    def _filled(self, given: Any, own: Any, trained: Any) -> Any:
        """Fill unset options from the earlier training; reject options that cannot be changed."""
        found = {}
        for one in fields(own):
            value, known = getattr(given, one.name), getattr(own, one.name)
            if known != value == getattr(trained, one.name):
                value = one.default
            if one.name in OF_RUN:
                known = value
            elif value != one.default and value != known and one.name not in MAY_DIFFER:
                flag = f"{flag_of(one.name)}={value}"
                how = "without it" if known is None else f"with {known}"
                raise UsageError(
                    f"{flag} cannot be changed, because {self.name} was trained {how}; omit "
                    f"{flag_of(one.name)}"
                )
            found[one.name] = known if value == one.default else value
        return replace(given, **found)

    def start(self, corpus: Dataset) -> Start:
        """Return the model's weights in the order of the new documents' columns and classes."""
        model, bias = self.model, self._options.bias
        classes, text = corpus.classes, corpus.text
        place = np.array([classes.index(name) for name in model.classes])
        columns = corpus.matrix.shape[1]
        new = len(corpus.labels) / (len(corpus.labels) + self._kept * self._documents)
        share = np.full(columns, new)
        if isinstance(text, GrownFeatures):
            origin, share, factor = text.origin, text.share, text.factor
        else:
            origin, factor = np.full(columns, -1), np.ones(columns)
            origin[self._own] = np.arange(len(self._own))
            share[origin < 0] = 1
        old = np.float32(self._kept) * self._weights.get()
        table = np.zeros((columns + 1, len(classes)), dtype=np.float32)
        known = np.flatnonzero(origin >= 0)
        table[np.ix_(known, place)] = old[origin[known]] / factor[known, None].astype(np.float32)
        constant = old[-1] * self._weights.bias + self._kept * self._weights.offset
        if bias:
            # new labels start with the lowest bias of all old labels
            table[-1] = constant.min() / bias
            table[-1, place] = constant / bias
        weights = Weights(columns, len(classes), bias)
        weights.set(table)
        # Features that do not occur in the new documents keep their weights.
        scale = np.sqrt(np.where(share > 0, share, 1))
        has_one_label = len(corpus.counts) == 1 and len(corpus.labels) >= MIN_DOUBTED
        if has_one_label:
            warn(
                f"{self.name}: all new documents have the label {next(iter(corpus.counts))!r}, so "
                "training would make all other labels less probable; add documents with other "
                "labels"
            )
        return Start(weights, scale.astype(np.float32), new, has_one_label)

    def joined(self, corpus: Dataset, label_kind: str | None) -> Dataset:
        """Add the model's classes and columns to the data set of new documents."""
        kind, name = self.model.label_kind, next(iter(corpus.counts), "")
        try:
            if label_kind not in (None, kind):
                raise ValueError
            for name in corpus.counts:
                label_of_name(name, kind)
        except (KeyError, ValueError):
            raise UsageError(
                f"{self.name}: the model's labels have the type {kind}, but the new label "
                f"{name!r} does not; use labels of the type {kind}"
            ) from None
        corpus.before = self.model
        if self.model.text is not None:
            return corpus
        columns = max(self._own.max(initial=-1) + 1, corpus.matrix.shape[1])
        held = truncate_columns(corpus.held_matrix, columns)
        rows = (fit_columns(one, columns) for one in (corpus.matrix, held))
        return replace(corpus, **dict(zip(("matrix", "held_matrix"), rows, strict=True)))

    @property
    def _own(self) -> I64:
        """The input column that corresponds to each row of the model's weights."""
        columns = self.model.columns if isinstance(self.model, ShrunkModel) else None
        return np.arange(self._weights.features) if columns is None else columns

    def calibrate(self, fitted: Fitted, start: Start, corpus: Dataset, reporter: Reporter) -> None:
        """Report the initial model's accuracy on new documents, and recalibrate it if necessary.

        The model was not trained on the new documents, which therefore serve as held-out documents.
        """
        known = [corpus.classes.index(name) for name in self.model.classes]
        number = {place: i for i, place in enumerate(known)}
        held = scores_of(start.weights, corpus.data, 1, CERTAIN)
        labels: list[Sequence[int]] = [
            [number.get(label, -1) for label in own] for own in held.labels
        ]
        scores, has = held.scores[:, known], np.array([bool(own) for own in labels], dtype=bool)
        if has.any():
            right = accuracy(scores[has], [own for own in labels if own])
            share = float(np.average(right, weights=held.weights[has]))
            reporter.message(f"accuracy of the initial model on the new documents: {share:.4f}")
        fitted.calibration, fitted.threshold = self.model.calibration, self.model.threshold
        if self._documents < CERTAIN <= len(labels) and fitted.options.loss == "hinge":
            own = OutOfFold(scores, labels, held.weights)
            set_probabilities(fitted, own, corpus.multilabel, bool(corpus.none))

    def added(self, record: dict[str, Any]) -> dict[str, Any]:
        """Add the counts of earlier documents to a model's record."""
        before, labels = self.model.record, dict(record["labels"])

        def kept(count: int | None) -> int:
            return round(self._kept * (count or 0))

        for name, count in before.get("labels", {}).items():
            labels[name] = labels.get(name, 0) + kept(count)
        counts = {key: record[key] + kept(before.get(key)) for key in ("documents", NONE)}
        return {**record, **counts, "labels": dict(sorted(labels.items()))}


def _for_sgd(options: Any) -> ClassifyOptions:
    """Replace the dual solver, which cannot start from given weights, with gradient descent."""
    if options.solver != "dual":
        return options
    schedule = {"lr": None, "min_lr": None, "batch": None, "epochs": 2 * EPOCHS}
    return replace(options, solver="sgd", bias=2 * BIAS, **schedule)


def _why_not(model: Predictor) -> str:
    """Return the reason why training cannot continue from a model, or "" if it can."""
    options = model.options
    if not isinstance(model, Classifier) or not isinstance(options, ClassifyOptions):
        return "was not trained by classify train"
    if options.learner not in ("sgd", "dual") or options.objective == "ns":
        how = {"lbfgs": "L-BFGS", "tree": "label trees"}.get(options.learner, "negative sampling")
        return f"was trained with {how}, which cannot continue"
    if not isinstance(model.weights, Weights):
        return "consists of several models that vote"
    if model.text is not None and model.text.is_by_token:
        return "classifies tokens"
    if model.is_binary or "documents" not in model.record:
        return "does not record how many documents it was trained on"
    return ""

"""`TextClassifier`: the classifier of ``classify train`` with scikit-learn's conventions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from dcme_w2v.declarations import part_of
from dcme_w2v.errors import UsageError, warn
from dcme_w2v.files.paths import WRITES, guard
from dcme_w2v.formats.artifact import OF_CLASSES, load_artifact
from dcme_w2v.formats.columns import Table
from dcme_w2v.formats.texts import Tokenized, as_texts
from dcme_w2v.numeric.arrays import F64
from dcme_w2v.numeric.sealed import sealed
from dcme_w2v.numeric.sklearn_base import (
    Estimator,
    check_all_labeled,
    options_of,
    parameters,
    tags_of_texts,
)
from dcme_w2v.platform import PathLike

from .labeled import kind_of_labels, name_of_label
from .mixins import ProbabilityMixin
from .model import Predictor
from .options import SECONDS, ClassifyOptions, FeatureOptions, TuneOptions
from .train import TrainJob, train

Document = str | bytes | Sequence[str]


@dataclass(frozen=True)
class _Options(FeatureOptions, ClassifyOptions):
    pass


@parameters(
    _Options,
    last={"class_weight": None, "tune": None},
    without=("by", "patience", "encoding_errors"),
)
class TextClassifier(ProbabilityMixin, Estimator):
    """A text classifier that works like ``dcme-w2v classify train``.

    Parameters
    ----------
    {options}
    class_weight : dict, "balanced" or None, default None
        Factors of the loss by label; "balanced": all labels have the same total weight. A text of
        several labels has their mean. Not for trees (``objective="tree"``).
    tune : float, bool or None, default None
        Search the settings that are None, for so many seconds at most; True: 60.
    {verbose}

    Attributes
    ----------
    classes_ : ndarray, shape (classes,)
        The labels, sorted.
    model_ : Predictor
        The model: its weights and features.

    Examples
    --------
    >>> from dcme_w2v import TextClassifier
    >>> texts = ["green tea", "black tea", "a red bus", "the bus stops"]
    >>> model = TextClassifier().fit(texts, ["drink", "drink", "traffic", "traffic"])
    >>> model.predict(["a cup of tea"]).tolist()
    ['drink']
    """

    _learned = "model_"
    model_: Predictor

    def fit(self, X: Iterable[Document], y: Iterable[Any]) -> TextClassifier:
        """Learn from texts and their labels.

        Parameters
        ----------
        X : iterable of str, bytes or token lists, such as a list or a Series
        y : iterable, of as many labels, or lists of labels
            Text, integers or booleans. With lists, a text has several labels, none of them with an
            empty list, and is unlabeled with None; `predict` returns lists then.

        Raises
        ------
        ValueError
            There is one class, the numbers of texts and labels differ, or a parameter is not valid.
        KeyboardInterrupt
            While training; `partial` is the `Classifier` so far.
        """
        options, texts = options_of(self), list(as_texts(X))
        given, kind, self._several = _labels_of(y)
        if len(texts) != len(given):
            raise UsageError(f"{len(texts)} texts and {len(given)} labels; give a label for each")
        if not any(given):
            raise UsageError("no text has a label; give texts of two labels or more")
        rows = [
            {"text": text.text.split() if isinstance(text, Tokenized) else text, "label": own}
            for text, own in zip(texts, given, strict=True)
        ]
        docs: Any = (Table("the texts", "text", "label", rows=rows),)
        tune = TuneOptions(SECONDS if self.tune is True else self.tune or None)
        weight = self.class_weight
        if isinstance(weight, Mapping):
            own = kind_of_labels(weight)
            weight = {name_of_label(label, own): factor for label, factor in weight.items()}
        job = TrainJob(docs, output="", tune=tune, class_weight=weight)
        parts = part_of(options, FeatureOptions), part_of(options, ClassifyOptions)
        model = train(job, *parts, progress=self._progress)
        self._take(replace(model, label_kind=kind))
        return self

    def predict_log_proba(self, X: Iterable[Document]) -> F64:
        """Return the log-probabilities of `classes_`, shape (texts, classes)."""
        return self.model_.predict_log_proba(X, self.threads)

    def decision_function(self, X: Iterable[Document]) -> F64:
        """Return the scores of `classes_`, shape (texts, classes); the highest is predicted.

        Of two classes, one a text, the difference of their scores, shape (texts,).
        """
        return self.model_.decision_function(X, self.threads)

    def predict_top(
        self, X: Iterable[Document], topn: int = 1, min_probability: float | None = None
    ) -> list[list[tuple[Any, float]]]:
        """Return the most probable labels of each text, with their probabilities.

        Parameters
        ----------
        X : iterable of str, bytes or token lists
        topn : int
            Number of labels; 0: those whose probability is at least the model's threshold.
        min_probability : float, optional
            Only labels of at least this probability, perhaps none.
        """
        return self.model_.predict_top(X, topn, min_probability, self.threads)

    def predict(self, X: Iterable[Document], *, min_probability: float | None = None) -> Any:
        """Return the most probable label of each text, shape (texts,).

        After `fit` with lists of labels, lists: of the labels whose probability is at least the
        model's threshold, and the most probable one.

        Parameters
        ----------
        X : iterable of str, bytes or token lists
        min_probability : float, optional
            Give only labels of at least this probability, and None, or an empty list, where there
            are none.
        """
        return self.model_.predict(
            X, min_probability=min_probability, threads=self.threads, several=self._several
        )

    def explain(self, text: Document | None = None, label: Any = None, count: int = 20) -> Any:
        """Return the features of a text that favor a label over the second best one.

        Parameters
        ----------
        text : str, bytes or token list, optional
            Without it, the features of the highest weights of the label are returned.
        label : optional
            A label (default: the most probable one of the text).
        count : int
            Number of features.
        """
        return self.model_.explain(text, label, count)

    def score(self, X: Iterable[Document], y: Iterable[Any], sample_weight: Any = None) -> float:
        """Return the accuracy, or the micro F1 if texts have several labels."""
        if not self._several:
            return float(super().score(X, y, sample_weight))
        pairs = [({*a}, {*b}) for a, b in zip(self.predict(X), y, strict=True)]
        right = sum(len(found & wanted) for found, wanted in pairs)
        return 2 * right / max(sum(len(found) + len(wanted) for found, wanted in pairs), 1)

    def save(self, path: PathLike) -> None:
        """Write the model's file, which ``dcme-w2v classify`` and `dw.load` read."""
        guard((WRITES, "path", path))
        self.model_.save(path)  # type: ignore[attr-defined]

    @classmethod
    def load(cls, path: PathLike) -> TextClassifier:
        """Load a classifier from a file, as `dw.load` does.

        Raises
        ------
        UsageError
            The model classifies vectors, or tokens of sentences.
        FormatError
            It is no classifier, or is corrupt.
        """
        model = load_artifact(path, OF_CLASSES)
        if not model.is_of_texts:
            raise UsageError(f"{path}: this model does not classify texts; use dw.load")
        return cls.of(model)

    @classmethod
    def of(cls, model: Predictor) -> TextClassifier:
        """Return the classifier that consists of a trained model, with its parameters."""
        self = cls(**_parameters_of(model))
        self._several = model.multilabel
        self._take(model)
        return self

    def _take(self, model: Predictor) -> None:
        """Store the fitted model and its attributes."""
        self.model_, self.classes_ = model, sealed(model.classes_)

    def __sklearn_tags__(self) -> Any:
        return tags_of_texts(super().__sklearn_tags__())


def _parameters_of(model: Predictor) -> dict[str, Any]:
    """Return the parameters with which a model was trained, as far as it records them."""
    known = TextClassifier._declared[1]
    found: dict[str, Any] = {"class_weight": model.record.get("class_weight")}
    for options in (model.options, model.text.options if model.text else None):
        if isinstance(options, ClassifyOptions | FeatureOptions):
            values = asdict(options)
            found |= {known[name]: value for name, value in values.items() if name in known}
    return found


def _labels_of(y: Any) -> tuple[list[list[str] | None], str, bool]:
    """Return each text's label names (None: unlabeled), their type, and whether y has lists."""
    if getattr(y, "ndim", 1) != 1:
        raise UsageError("y has several columns; give a list of labels for each text")
    labels = y.tolist() if hasattr(y, "tolist") else list(y)
    several = any(isinstance(one, list | tuple | set | np.ndarray) for one in labels)
    if not several:
        check_all_labeled(labels)
    sets = [one if several and not isinstance(one, str) else [one] for one in labels]
    flat = [label for own in sets for label in (own if own is not None else ())]
    kind, known = kind_of_labels(flat), dict[str, Any]()
    for label in flat:
        name = name_of_label(label, kind)
        if known.setdefault(name, label) != label:
            raise UsageError(f"the label {label!r} has the same text as another label; rename one")
    if not several and (joined := [name for name in known if "|" in name]):
        warn(f"the label {joined[0]!r} is one label; give lists of labels where a text has several")
    given = [None if own is None else [name_of_label(one, kind) for one in own] for own in sets]
    return given, kind, several

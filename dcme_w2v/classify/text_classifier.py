"""`TextClassifier`: the classifier of ``classify train`` with scikit-learn's conventions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dcme_w2v.declarations import part_of
from dcme_w2v.errors import UsageError, warn
from dcme_w2v.files.paths import WRITES, guard
from dcme_w2v.formats.columns import Table
from dcme_w2v.formats.texts import Tokenized, as_texts
from dcme_w2v.numeric.arrays import F64
from dcme_w2v.numeric.sklearn_base import (
    Estimator,
    check_all_labeled,
    options_of,
    parameters,
    tags_of_texts,
)
from dcme_w2v.platform import PathLike

from .mixins import ProbabilityMixin
from .model import Explanation, Predictor, load_classifier
from .options import SECONDS, ClassifyOptions, FeatureOptions, TuneOptions
from .predict import is_by_token
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
    """A classifier of texts: features, learner and choices of ``dcme-w2v classify train``.

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
        The model, as `dw.load` returns one from a file.

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
            With lists, a text has several labels, and `predict` returns lists.

        Raises
        ------
        ValueError
            There is one class, the numbers of texts and labels differ, or a parameter is not valid.
        KeyboardInterrupt
            While training; `partial` is the `Classifier` so far.
        """
        options, texts = options_of(self), list(as_texts(X))
        given, known, self._several = _labels_of(y)
        if len(texts) != len(given):
            raise UsageError(f"{len(texts)} texts and {len(given)} labels; give a label for each")
        if not any(given):
            raise UsageError("no text has a label; give texts of two labels or more")
        rows = [
            {"text": text.text.split(b" ") if isinstance(text, Tokenized) else text, "label": own}
            for text, own in zip(texts, given, strict=True)
        ]
        docs: Any = (Table("the texts", "text", "label", rows=rows),)
        tune = TuneOptions(SECONDS if self.tune is True else self.tune or None)
        weight = self.class_weight
        if isinstance(weight, Mapping):
            weight = {_named(label, {}): factor for label, factor in weight.items()}
        job = TrainJob(docs, output="", tune=tune, class_weight=weight)
        parts = part_of(options, FeatureOptions), part_of(options, ClassifyOptions)
        self._take(train(job, *parts, progress=self._progress), known)
        return self

    def predict_log_proba(self, X: Iterable[Document]) -> F64:
        """Return the log-probabilities of `classes_`, shape (texts, classes)."""
        parts = self.model_.log_probabilities(self.model_.rows(list(as_texts(X))), self.threads)
        return np.concatenate([np.empty((0, len(self.classes_))), *parts])[:, self._columns]

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
        if not self._several and min_probability is None:
            return super().predict(X)
        count = 0 if self.model_.multilabel else 1
        answers = [
            [self._labels[name] for name, _ in found]
            for found in self.model_.predict_top(X, count, min_probability, self.threads)
        ]
        if self._several:
            return answers
        return np.array([one[0] if one else None for one in answers], dtype=object)

    def explain(self, text: Document, label: Any = None, count: int = 20) -> Explanation:
        """Return what features of a text contribute to the score of a label, minus another one's.

        Parameters
        ----------
        text : str, bytes or token list
        label : optional
            A label (default: the most probable one).
        count : int
            Number of features.
        """
        name = None if label is None else _named(label, {})
        found = self.model_.explain(name, count, text)
        found.label, found.against = (self._labels[one] for one in (found.label, found.against))
        return found

    def score(self, X: Iterable[Document], y: Iterable[Any], sample_weight: Any = None) -> float:
        """Return the accuracy; the micro F1 where texts have several labels."""
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
        """Return the classifier in a file, as ``dcme-w2v classify train`` writes one.

        Raises
        ------
        UsageError
            The model classifies vectors, or tokens of sentences.
        FormatError
            It is no classifier, or is corrupt.
        """
        model = load_classifier(path)
        if model.text is None or is_by_token(model):
            raise UsageError(f"{path}: does not classify texts; use dw.load")
        self = cls()
        self._several = model.multilabel
        self._take(model, {name: name for name in model.classes})
        return self

    def _take(self, model: Predictor, known: dict[str, Any]) -> None:
        """Set what `fit` learns; `known` has the label of each name."""
        self._labels = {name: known[name] for name in model.classes}
        self.classes_, self._columns = np.unique(list(self._labels.values()), return_index=True)
        self.model_ = model

    def __sklearn_tags__(self) -> Any:
        return tags_of_texts(super().__sklearn_tags__())


def _labels_of(y: Any) -> tuple[list[list[str]], dict[str, Any], bool]:
    """Return the names of each text's labels, the label of each name, and if y has lists."""
    if getattr(y, "ndim", 1) != 1:
        raise UsageError("y has several columns; give a list of labels for each text")
    labels = y.tolist() if hasattr(y, "tolist") else list(y)
    several = any(isinstance(one, list | tuple | set | np.ndarray) for one in labels)
    if not several:
        check_all_labeled(labels)
    known: dict[str, Any] = {}
    given = [
        [_named(label, known) for label in ([one] if isinstance(one, str) or not several else one)]
        for one in labels
    ]
    if not several and (joined := [name for name in known if "|" in name]):
        warn(f"the label {joined[0]!r} is one label; give lists of labels where a text has several")
    return given, known, several


def _named(label: Any, known: dict[str, Any]) -> str:
    """Return the name of a label in files, and keep the label."""
    whole = isinstance(label, float) and label.is_integer()
    name = " ".join(str(int(label) if whole else label).split())
    if not name or known.setdefault(name, label) != label:
        raise UsageError(f"the label {label!r} is empty, or the same text as another one")
    return name

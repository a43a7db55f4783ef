"""`TextClassifier`: ``classify train`` as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dcme_w2v.declarations import part_of
from dcme_w2v.errors import FormatError, UsageError, warn
from dcme_w2v.files.paths import WRITES, guard
from dcme_w2v.formats.artifact import OF_CLASSES, load_artifact
from dcme_w2v.formats.columns import Table
from dcme_w2v.formats.texts import Tokenized, is_null, told_texts
from dcme_w2v.numeric.arrays import F32, F64, sealed
from dcme_w2v.numeric.estimators import (
    ProtocolEstimator,
    check_all_labeled,
    check_weights,
    options_of,
    parameters,
    tags_of_texts,
)
from dcme_w2v.numeric.sparse_rows import as_matrix, is_sparse
from dcme_w2v.platform import PathLike

from .calibration import NEVER
from .indicator import Indicator, indicator_of, label_sets
from .labeled import kind_of_labels, name_of_label
from .model import Classifier, Predictor
from .options import SECONDS, ClassifyOptions, ContinueOptions, FeatureOptions, TuneOptions
from .trainer import Weights

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

Document = str | bytes | Sequence[str]


@dataclass(frozen=True)
class _Options(FeatureOptions, ClassifyOptions):
    pass


@parameters(
    _Options,
    last={"class_weight": None, "tune": None, "init": None, "fade": 0.0},
    without=("by", "patience", "encoding_errors"),
)
class TextClassifier(ProtocolEstimator):
    """A scikit-learn text classifier that works like ``dcme-w2v classify train``.

    Parameters
    ----------
    {options}
    class_weight : dict, "balanced" or None, default None
        Weight of the loss for each label; "balanced" gives all labels the same total weight. A text
        with several labels gets the mean weight of its labels. Not supported with label trees
        (``objective="tree"``).
    tune : float, bool or None, default None
        Time limit, in seconds, for a search for the best values of settings that are None; True
        means 60. With False, `fit` is fastest, because it skips all comparisons, the calibration of
        probabilities and the compression of the weights.
    init : path, TextClassifier or None, default None
        A trained classifier whose training `fit` continues. The new texts may contain new labels
        and words.
    fade : float, default 0.0
        Fraction, from 0 to 1, by which `partial_fit` and `init` reduce the earlier weights and
        document counts, so that labels and words that no longer occur lose influence.
    {verbose}

    Attributes
    ----------
    classes_ : ndarray, shape (classes,)
        The labels, sorted; the columns of an indicator matrix.
    coef_ : ndarray of float32, shape (classes, features), or (1, features) of two classes
        Weights; if each text has one of two classes, the weights of the second class minus the
        weights of the first class.
    intercept_ : ndarray of float32, shape (classes,), or (1,)
        Biases; ``transform(X) @ coef_.T + intercept_`` equals the `decision_function`.
    model_ : Predictor
        The trained model, with its weights and features.

    Examples
    --------
    >>> from dcme_w2v import TextClassifier
    >>> texts = ["green tea", "black tea", "a red bus", "the bus stops"]
    >>> model = TextClassifier().fit(texts, ["drink", "drink", "traffic", "traffic"])
    >>> model.predict(["a cup of tea"]).tolist()
    ['drink']
    """

    _learned = "model_"
    _indicator: Indicator | None = None
    model_: Predictor

    def fit(
        self, X: Iterable[Document], y: Any, sample_weight: ArrayLike | None = None
    ) -> TextClassifier:
        """Fit the classifier to texts and their labels.

        Parameters
        ----------
        X : iterable of str, bytes or token lists, such as a list or a Series
        y : iterable, of as many labels, or lists of labels; or matrix, shape (texts, labels)
            Labels are text, integers or booleans. If y has lists of labels, a text may have several
            labels. An empty list means that no label applies to the text, and None means that the
            text is unlabeled. `predict` then returns lists. If y is a dense or sparse indicator
            matrix, `predict` also returns an indicator matrix.
        sample_weight : array, shape (texts,), optional
            Weights of the texts, of which only the proportions matter: a text with weight 2 counts
            as two texts in features, training, the choice of settings and calibration; a text with
            weight 0 is left out. Minimum numbers of texts, such as `min_df`, ignore the weights.

        Raises
        ------
        ValueError
            There is one class, the numbers of texts and labels differ, or a parameter is not valid.
        KeyboardInterrupt
            Interrupted while training; its attribute `partial` is the `Classifier` so far.
        """
        return self._learn(X, y, sample_weight, self.init, self.tune)

    def partial_fit(
        self,
        X: Iterable[Document],
        y: Any,
        classes: Any = None,
        sample_weight: ArrayLike | None = None,
    ) -> TextClassifier:
        """Continue training on more texts; the first call is equivalent to `fit`.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`; y must have the same form as in the first call. Labels and words may be
            new.
        classes : ignored
            Accepted because other scikit-learn estimators require all labels in the first call.
        """
        if not self.__sklearn_is_fitted__():
            return self._learn(X, y, sample_weight, self.init, self.tune)
        return self._learn(X, y, sample_weight, self, None)

    def _learn(
        self, X: Iterable[Document], y: Any, sample_weight: ArrayLike | None, init: Any, tune: Any
    ) -> TextClassifier:
        """Train a model, starting from another model if one is given."""
        from .train import TrainJob, train

        options, texts, own = options_of(self), told_texts(X), init
        init = init.model_ if isinstance(init, TextClassifier) else init
        known = _parameters_of(init) if own is self else {}
        given, kind, several, indicator = _labels_of(y, len(texts))
        if own is self and (several, indicator) != (self._several, self._indicator):
            raise UsageError(
                "y has a different form than in the first call; in all calls, pass either single "
                "labels, lists of labels, or an indicator matrix"
            )
        self._several, self._indicator = several, indicator
        if len(texts) != len(given):
            raise UsageError(
                f"there are {len(texts)} texts, but {len(given)} labels; pass one label per text"
            )
        if not any(given):
            raise UsageError("no text has a label; use texts with at least two different labels")
        weights = check_weights(sample_weight, len(texts))
        rows = [
            {
                "text": text.text.split() if isinstance(text, Tokenized) else text,
                "label": own,
                "weight": weight,
            }
            for text, own, weight in zip(texts, given, weights.tolist(), strict=True)
            if own is not None
        ]
        keep = () if sample_weight is None else "weight"
        docs: Any = (Table("the texts", "text", "label", keep, rows=rows),)
        seconds = SECONDS if tune is True else 0 if tune is False else tune
        weight = self.class_weight
        if isinstance(weight, Mapping):
            named = kind_of_labels(weight)
            weight = {name_of_label(label, named): factor for label, factor in weight.items()}
        job = TrainJob(
            docs, output="", tune=TuneOptions(seconds), class_weight=weight, init=init,
            fade=ContinueOptions(self.fade).fade, label_kind=kind,
        )  # fmt: skip
        parts = part_of(options, FeatureOptions), part_of(options, ClassifyOptions)
        model = train(job, *parts, progress=self._progress)
        if several:
            model.record[LISTS] = True
        if indicator is not None:
            absent = {*range(indicator.columns)}.difference(model.classes_.tolist())
            model.record[INDICATOR] = [indicator.is_sparse, indicator.dtype.str, sorted(absent)]
        # Parameters that still have the values of the loaded model get the values of the new model.
        same = [name for name, value in known.items() if getattr(self, name) == value]
        changed = _parameters_of(model)
        self.set_params(**{name: changed[name] for name in same})
        self._take(model)
        return self

    def transform(self, X: Iterable[Document]) -> csr_matrix:
        """Return the features of texts as a sparse float32 matrix, shape (texts, features)."""
        return as_matrix(self.model_.align_features(self.model_.rows_of(X)))

    def fit_transform(self, X: Iterable[Document], y: Any, **fit_params: Any) -> csr_matrix:
        """Fit the classifier to texts and their labels, and return the features of the texts."""
        return self.fit(X, y, **fit_params).transform(X)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the word or n-gram that each column of `transform` counts."""
        names = map(self.model_.feature_name, range(self.model_.features))
        return np.array(list(names), dtype=object)

    @property
    def coef_(self) -> F32:
        """Feature weights of each class."""
        return self._linear()[:-1].T

    @property
    def intercept_(self) -> F32:
        """Bias of each class."""
        return self._linear()[-1]

    def _linear(self) -> F32:
        """Return the classes' weights and biases or, for two classes, their differences."""
        weights = self.model_.weights if isinstance(self.model_, Classifier) else None
        if not isinstance(weights, Weights):
            raise AttributeError(
                "coef_ and intercept_ are not available, because this model has no single weight "
                "table; train a linear model"
            )
        labels, table = self.model_.labels, weights.get()
        table[-1] = table[-1] * weights.bias + weights.offset
        table = table[:, sorted(range(len(labels)), key=labels.__getitem__)]
        is_binary = table.shape[1] == 2 and not self.model_.multilabel
        return table[:, 1:] - table[:, :1] if is_binary else self._columns(table, 0)

    def _columns(self, found: Any, absent: float) -> Any:
        """Add a column for each label that training did not see, filled with the value `absent`."""
        if self._indicator is None or found.shape[1] == len(self.classes_):
            return found
        whole = np.full((len(found), len(self.classes_)), absent, dtype=found.dtype)
        whole[:, self.model_.classes_] = found
        return whole

    def predict_log_proba(self, X: Iterable[Document]) -> F64:
        """Return the logarithms of the probabilities that `predict_proba` returns."""
        return self._columns(self.model_.predict_log_proba(X, self.threads), NEVER)

    def predict_proba(self, X: Iterable[Document]) -> F64:
        """Return each text's probability of every class in `classes_`, shape (texts, classes).

        Each row sums to 1.
        """
        return np.exp(self.predict_log_proba(X))

    def decision_function(self, X: Iterable[Document]) -> F64:
        """Return each text's score for every class in `classes_`, shape (texts, classes).

        If each text has one of two classes, the result is the difference of their scores, shape
        (texts,).
        """
        return self._columns(self.model_.decision_function(X, self.threads), NEVER)

    def predict_top(
        self, X: Iterable[Document], topn: int = 1, min_probability: float | None = None
    ) -> list[list[tuple[Any, float]]]:
        """Return the most probable labels of each text, with their probabilities.

        Parameters
        ----------
        X : iterable of str, bytes or token lists
        topn : int
            Number of labels. If 0, return all labels whose probability is at least the model's
            threshold.
        min_probability : float, optional
            Return only labels with at least this probability; a list can be empty.
        """
        return self.model_.predict_top(X, topn, min_probability, self.threads)

    def predict(self, X: Iterable[Document], *, min_probability: float | None = None) -> Any:
        """Return the most probable label of each text, shape (texts,).

        After `fit` with lists of labels, the result has lists: the most probable label, and all
        labels whose probability is at least the model's threshold.

        Parameters
        ----------
        X : iterable of str, bytes or token lists
        min_probability : float, optional
            Give only labels of at least this probability, and None, or an empty list, where there
            are none.
        """
        answers = self.model_.predict(
            X, min_probability=min_probability, threads=self.threads, several=self._several
        )
        return answers if self._indicator is None else indicator_of(answers, *self._indicator)

    def explain(self, text: Document | None = None, label: Any = None, count: int = 20) -> Any:
        """Return the features of a text that favor a label over the most probable other label.

        Parameters
        ----------
        text : str, bytes or token list, optional
            The text to explain. Without it, the features with the highest weights for the label are
            returned.
        label : optional
            A label (default: the most probable one of the text).
        count : int
            Number of features.
        """
        return self.model_.explain(text, label, count)

    def score(self, X: Iterable[Document], y: Iterable[Any], sample_weight: Any = None) -> float:
        """Return the accuracy, or the micro F1 if each text has a list of labels."""
        if not self._several or self._indicator is not None:
            found = self.predict(X)
            if self._indicator is None:
                return float(np.average(found == np.asarray(y), weights=sample_weight))
            from sklearn.metrics import accuracy_score

            return float(accuracy_score(y, found, sample_weight=sample_weight))
        pairs = [({*a}, {*b}) for a, b in zip(self.predict(X), y, strict=True)]
        weights = check_weights(sample_weight, len(pairs))
        right = weights @ [len(found & wanted) for found, wanted in pairs]
        both = weights @ [len(found) + len(wanted) for found, wanted in pairs]
        return float(2 * right / (both or 1.0))

    def save(self, path: PathLike) -> None:
        """Write the classifier to a model file for ``dcme-w2v classify`` and `dw.load`."""
        guard((WRITES, "path", path))
        self.model_.save(path)  # type: ignore[attr-defined]

    @classmethod
    def load(cls, path: PathLike) -> TextClassifier:
        """Load a classifier from a file, as `dw.load` does.

        Raises
        ------
        UsageError
            The model classifies vectors or tokens, not texts.
        FormatError
            The file is not a classifier, or is corrupt.
        """
        model = load_artifact(path, OF_CLASSES)
        if not model.is_of_texts:
            raise UsageError(f"{path}: this model does not classify texts; open it with dw.load")
        return cls.of(model)

    @classmethod
    def of(cls, model: Predictor) -> TextClassifier:
        """Create an estimator from a trained model and the parameters of its training."""
        self = cls(**_parameters_of(model))
        self._indicator = _recorded_indicator(model)
        several = model.multilabel or bool(model.record.get(LISTS))
        self._several = several or self._indicator is not None
        self._take(model)
        return self

    def _take(self, model: Predictor) -> None:
        """Store a fitted model in the estimator's attributes."""
        classes = model.classes_ if self._indicator is None else np.arange(self._indicator.columns)
        self.model_, self.classes_ = model, sealed(classes)

    def __sklearn_tags__(self) -> Any:
        tags = tags_of_texts(super().__sklearn_tags__())
        tags.transformer_tags.preserves_dtype = []  # `transform` always returns float32
        tags.classifier_tags.multi_label = True
        return tags


def _parameters_of(model: Predictor) -> dict[str, Any]:
    """Return the parameters with which a model was trained, if the model records them."""
    known = TextClassifier._declared[1]
    found: dict[str, Any] = {"class_weight": model.record.get("class_weight")}
    for options in (model.options, model.text.options if model.text else None):
        if isinstance(options, ClassifyOptions | FeatureOptions):
            values = asdict(options)
            found |= {known[name]: value for name, value in values.items() if name in known}
    return found


def _recorded_indicator(model: Predictor) -> Indicator | None:
    """Return the format of the indicator matrix to which a model was fitted, or None."""
    if INDICATOR not in model.record:
        return None
    try:
        is_sparse, kind, absent = model.record[INDICATOR]
        form = Indicator(bool(is_sparse), len(absent) + len(model.classes), np.dtype(kind))
        if form.dtype.kind in "biuf" and {*absent, *model.classes_.tolist()} == {
            *range(form.columns)
        }:
            return form
    except (TypeError, ValueError):
        pass
    raise FormatError(
        f"the recorded indicator matrix ({INDICATOR}) does not match the model's classes; train "
        "the model again"
    )


_LISTS = (list, tuple, set, frozenset, np.ndarray)
# Model-record key that is true if predictions are lists of labels, because y contained lists.
LISTS = "label_lists"
# Model-record key for the sparsity, dtype and empty columns of an indicator matrix y.
INDICATOR = "label_indicator"


def _labels_of(y: Any, texts: int) -> tuple[list[list[str] | None], str, bool, Indicator | None]:
    """Return each text's label names (None if unlabeled), the label type, and the format of y.

    The format consists of two values: whether y has several labels per text, and a description of
    the indicator matrix if y is one, otherwise None.
    """
    shape: tuple[int, ...] = getattr(y, "shape", ())
    if is_sparse(y) or (len(shape) == 2 and shape[1] != 1):
        sets, columns = label_sets(y, texts)
        dtype = getattr(y, "dtype", None)
        form = Indicator(is_sparse(y), columns, np.dtype(np.int64 if dtype is None else dtype))
        return [[str(one) for one in own] for own in sets], "integer", True, form
    y = np.asarray(y)[:, 0] if len(shape) == 2 else y
    if len(shape) > 2:
        raise UsageError(
            "y has more than two dimensions; pass one label or one list of labels per text"
        )
    if (
        isinstance(y, str | bytes | Mapping)
        or not isinstance(y, Iterable)
        or getattr(y, "ndim", 1) == 0
    ):
        raise UsageError(f"y={y!r:.40} must contain one label per text; pass a list of labels")
    labels = y.tolist() if hasattr(y, "tolist") else list(y)
    several = any(isinstance(one, _LISTS) for one in labels)
    if not several:
        check_all_labeled(labels)
    labels = [None if several and is_null(one) else one for one in labels]
    if several and (single := [x for x in labels if not isinstance(x, (*_LISTS, str, type(None)))]):
        raise UsageError(
            f"y contains both lists of labels and {single[0]!r:.40}; pass a list for every text, "
            "or None for an unlabeled text"
        )
    lists = [one if several and not isinstance(one, str) else [one] for one in labels]
    flat = [label for own in lists for label in (own if own is not None else ())]
    kind, known = kind_of_labels(flat), dict[str, Any]()
    for label in flat:
        name = name_of_label(label, kind)
        if known.setdefault(name, label) != label:
            raise UsageError(
                f"in files, the label {label!r} would have the same spelling as another label; "
                "rename one of the two labels"
            )
        if kind == "text" and name != label:
            raise UsageError(
                f"the label {label!r:.80} would become {name!r:.80} in files; rename the label"
            )
    if not several and (joined := [name for name in known if "|" in name]):
        warn(
            f"{joined[0]!r} counts as a single label; if a text has several labels, pass them as "
            "a list"
        )
    given = [None if own is None else [name_of_label(one, kind) for one in own] for own in lists]
    return given, kind, several, None

"""`MaxentClassifier`: a scikit-learn classifier for sparse or dense rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_matrix, issparse, vstack

from dcme_w2v._core.models import SparseRows
from dcme_w2v.declarations import threads_of
from dcme_w2v.errors import UsageError
from dcme_w2v.numeric.arrays import F64, I64
from dcme_w2v.numeric.sklearn_base import (
    Estimator,
    check_all_labeled,
    check_features,
    check_training,
    check_weights,
    options_of,
    parameters,
)
from dcme_w2v.options import CheckpointOptions
from dcme_w2v.training.progress import Reporter, reporting_to

from .calibration import PLAIN, Calibrated, calibration_data, calibration_on
from .choose import MIN_COMPARED, OutOfFold, Problem, choose
from .constants import SMALL
from .fit import Fit, Labeled, RemoteTraining, class_weights
from .metrics import Calibration, calibrated, check_scores
from .mixins import LinearMixin, check_classes
from .options import (
    SECONDS,
    ClassifyOptions,
    TuneOptions,
    is_hinge_possible,
    resolved,
)
from .resources import resource_estimate
from .solver import is_dense
from .trainer import (
    ClassifierTrainer,
    Scorer,
    Weights,
    documents_at_once,
    resized,
    warn_of_short_rows,
)

MAX_LABELS = 2**31 - 2  # the core has numbers of 32 bits; one class is for rows without a label


def is_indicator(y: Any) -> bool:
    """Return whether labels are a sparse matrix, or have several columns."""
    try:
        return issparse(y) or np.asarray(y).shape[1:] > (1,)
    except ValueError:  # rows of different lengths
        raise UsageError(
            "y has lists of labels; give MultiLabelBinarizer().fit_transform(y)"
        ) from None


def label_sets(y: Any, rows: int) -> tuple[list[list[int]], int]:
    """Return the labels of each row of an indicator matrix, and their number.

    Raises
    ------
    UsageError
        The matrix has other entries than 0 and 1, one column, or not `rows` rows.
    """
    try:
        found = csr_matrix(y)
    except (TypeError, ValueError):
        raise UsageError("y has several columns, but not of numbers; give 0 and 1") from None
    if found.shape[0] != rows:
        raise UsageError(f"{rows} rows of X and {found.shape[0]} of y; give one row of y for each")
    if not 2 <= found.shape[1] <= MAX_LABELS:
        raise UsageError(f"y is a sparse matrix of {found.shape[1]} columns; give a column a label")
    found.sum_duplicates()
    if wrong := [one for one in set(found.data.tolist()) if one not in (0, 1)]:
        raise UsageError(f"y has the entry {wrong[0]!r}: an indicator matrix has 0 and 1")
    found.eliminate_zeros()
    return [part.tolist() for part in np.split(found.indices, found.indptr[1:-1])], found.shape[1]


def is_small(given: ClassifyOptions, matrix: csr_matrix, classes: int) -> bool:
    """Return whether L-BFGS reaches the optimum as fast, and no option of another solver is set.

    Few documents of text have more words than documents; the hinge loss is better on them.
    """
    own = (given.solver, given.loss, given.lr, given.min_lr, given.epochs, given.batch)
    is_short = (matrix.shape[1] + 1) * classes <= SMALL[0] and matrix.nnz * classes <= SMALL[1]
    is_short = is_short and (matrix.shape[1] < matrix.shape[0] or is_dense(matrix))
    return is_short and is_hinge_possible(given) and not any(one is not None for one in own)


@parameters(
    ClassifyOptions,
    last={
        "class_weight": None,
        "tune": None,
        "cluster": None,
        "shards": None,
        "distribute": "mixture",
    },
    without=("patience",),
)
class MaxentClassifier(LinearMixin, Estimator):
    """Multinomial logistic regression over many classes (Wang, Wang & Zhai, AAAI 2017).

    Parameters
    ----------
    {options}
    class_weight : dict, "balanced" or None, default None
        Weights of the classes, multiplied with `sample_weight`; "balanced" gives all classes the
        same total weight. A row of several labels has the mean weight of these.
    tune : float, bool or None, default None
        Of `fit`: choose loss, learning rate, epochs and L2 regularisation, as far as they are
        None, on rows held out, for so many seconds at most; True: 60. Needs 10 rows.
    cluster : str or None, default None
        Of `fit`: train on the workers of this address: ``"local:4"``, ``"tcp://HOST:PORT"``,
        ``"tls://HOST:PORT"`` or a scheduler file of Dask.
    shards : int or None, default None
        Parts of the rows, trained separately on the cluster (default: the workers at the start).
    distribute : {"mixture", "vote", "gradient", "iterate"}, default "mixture"
        Method on the cluster; see ``dcme-w2v classify train --distribute``.
    {verbose}

    Attributes
    ----------
    classes_ : ndarray, shape (classes,)
        The labels, sorted; the columns of an indicator matrix.
    threshold_ : float
        Of `fit` with an indicator matrix: labels with at least this probability are predicted. It
        has the best micro F1 on rows left out.
    coef_ : ndarray of float32, shape (classes, features)
        Weights; also with two classes one row per class.
    intercept_ : ndarray of float32, shape (classes,)
        Biases.
    n_features_in_ : int
        Number of features seen by `fit`.
    feature_names_in_ : ndarray of str, shape (features,)
        Names of the columns of a DataFrame.
    n_iter_ : int
        Epochs, or iterations of L-BFGS; one per call of `partial_fit`.
    objective_ : str
        The objective in use: with `objective="auto"`, the one that was chosen.
    loss_ : str
        Of `fit`: the loss in use.
    lr_ : float
        Of `fit`: the initial learning rate in use. The default is as for the parameter `lr`, or
        lower, if held-out rows are predicted better.
    tuned_ : dict
        Of `fit` with `tune`: the parameters that were chosen.
    epochs_ : list of dict
        Of `fit`: each epoch's `epoch`, `seconds`, `loss` and `lr`.

    Notes
    -----
    The objective is the mean of -log p(y | x), weighted by `sample_weight`, plus l2 / 2 times the
    squared weights without the biases. Where features, classes and rows are few (a product of
    features and classes up to 65,536), and neither `solver` nor an option of ``solver="sgd"`` is
    set, `fit` uses L-BFGS, which reaches the optimum; folds choose `l2` from 1e-6 to 0.1, by the
    likelihood, where there are 50 rows, two a class, and none is given. The default learning rates
    are for rows of unit length and are divided by the mean squared length of the rows; if lengths
    differ much, by the median, and steps of longer rows are bounded. Up to 2^33 products of a value
    and a weight, one thread trains, and the same `random_state` gives the same bits with any
    `threads`. Longer trainings with several threads update the weights without locks, and differ
    slightly between runs; ``threads=1`` and ``solver="lbfgs"`` do not.

    Examples
    --------
    >>> from dcme_w2v import MaxentClassifier
    >>> X = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.2, 0.8]]
    >>> y = ["tea", "tea", "bus", "bus"]
    >>> model = MaxentClassifier(solver="lbfgs").fit(X, y)
    >>> model.predict([[0.7, 0.1]]).tolist()
    ['tea']
    >>> model.predict_proba([[0.7, 0.1]]).shape
    (1, 2)
    """

    _learned = "_weights"
    _weights: Scorer
    _indicator: tuple[bool, Any] | None = None  # whether y was sparse, its type
    _calibration: Calibration | None = None

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> MaxentClassifier:
        """Fit to rows and their labels.

        Parameters
        ----------
        X : sparse or dense matrix, shape (rows, features)
            Finite numbers, converted to float32.
        y : array, shape (rows,), or dense or sparse matrix, shape (rows, labels)
            One label per row; or an indicator matrix, 1 for each label of a row and 0 for the
            others. A row may have no label.
        sample_weight : array, shape (rows,), optional
            Weights of the rows: 2 is equivalent to two copies of the row, 0 to none (but copies
            change which rows are held out, where these choose settings). With L-BFGS
            the weights are part of the objective, otherwise they multiply the learning rate of the
            row.

        Raises
        ------
        ValueError
            The rows are not finite, the numbers of rows and labels differ, there is only one class,
            a parameter is not valid, or an indicator matrix has other entries than 0 and 1.
        KeyboardInterrupt
            While the weights are trained; `partial` is this classifier with the weights so far.
        """
        with reporting_to(self._progress) as reporter:
            learn = self._fit_sets if is_indicator(y) else self._fit_labels
            return learn(X, y, sample_weight, reporter)

    def _fit_labels(
        self, X: Any, y: Any, sample_weight: ArrayLike | None, reporter: Reporter
    ) -> MaxentClassifier:
        """Fit to rows and one label of each."""
        check_all_labeled(y)
        matrix, labels = check_training(self, X, y, reset=True)
        self.classes_, numbers = np.unique(labels, return_inverse=True)
        check_classes(self.classes_)
        given, remote = options_of(self), self._remote_training()
        warn_of_short_rows(matrix, given.bias)
        if remote is not None:
            given = remote.prepare(given, CheckpointOptions())
        elif not self.tune and is_small(given, matrix, len(self.classes_)):
            given = replace(given, solver="lbfgs")
        data = self._weighted(matrix, numbers[:, None].tolist(), sample_weight)
        options, scores = self._options_for(data, given, remote is not None, reporter)
        self._indicator = self._calibration = None
        by = self._learn(data, len(self.classes_), options, scores, reporter, remote=remote)
        self._calibration = None if by is None else by.by
        return self

    def _options_for(
        self, data: Labeled, given: ClassifyOptions, is_remote: bool, reporter: Reporter
    ) -> tuple[ClassifyOptions, OutOfFold | None]:
        """Return the options of the training, and scores of the rows that chose them."""
        classes, seconds = len(self.classes_), _seconds_of(self.tune)
        options = resolved(given, classes)
        if options.objective == "tree":
            raise UsageError('objective="tree": is only for files; see dcme-w2v classify train')
        if is_remote:
            if seconds is not None:
                raise UsageError(f"tune={self.tune}: is not supported with cluster; omit one")
            return options, None
        is_path = given.solver == "lbfgs" and seconds is None
        enough = len(data.labels) >= max(MIN_COMPARED, 2 * classes)
        if is_path and (given.solver == self.solver or given.l2 is not None or not enough):
            return options, None  # penalties are chosen where L-BFGS is
        problem = Problem.of(data, classes, given)
        choice = choose(problem, seconds, reporter)
        if choice is None:
            return options, None
        if seconds is not None:
            self.tuned_ = dict(choice.setting)
        return problem.options(choice.setting), choice.scores

    def _sets_of(
        self, X: Any, y: Any, sample_weight: ArrayLike | None, reset: bool
    ) -> tuple[Labeled, int]:
        """Return rows with their columns of an indicator matrix, and how many classes these are.

        Rows without a label have a class of their own, the last one: the core needs a label or
        more.
        """
        given = options_of(self)
        if not is_hinge_possible(given) or given.loss == "softmax":
            raise UsageError(
                'an indicator matrix is learned by loss="hinge"; omit objective, solver and other '
                "losses"
            )
        matrix = check_features(self, X, reset=reset)
        sets, count = label_sets(y, matrix.shape[0])
        if not reset and count != len(self.classes_):
            raise UsageError(f"y has {count} columns, and there are {len(self.classes_)} classes")
        options = resolved(replace(given, loss="hinge"), count, multilabel=True)
        if shortage := resource_estimate(matrix, sets, count, options)["refused"]:
            raise shortage
        self.classes_ = np.arange(count)
        data = self._weighted(matrix, sets, sample_weight)
        own = [one or [count] for one in data.labels]
        self._indicator = (issparse(y), y.dtype if hasattr(y, "dtype") else np.dtype(np.int64))
        return Labeled(data.matrix, own, data.weights), count + any(one == [count] for one in own)

    def _fit_sets(
        self, X: Any, y: Any, sample_weight: ArrayLike | None, reporter: Reporter
    ) -> MaxentClassifier:
        """Fit to rows and an indicator matrix."""
        for name in ("tune", "cluster"):
            if (value := getattr(self, name)) not in (None, False):
                raise UsageError(f"{name}={value}: is not supported with an indicator matrix")
        data, classes = self._sets_of(X, y, sample_weight, reset=True)
        given, count = replace(options_of(self), loss="hinge"), len(self.classes_)
        counts = np.bincount(data.instances()[1], minlength=count)[:count]
        if not counts.any():
            raise UsageError("y has no label: all its entries are 0")
        warn_of_short_rows(data.matrix, given.bias)
        options, scores = resolved(given, count, multilabel=True), None
        if choice := choose(problem := Problem.of(data, classes, given), None, reporter):
            options, scores = problem.options(choice.setting), choice.scores
        found = self._learn(data, classes, options, scores, reporter, counts)
        by = found or Calibrated(by=PLAIN)
        self._weights = resized(self._linear(), count)
        by.adjust(self._weights)
        self._calibration, self.threshold_ = by.by, by.threshold
        return self

    def _learn(
        self,
        data: Labeled,
        classes: int,
        options: ClassifyOptions,
        scores: OutOfFold | None,
        reporter: Reporter,
        counts: I64 | None = None,
        remote: RemoteTraining | None = None,
    ) -> Calibrated | None:
        """Train, and return the calibration of the hinge loss; `counts` are those of sets."""
        left_out = by = None
        several = counts is not None
        if options.loss == "hinge" and remote is None:
            own = (classes, options, reporter, counts, several, scores)
            data, left_out, by = calibration_data(data, *own)
        task = Fit(data, classes, options, multilabel=several, remote=remote)
        try:
            task.train(reporter)
        except KeyboardInterrupt as error:
            error.partial = self  # type: ignore[attr-defined]
            raise
        finally:
            self.objective_, self.loss_, self.lr_ = options.objective, options.loss, options.lr
            self._weights, self.epochs_ = task.scorer, task.records
            self.n_iter_ = len(task.records)
        if left_out is not None:
            by = calibration_on(task.scorer, left_out, options, counts, several)
        return by

    def _remote_training(self) -> RemoteTraining | None:
        """Return the training on `cluster`, which the class of `dcme_w2v.cluster` supports."""
        if self.cluster is not None:
            raise UsageError(f"cluster={self.cluster}: import MaxentClassifier from dcme_w2v")
        return None

    def partial_fit(
        self,
        X: Any,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> MaxentClassifier:
        """Train on a batch of rows for one epoch with the learning rate `lr`.

        Parameters
        ----------
        X, y
            As in `fit`.
        classes : array, optional
            All labels of all calls; required in the first call, except with an indicator matrix.
        sample_weight : array, shape (rows,), optional
            Multiplies the learning rate of each row.
        """
        first, several = not hasattr(self, "_weights"), is_indicator(y)
        if not first and several != (self._indicator is not None):
            raise UsageError(
                "partial_fit: y must be as before: an indicator matrix, or one label per row"
            )
        if self.class_weight == "balanced":
            raise UsageError('class_weight="balanced": is for fit; give partial_fit a dict')
        options = replace(options_of(self), epochs=1, solver="sgd")
        if several:
            data, count = self._sets_of(X, y, sample_weight, reset=first)
            options = replace(options, loss="hinge")
        else:
            data, count = self._labeled(X, y, classes, sample_weight, first)
        if several and classes is not None and not np.array_equal(self.classes_, classes):
            raise UsageError(f"partial_fit: classes must be the columns, 0 to {count - 1}")
        options = resolved(options, len(self.classes_), multilabel=several)
        self.objective_ = options.objective
        options = replace(options, min_lr=options.lr)
        documents, labels = data.instances()
        training = ClassifierTrainer(
            data.matrix, documents, labels, count, options,
            None if first else resized(self._linear(), count),
            None if data.weights is None else data.weights[documents],
        )  # fmt: skip
        training.epoch(0)
        self._weights = resized(training.weights, len(self.classes_))
        if several and first:
            self._calibration, self.threshold_ = PLAIN, 0.5
        elif options.loss != "hinge":
            self._calibration = None
        self.n_iter_ = 1 if first else self.n_iter_ + 1
        return self

    def _labeled(
        self,
        X: Any,
        y: ArrayLike,
        classes: ArrayLike | None,
        sample_weight: ArrayLike | None,
        first: bool,
    ) -> tuple[Labeled, int]:
        """Return rows with one label of `classes`, and how many these are."""
        matrix, labels = check_training(self, X, y, reset=first)
        if first:
            if classes is None:
                raise UsageError("partial_fit: give classes in the first call")
            self.classes_ = np.unique(np.asarray(classes))
            check_classes(self.classes_)
        elif classes is not None and not np.array_equal(self.classes_, np.unique(classes)):
            raise UsageError("partial_fit: classes differ from the classes of the first call")
        numbers = np.searchsorted(self.classes_, labels)
        known = self.classes_[np.minimum(numbers, len(self.classes_) - 1)] == labels
        if not known.all():
            raise UsageError(f"partial_fit: label {labels[~known][0]} is not one of classes")
        data = self._weighted(matrix, numbers[:, None].tolist(), sample_weight)
        return data, len(self.classes_)

    def predict(self, X: Any) -> Any:
        """Return the most probable label of each row, shape (rows,).

        After `fit` with an indicator matrix, such a matrix: labels whose probability is at least
        `threshold_`.
        """
        if self._indicator is not None:
            return self._predict_sets(X, *self._indicator)
        matrix, threads = SparseRows(check_features(self, X)), threads_of(self.threads)
        found = [np.empty(0, dtype=np.int64)]
        for scores in self._weights.batches(matrix, threads):
            check_scores(scores)
            found.append(scores.argmax(axis=1))
        return self.classes_[np.concatenate(found)]

    def _predict_sets(self, X: Any, is_sparse: bool, dtype: Any) -> Any:
        """Return an indicator matrix, some rows at a time."""
        matrix = check_features(self, X)
        step, parts = documents_at_once(len(self.classes_)), []
        for begin in range(0, matrix.shape[0], step):
            found = self.predict_proba(matrix[begin : begin + step]) >= self.threshold_
            parts.append(csr_matrix(found) if is_sparse else found)
        return (vstack(parts, "csr") if is_sparse else np.concatenate(parts)).astype(dtype)

    def decision_function(self, X: Any) -> F64:
        """Return the scores of all classes, shape (rows, classes).

        With two classes the difference of their scores, shape (rows,), as in scikit-learn; of an
        indicator matrix the scores of both labels.
        """
        if self._indicator is not None:
            return self._scores(X)
        return super().decision_function(X)

    def predict_log_proba(self, X: Any) -> F64:
        """Return the log-probabilities of the classes, shape (rows, classes).

        After `fit` with an indicator matrix, each label has a probability by itself.
        """
        return calibrated(self._scores(X), self._calibration)

    def _linear(self) -> Weights:
        if not isinstance(self._weights, Weights):
            raise AttributeError("models that vote have no single table of weights")
        return self._weights

    def _scores(self, X: Any) -> F64:
        """Return the scores of all classes, shape (rows, classes)."""
        matrix = check_features(self, X)
        threads = threads_of(self.threads)
        return self._weights.scores(SparseRows(matrix), 0, matrix.shape[0], threads)

    def _weighted(
        self, matrix: csr_matrix, labels: Sequence[Sequence[int]], sample_weight: ArrayLike | None
    ) -> Labeled:
        """Return rows of these classes that have a weight."""
        if sample_weight is None and self.class_weight is None:
            return Labeled(matrix, labels)
        weights = check_weights(sample_weight, len(labels))
        if self.class_weight is not None:
            own = class_weights(self.class_weight, self.classes_.tolist(), labels, weights)
            weights = check_weights(weights * own, len(labels))
        found = weights.astype(np.float32)
        return Labeled(matrix, labels, found).some(np.flatnonzero(found))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags


def _seconds_of(tune: Any) -> float | None:
    """Return the seconds of a search; None for none."""
    if tune is None or tune is False:
        return None
    return TuneOptions(SECONDS if tune is True else tune).tune

"""`MaxentClassifier`: a scikit-learn classifier for sparse or dense rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_matrix, issparse, vstack

from dcme_w2v._core.models import SparseRows
from dcme_w2v.declarations import filled, threads_of
from dcme_w2v.errors import UsageError
from dcme_w2v.numeric.arrays import F64
from dcme_w2v.numeric.estimators import check_all_labeled, check_weights, options_of, parameters
from dcme_w2v.numeric.sklearn_base import Estimator, check_features, check_training
from dcme_w2v.numeric.sparse_rows import is_dense
from dcme_w2v.options import CheckpointOptions
from dcme_w2v.training.executor import on_cluster
from dcme_w2v.training.progress import Reporter, reporting_to

from .calibration import Calibration
from .choose import MIN_COMPARED, Problem
from .constants import SMALL
from .fit import Fitted, Job, RemoteTraining, fit_linear, resource_estimate
from .indicator import is_indicator, label_sets
from .labeled import Labeled, class_weights, instances_of, of_documents
from .metrics import check_scores
from .mixins import LinearMixin, check_classes
from .options import (
    L2_OF_LBFGS,
    SECONDS,
    ClassifyOptions,
    DistributeOptions,
    TuneOptions,
    is_hinge_possible,
    resolved,
)
from .trainer import (
    ClassifierTrainer,
    Scorer,
    Weights,
    documents_at_once,
    resized,
    warn_of_short_rows,
)

MOST_VISITS = 100  # partial_fit trains on each row at most this many times


def for_numbers(given: ClassifyOptions, matrix: csr_matrix, classes: int) -> ClassifyOptions:
    """Select the softmax loss and L-BFGS for small numeric data, on which L-BFGS is fast.

    The loss is kept if an option of SGD is given, or if there are fewer documents than words, as in
    small sets of texts, for which the hinge loss is better.
    """
    rows, columns = matrix.shape
    is_small = (columns + 1) * classes <= SMALL[0] and matrix.nnz * classes <= SMALL[1]
    is_small = is_small and (columns < rows or is_dense(matrix))
    if is_small and is_hinge_possible(given) and given.loss is None:
        own = (given.solver, given.lr, given.min_lr, given.epochs, given.batch)
        if any(one is not None for one in own):
            return replace(given, loss="softmax")
        if rows >= max(MIN_COMPARED, 2 * classes):
            return replace(given, solver="lbfgs")
        given = replace(given, solver="lbfgs")
    if given.solver == "lbfgs":  # the L-BFGS solver has its own default for l2
        return filled(given, {"l2": L2_OF_LBFGS})
    return given


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
    """A logistic regression classifier for many classes (Wang, Wang & Zhai, AAAI 2017).

    Parameters
    ----------
    {options}
    class_weight : dict, "balanced" or None, default None
        Weights of the classes, multiplied by `sample_weight`; "balanced" gives all classes the same
        total weight. A row with several labels gets the mean weight of its labels.
    tune : float, bool or None, default None
        Time limit, in seconds, for choosing the loss, learning rate, epochs and L2 regularization
        on held-out rows; True means 60. Only settings that are None are chosen. Requires at least
        10 rows.
    cluster : str or None, default None
        Address of workers on which `fit` trains: ``"local:4"``, ``"tcp://HOST:PORT"``,
        ``"tls://HOST:PORT"`` or a scheduler file of Dask.
    shards : int or None, default None
        Number of parts of the rows that are trained separately on the cluster (default: the number
        of workers at the start).
    distribute : {"mixture", "vote", "gradient", "iterate"}, default "mixture"
        How the results of the shards are combined; see ``dcme-w2v classify train --distribute``.
    {verbose}

    Attributes
    ----------
    classes_ : ndarray, shape (classes,)
        The labels, sorted, or the columns of an indicator matrix.
    threshold_ : float
        Probability from which labels are predicted, if `y` is an indicator matrix. `fit` chooses
        the value with the highest micro F1 on held-out rows.
    coef_ : ndarray of float32, shape (classes, features)
        Weights, with one row per class even if there are only two classes.
    intercept_ : ndarray of float32, shape (classes,)
        Biases.
    n_features_in_ : int
        Number of features seen by `fit`.
    feature_names_in_ : ndarray of str, shape (features,)
        Names of the columns of a DataFrame.
    n_iter_ : int
        Number of epochs or L-BFGS iterations; each call of `partial_fit` counts as one.
    objective_ : str
        The objective that `fit` used, or chose if `objective` is "auto".
    loss_ : str
        The loss that `fit` used.
    lr_ : float
        The initial learning rate that `fit` used. If `lr` is None, this is the default, or a lower
        value with which held-out rows are predicted better.
    tuned_ : dict
        The parameters that `fit` chose with `tune`.
    epochs_ : list of dict
        For each epoch of `fit`: `epoch`, `seconds`, `loss` and `lr`.

    Notes
    -----
    The objective is the mean of -log p(y | x), weighted by `sample_weight`, plus l2 / 2 times the
    sum of the squared weights without the biases. `fit` uses L-BFGS, which reaches the optimum, if
    there are few features, classes and rows (features times classes up to 65,536), and neither
    `solver` nor an option of ``solver="sgd"`` is set. If `l2` is None and there are at least 50
    rows, and two rows per class, cross-validation chooses the `l2` from 1e-6 to 0.1 with the
    highest likelihood. The default learning rates assume rows of unit length and are divided by the
    mean squared length of the rows. If lengths vary widely, the learning rates are divided by the
    median squared length instead, and the steps of longer rows are bounded. Training that takes up
    to 2^33 products of a value and a weight uses one thread, so that the same `random_state` gives
    identical results with any `threads`. Longer training with several threads updates the weights
    without locks, so that results differ slightly between runs. To prevent these differences, set
    ``threads=1`` or ``solver="lbfgs"``.

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
    # If `fit` was called with an indicator matrix y: whether y was sparse, and its dtype.
    _indicator: tuple[bool, Any] | None = None
    _calibration: Calibration = Calibration()

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> MaxentClassifier:
        """Fit the classifier to rows and their labels.

        Parameters
        ----------
        X : sparse or dense matrix, shape (rows, features)
            Finite numbers, converted to float32.
        y : array, shape (rows,), or dense or sparse matrix, shape (rows, labels)
            One label per row, or an indicator matrix with 1 for each label of a row and 0 for the
            others. In an indicator matrix, a row may have no label.
        sample_weight : array, shape (rows,), optional
            Weights of the rows, of which only the proportions matter: a row with weight 2 counts as
            two rows in training, in the choice of settings and in calibration; a row with weight 0
            is left out.

        Raises
        ------
        ValueError
            The rows are not finite, the numbers of rows and labels differ, there is only one class,
            a parameter is not valid, or an indicator matrix has entries other than 0 and 1.
        KeyboardInterrupt
            Interrupted while training the weights; `partial` is this classifier with the weights so
            far.
        """
        with reporting_to(self._progress) as reporter:
            learn = self._fit_sets if is_indicator(y) else self._fit_labels
            return learn(X, y, sample_weight, reporter)

    def _fit_labels(
        self, X: Any, y: Any, sample_weight: ArrayLike | None, reporter: Reporter
    ) -> MaxentClassifier:
        """Fit the classifier to rows that have one label each."""
        check_all_labeled(y)
        matrix, labels = check_training(self, X, y, reset=True)
        self.classes_, numbers = np.unique(labels, return_inverse=True)
        check_classes(self.classes_)
        given, remote = options_of(self), self._remote_training()
        warn_of_short_rows(matrix, given.bias)
        classes, seconds = len(self.classes_), _seconds_of(self.tune)
        if given.objective == "tree":
            raise UsageError(
                'objective="tree" is available only on the command line; use the command '
                "dcme-w2v classify train"
            )
        if remote is not None:
            given = remote.prepare(given, CheckpointOptions())
            if seconds is not None:
                raise UsageError(
                    f"tune={self.tune} is not supported with the parameter cluster; omit one of "
                    "the two parameters"
                )
        elif seconds is None:
            given = for_numbers(given, matrix, classes)
        data = self._weighted(matrix, numbers[:, None].tolist(), sample_weight)
        job = Job(reporter, seconds=seconds, remote=remote)
        self._take(self._fitted(Problem(data, classes, given), job))
        self._indicator = None
        return self

    def _sets_of(
        self, X: Any, y: Any, sample_weight: ArrayLike | None, reset: bool, once: bool = True
    ) -> Labeled:
        """Combine rows with their labels from an indicator matrix."""
        given = options_of(self)
        if not is_hinge_possible(given) or given.loss == "softmax":
            raise UsageError(
                'an indicator matrix requires loss="hinge"; set this loss, and omit the '
                "parameters objective and solver"
            )
        matrix = check_features(self, X, reset=reset)
        sets, count = label_sets(y, matrix.shape[0])
        if not reset and count != len(self.classes_):
            raise UsageError(
                f"y has {count} columns, but the classifier has {len(self.classes_)} classes; "
                "pass one column per class"
            )
        options = resolved(replace(given, loss="hinge"), count, multilabel=True)
        if shortage := resource_estimate(matrix, sets, count, options)["refused"]:
            raise shortage
        self.classes_ = np.arange(count)
        data = self._weighted(matrix, sets, sample_weight, once)
        self._indicator = (issparse(y), y.dtype if hasattr(y, "dtype") else np.dtype(np.int64))
        return data

    def _fit_sets(
        self, X: Any, y: Any, sample_weight: ArrayLike | None, reporter: Reporter
    ) -> MaxentClassifier:
        """Fit the classifier to rows with any number of labels, passed as an indicator matrix."""
        for name in ("tune", "cluster"):
            if (value := getattr(self, name)) not in (None, False):
                raise UsageError(
                    f"{name}={value} is not supported with an indicator matrix; omit {name}"
                )
        data = self._sets_of(X, y, sample_weight, reset=True)
        if not any(data.labels):
            raise UsageError(
                "all entries of y are 0, so no row has a label; in each row, set the entries of "
                "the correct labels to 1"
            )
        given = replace(options_of(self), loss="hinge")
        warn_of_short_rows(data.matrix, given.bias)
        problem = Problem(data, len(self.classes_), given, several=True)
        self._take(self._fitted(problem, Job(reporter)))
        return self

    def _fitted(self, problem: Problem, job: Job) -> Fitted:
        try:
            return fit_linear(problem, job)
        except KeyboardInterrupt as error:
            if isinstance(partial := getattr(error, "partial", None), Fitted):
                self._take(partial)
                error.partial = self  # type: ignore[attr-defined]
            raise

    def _take(self, fitted: Fitted) -> None:
        """Store a fitted model in the estimator's attributes."""
        options = fitted.options
        self._weights, self._calibration = fitted.scorer, fitted.calibration
        if fitted.threshold is not None:
            self.threshold_ = fitted.threshold
        if self.tune and fitted.choice is not None:
            self.tuned_ = dict(fitted.choice.setting)
        self.objective_, self.loss_, self.lr_ = options.objective, options.loss, options.lr
        self.epochs_, self.n_iter_ = fitted.records, len(fitted.records)

    def _remote_training(self) -> RemoteTraining | None:
        """Return a trainer that uses the workers of `cluster`, or None to train in this process."""
        options = DistributeOptions(self.cluster, self.shards, self.distribute)
        if options.cluster is None:
            return None
        remote: RemoteTraining = on_cluster("distribute:Distributed")(options)
        return remote

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
            All labels that occur in any call; required in the first call, except with an indicator
            matrix.
        sample_weight : array, shape (rows,), optional
            How many times each row counts, at most 100.
        """
        first, several = not hasattr(self, "_weights"), is_indicator(y)
        if not first and several != (self._indicator is not None):
            raise UsageError(
                "partial_fit: y has a different form than in the first call; pass an indicator "
                "matrix either in all calls or in no call"
            )
        if self.class_weight == "balanced":
            raise UsageError(
                'class_weight="balanced" is supported only by fit; for partial_fit, pass a dict '
                "that maps labels to weights"
            )
        options = replace(options_of(self), epochs=1, solver="sgd")
        if options.loss is None and not first and is_hinge_possible(options):
            options = replace(options, loss=self.loss_)
        if several:
            data = self._sets_of(X, y, sample_weight, reset=first, once=False)
            options = replace(options, loss="hinge")
        else:
            data = self._labeled(X, y, classes, sample_weight, first)
        count = len(self.classes_)
        if several and classes is not None and not np.array_equal(self.classes_, classes):
            raise UsageError(
                "partial_fit: with an indicator matrix, classes must be the column numbers 0 to "
                f"{count - 1}; omit the argument classes"
            )
        problem = Problem(data, count, options, several).with_none()
        options, data = problem.options({}), problem.data
        start = None if first else resized(self._linear().copy(), problem.classes)
        training = ClassifierTrainer(
            data.matrix, *instances_of(data.labels), problem.classes,
            replace(options, min_lr=options.lr), start, data.instance_weights(),
        )  # fmt: skip
        training.epoch(0)
        self._weights = resized(training.weights, count)
        self.objective_, self.loss_, self.lr_ = options.objective, options.loss, options.lr
        if first:
            self._calibration = Calibration("logistic" if several else "softmax")
            self.threshold_ = 0.5
        elif options.loss != "hinge":
            self._calibration = Calibration()
        self.n_iter_ = 1 if first else self.n_iter_ + 1
        return self

    def _labeled(
        self,
        X: Any,
        y: ArrayLike,
        classes: ArrayLike | None,
        sample_weight: ArrayLike | None,
        first: bool,
    ) -> Labeled:
        """Combine rows with labels, which are converted to class indices."""
        matrix, labels = check_training(self, X, y, reset=first)
        if first:
            if classes is None:
                raise UsageError(
                    "partial_fit: the first call requires the argument classes; pass a list of "
                    "all labels"
                )
            self.classes_ = np.unique(np.asarray(classes))
            check_classes(self.classes_)
        elif classes is not None and not np.array_equal(self.classes_, np.unique(classes)):
            raise UsageError(
                "partial_fit: the argument classes has changed since the first call; pass the "
                "classes of the first call, or omit the argument classes"
            )
        numbers = np.searchsorted(self.classes_, labels)
        known = self.classes_[np.minimum(numbers, len(self.classes_) - 1)] == labels
        if not known.all():
            raise UsageError(
                f"partial_fit: the label {labels[~known][0]} is missing from the argument "
                "classes; in the first call, pass a list of all labels"
            )
        return self._weighted(matrix, numbers[:, None].tolist(), sample_weight, once=False)

    def predict(self, X: Any) -> Any:
        """Return the most probable label of each row, shape (rows,).

        After `fit` with an indicator matrix, the result is an indicator matrix of the labels with a
        probability of at least `threshold_`.
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
        """Predict an indicator matrix of labels, one batch of rows at a time."""
        matrix = check_features(self, X)
        step, parts = documents_at_once(len(self.classes_)), []
        for begin in range(0, matrix.shape[0], step):
            found = self.predict_proba(matrix[begin : begin + step]) >= self.threshold_
            parts.append(csr_matrix(found) if is_sparse else found)
        return (vstack(parts, "csr") if is_sparse else np.concatenate(parts)).astype(dtype)

    def decision_function(self, X: Any) -> F64:
        """Return each row's score for every class, shape (rows, classes).

        With two classes, the result is the difference of their scores, shape (rows,), as in
        scikit-learn; with an indicator matrix of two labels, the result contains the scores of both
        labels.
        """
        if self._indicator is not None:
            return self._scores(X)
        return super().decision_function(X)

    def predict_log_proba(self, X: Any) -> F64:
        """Return each row's log-probability of every class, shape (rows, classes).

        After `fit` with an indicator matrix, the probabilities of the labels are independent.
        """
        return self._calibration.apply(self._scores(X))

    def _linear(self) -> Weights:
        if not isinstance(self._weights, Weights):
            raise AttributeError(
                "this model consists of several voting models, so it has no single weight table; "
                "use a different value of the parameter distribute, and fit again"
            )
        return self._weights

    def _scores(self, X: Any) -> F64:
        """Return each row's score for every class, shape (rows, classes)."""
        matrix = check_features(self, X)
        threads = threads_of(self.threads)
        return self._weights.scores(SparseRows(matrix), 0, matrix.shape[0], threads)

    def _weighted(
        self,
        matrix: csr_matrix,
        labels: Sequence[Sequence[int]],
        sample_weight: ArrayLike | None,
        once: bool = True,
    ) -> Labeled:
        """Multiply the rows' weights by class weights, and drop rows with a weight of 0.

        Only the proportions matter, except in `partial_fit`, which sees only some of the rows.
        """
        data = Labeled(matrix, labels)
        if sample_weight is None and self.class_weight is None:
            return data
        weights = check_weights(sample_weight, len(labels))
        if self.class_weight is not None:
            own = class_weights(self.class_weight, self.classes_.tolist(), labels, weights)
            weights = check_weights(weights * of_documents(own, labels), len(labels))
        if once:
            return data.weighted(weights)
        visits = np.minimum(weights, MOST_VISITS).astype(np.float32)
        return data.with_weights(visits).some(np.flatnonzero(visits))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        is_plain = self.objective == "auto" and self.solver != "lbfgs" and self.loss != "softmax"
        tags.classifier_tags.multi_label = is_plain  # only the hinge loss supports multilabel data
        return tags


def _seconds_of(tune: Any) -> float | None:
    """Convert the parameter `tune` to a time limit in seconds, or to None if it is off."""
    if tune is None or tune is False:
        return None
    return TuneOptions(SECONDS if tune is True else tune).tune

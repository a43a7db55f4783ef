"""Choose training settings by comparing candidates on held-out documents.

A `Stage` has candidate settings: the first candidate is kept unless another one is clearly better.
If there are few candidates, all candidates are trained on all folds. If there are many, they are
first trained on a part of the documents, and only the best third continues (successive halving:
Jamieson and Talwalkar 2016). Each trial has one thread, and several trials run at a time, so that
the choice does not depend on the number of threads.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from dcme_w2v._core.models import SparseRows
from dcme_w2v.declarations import flag_of, threads_of
from dcme_w2v.errors import CorpusError, DivergedError, Interrupted
from dcme_w2v.numeric.arrays import F32, F64, I64, Bools
from dcme_w2v.numeric.sparse_rows import (
    AnyRows,
    CompressedRows,
    inner_products,
    rotated,
    squared_lengths,
    with_values,
)
from dcme_w2v.platform import ReceivedSignal
from dcme_w2v.training.progress import QUIET, Reporter

from .constants import (
    C_OF_FEW,
    CERTAIN,
    CLEARLY,
    FEW,
    FEW_CLASSES,
    FOLDS,
    LONG,
    LOW_STRENGTHS,
    LOWER,
    MANY_NUMBERS,
    PENALTIES,
    RATE_OF_HINGE,
    TABLE_CLASSES,
    TRIAL_DOCUMENTS,
    TRIAL_EPOCHS,
    UNEQUAL,
)
from .labeled import Labeled, instances_of
from .metrics import check_scores, log_softmax, ndcg, relevance
from .options import BIAS, MAX_BIAS, ClassifyOptions, is_hinge_possible, resolved
from .solver import solve
from .trainer import ClassifierTrainer, Weights, length_and_steps

# With the dual solver, text models are as accurate after 6 epochs as after 16.
# With few documents, the dual solver needs 24 epochs (4 times EPOCHS_OF_DUAL).
EPOCHS_OF_DUAL = 6
# Candidate values of C, the inverse L2 penalty in LinearSVC; C = 0.1 is robust to wrong labels.
STRENGTHS: tuple[float, ...] = (1.0, 0.1, 3.0)
# The dual solver needs too many epochs if the squared row norm exceeds this limit.
MOST_SQUARED = 4.0
HELD_OUT = TRIAL_DOCUMENTS // (FOLDS - 1)
# Settings are chosen only if there are at least MIN_COMPARED documents (MIN_TUNED with --tune).
MIN_COMPARED, MIN_TUNED = 50, 10
# A setting that is robust to wrong labels is chosen unless its held-out score is lower by more than
# half a standard error, because wrong labels among the held-out documents hide its benefit.
REGULARIZED = -CLEARLY / 2
# After a first comparison on 1/KEPT of the documents, 1/KEPT of the candidates are trained on all.
KEPT = 3
# Maximum total number of weights in concurrent trials, and maximum number of scores to keep.
TABLES, KEPT_SCORES = 1 << 28, 1 << 23

Setting = dict[str, Any]  # dictionary that maps option names to option values
# A function that compares scores with labels and returns one value per document.
Measure = Callable[[F64, Sequence[Sequence[int]]], F64]


def accuracy(scores: F64, labels: Sequence[Sequence[int]]) -> F64:
    """Return 1 for each document whose highest-scoring class is one of its labels, otherwise 0."""
    return relevance(labels, scores.shape[1])[np.arange(len(scores)), scores.argmax(axis=1)] + 0.0


def log_likelihood(scores: F64, labels: Sequence[Sequence[int]]) -> F64:
    """Return the log-probability of each document's label."""
    return log_softmax(scores)[np.arange(len(scores)), [own[0] for own in labels]]


def ranking(scores: F64, labels: Sequence[Sequence[int]]) -> F64:
    """Return the nDCG@5 of each document."""
    return ndcg(scores, relevance(labels, scores.shape[1]))


@dataclass(frozen=True)
class Problem:
    """A classification problem: labeled documents, the user's options, and candidate features.

    Attributes
    ----------
    data : Labeled
        The documents; documents of the same group share a fold.
    classes : int
    given : ClassifyOptions
        Options as the user gave them; only options that are None are searched.
    several : bool
        Whether documents may have several labels.
    features : sequence of dict
        Candidate feature settings; the first one is kept unless another one is clearly better.
    under : callable, optional
        Returns the document rows for a feature setting.
    is_unit : bool
        Whether documents that are classified have unit length without the features that no
        training document has.
    second_block : callable, optional
        Returns which columns of a feature setting form a second block, which is often the same for
        several settings.
    """

    data: Labeled
    classes: int
    given: ClassifyOptions
    several: bool = False
    features: Sequence[Setting] = ({},)
    under: Callable[[Setting], AnyRows] | None = None
    is_unit: bool = False
    second_block: Callable[[Setting], Bools] | None = None

    def with_none(self) -> Problem:
        """Add a class for documents without a label, if there are any.

        The core requires at least one label per document. Only the hinge loss can learn that a
        document has no label; for other losses, such documents are left out.
        """
        empty = np.array([not own for own in self.data.labels], dtype=bool)
        if not empty.any():
            return self
        given, objective = self.given, self.options({}).objective
        if self.options({}).loss != "hinge" or objective == "tree":
            kept, under = np.flatnonzero(~empty), self.under
            own = None if under is None else lambda setting: under(setting)[kept]
            return replace(self, data=self.data.some(kept), under=own)
        labels = [own or [self.classes] for own in self.data.labels]
        return replace(
            self, data=replace(self.data, labels=labels), classes=self.classes + 1,
            given=replace(given, loss="hinge"),
        )  # fmt: skip

    def rows(self, setting: Setting) -> AnyRows:
        """Convert the documents to rows, with the features that a setting specifies."""
        return self.data.matrix if self.under is None else self.under(setting)

    @property
    def measure(self) -> Measure:
        """The measure by which settings are compared."""
        return ranking if self.several else accuracy

    def options(self, setting: Setting) -> ClassifyOptions:
        """Combine the user's options with a setting, and fill in all defaults."""
        own = {name: value for name, value in setting.items() if hasattr(self.given, name)}
        return resolved(replace(self.given, **own), self.classes, self.several)

    def open(self, setting: Setting) -> Setting:
        """Remove the values that the user's options determine from a setting.

        A given final learning rate also fixes the initial learning rate, because both define one
        schedule.
        """
        fixed = {"lr"} if self.given.min_lr is not None else set()
        return {
            name: value
            for name, value in setting.items()
            if getattr(self.given, name, None) is None and name not in fixed
        }


@dataclass(frozen=True)
class Stage:
    """A search step that compares candidate settings by a measure on some or all documents."""

    candidates: Callable[[Problem, Setting], list[Setting]]
    measure: Measure
    clearly: float = CLEARLY
    shares: tuple[float, ...] = (1.0,)


# ---- candidates ----


def like_svm(problem: Problem, best: Setting) -> Setting:
    """Return settings that imitate LinearSVC with C = 1 (higher if there are few documents).

    LinearSVC minimizes the same objective with l2 = 1 / (2 C n), but gradient descent stops before
    the minimum. With many classes, most of which are rare, the learning rate is doubled, and only
    the smallest data sets need the usual number of epochs. With many classes and many documents,
    the defaults of the hinge loss are equally good. Here n is the number of documents, not their
    weight, of which only the proportions are known.
    """
    if is_dual(problem, best):
        return of_strengths(problem, best)[0]
    count, many = len(problem.data.labels), problem.classes >= FEW_CLASSES
    rare = many and not problem.several
    found: Setting = {"loss": "hinge", "lr": RATE_OF_HINGE * (2 if rare else 1)}
    if not (rare and count > TRIAL_DOCUMENTS):
        c = C_OF_FEW if is_few(problem, best) and not problem.several else 1
        is_long = problem.several or count > (TRIAL_DOCUMENTS // 4 if rare else TRIAL_DOCUMENTS)
        found["epochs"] = LONG if is_long else 2 * LONG
        found["l2"] = float(f"{0.5 / (c * count):.2g}")
        if not (many or problem.several):
            found["bias"] = _bias(problem, best)
    return {**best, **problem.open(found)}


def is_dual(problem: Problem, best: Setting) -> bool:
    """Return whether training should use the dual solver.

    It is used if the problem fits into memory, rows are not much longer than 1, and no SGD option
    is given.
    """
    given, size = problem.given, len(problem.data.labels) * problem.classes
    of_sgd = (given.lr, given.min_lr, given.batch)
    is_open = given.solver in (None, "dual") and all(one is None for one in of_sgd)
    is_open = is_open and not problem.several and size <= MANY_NUMBERS
    return is_open and _length(problem, best) ** 2 <= MOST_SQUARED


def of_strengths(problem: Problem, best: Setting) -> list[Setting]:
    """Return candidate L2 penalties for the dual solver, which are lower for few documents."""
    count = len(problem.data.labels)
    # Training on few documents needs many epochs if some documents are duplicates.
    epochs = EPOCHS_OF_DUAL * (4 if count < FEW else 1)
    found: Setting = {"loss": "hinge", "solver": "dual", "epochs": epochs}
    found["bias"] = _bias(problem, best)
    weights, strengths = problem.data.weights, STRENGTHS
    if is_few(problem, best):
        strengths = (C_OF_FEW, 1)
    if weights is not None and weights.max() > UNEQUAL * weights.min():
        strengths += LOW_STRENGTHS
    return [
        {**best, **problem.open({**found, "l2": float(f"{0.5 / (c * count):.2g}")})}
        for c in strengths
    ]


def is_few(problem: Problem, best: Setting) -> bool:
    """Return whether there are fewer than `FEW` documents and more features than documents."""
    return len(problem.data.labels) < min(FEW, problem.rows(best).shape[1])


def _bias(problem: Problem, best: Setting) -> float:
    """Return the default bias-feature value, which is proportional to the typical row norm."""
    return min(float(f"{2 * BIAS * _length(problem, best):.2g}"), MAX_BIAS)


def _length(problem: Problem, best: Setting) -> float:
    """Return the norm of a typical row (feature vector of a document)."""
    rows = problem.rows(best)
    square, _ = length_and_steps(rows, np.arange(rows.shape[0]), problem.data.weights)
    return math.sqrt(square or 1.0)


def of_defaults(problem: Problem, best: Setting) -> list[Setting]:
    """Return the default setting of SGD, and lower learning rates for noisy labels."""
    first = like_svm(problem, best)
    options = problem.options({"loss": "hinge"})
    lower = {name: getattr(options, name) for name in first if hasattr(options, name)}
    lower["lr"] = LOWER * RATE_OF_HINGE
    found = [first, {**first, **problem.open(lower)}]
    if problem.several:
        found.append({**first, **problem.open({**lower, "lr": 2 * RATE_OF_HINGE})})
    return found


def of_rates(problem: Problem, best: Setting) -> list[Setting]:
    """Return candidate learning rates for data with many labels, most of which are rare."""
    return [{**best, **problem.open({"lr": n * RATE_OF_HINGE})} for n in (1, 2)]


def of_features(problem: Problem, best: Setting) -> list[Setting]:
    """Return the best setting so far, combined with each candidate feature set."""
    return [{**best, **one} for one in problem.features]


def of_strengths_if_changed(problem: Problem, best: Setting) -> list[Setting]:
    """Return the setting and, if it has other features than the first one, all L2 penalties again.

    The penalty was chosen with the first features. With word pairs, another one can be far better.
    """
    is_changed = any(best.get(name) != value for name, value in problem.features[0].items())
    return [best, *(of_strengths(problem, best) if is_changed else [])]


def of_losses(problem: Problem, best: Setting) -> list[Setting]:
    """Return candidate losses and learning rates for --tune."""
    hinge = is_hinge_possible(problem.given) and problem.classes <= TABLE_CLASSES
    losses = [problem.given.loss] if problem.given.loss else ["softmax", *["hinge"] * hinge]
    found = [like_svm(problem, best)] if losses[-1] == "hinge" else []
    for loss in losses:
        rate = problem.options({"loss": loss}).lr or 0.0
        for factor in (1.0, LOWER, LOWER**2):
            found.append({**best, **problem.open({"loss": loss, "lr": factor * rate})})
    return found


def of_lengths(problem: Problem, best: Setting) -> list[Setting]:
    """Return candidate numbers of epochs and L2 penalties for --tune."""
    if best.get("solver") == "dual":
        return [best, *of_strengths(problem, best)]
    penalty = 3e-5 if best.get("loss") == "hinge" else 1e-6
    longer = [{"epochs": epochs, "l2": l2} for epochs in (5, LONG) for l2 in (0.0, penalty)]
    return [best, *({**best, **problem.open(one)} for one in longer)]


def of_penalties(problem: Problem, best: Setting) -> list[Setting]:
    """Return candidate L2 penalties for L-BFGS."""
    return [{**best, **problem.open({"l2": l2})} for l2 in PENALTIES]


def stages_of(problem: Problem, tuned: bool = False) -> list[Stage]:
    """Return the stages of the search, or [] if the user has set all options."""
    given, measure = problem.given, problem.measure
    features = Stage(of_features, measure)
    if given.solver == "lbfgs":
        penalties = Stage(of_penalties, measure if problem.several else log_likelihood, 0.0)
        return [penalties, features] if tuned else [penalties]
    if tuned:
        shares = (1 / KEPT, 1.0)
        losses = Stage(of_losses, measure, shares=shares)
        return [losses, features, Stage(of_lengths, measure, shares=shares)]
    is_open = is_hinge_possible(given) and given.loss != "softmax"
    if not is_open or problem.classes > TABLE_CLASSES:
        return []
    if not problem.several:
        if is_dual(problem, problem.features[0]):
            strengths = Stage(of_strengths, measure, 0.0)
            again = Stage(of_strengths_if_changed, measure)
            return [strengths, Stage(of_features, measure, 0.0), again]
        return [Stage(of_defaults, measure, REGULARIZED), features]
    if len(problem.data.labels) * problem.classes > MANY_NUMBERS:
        return [Stage(of_rates, measure)]
    return [Stage(of_defaults, measure, 0.0), features]


# ---- decisions ----


def mean_and_error(figures: F64, weights: F64) -> tuple[float, float]:
    """Return the weighted mean of the values and its standard error."""
    shares = weights / weights.sum()
    mean = float(shares @ figures)
    return mean, math.sqrt(float(np.square(shares) @ np.square(figures - mean)))


def decide(figures: Sequence[F64], weights: F64, clearly: float = CLEARLY) -> int:
    """Return the index of the first candidate not much worse than the best (Breiman et al. 1984).

    If `clearly` is negative, another candidate is returned unless it is clearly worse than the
    first.

    Parameters
    ----------
    figures : sequence of ndarray of float64, shape (documents,)
        For each candidate, its measure on the same documents; -inf if training diverged.
    weights : ndarray of float64, shape (documents,)
    clearly : float
        Number of standard errors that make a mean difference clear.
    """
    means = [float(np.average(one, weights=weights)) for one in figures]
    if len(means) < 2:
        return 0
    best = 1 + int(np.argmax(means[1:]))
    if not math.isfinite(means[0] + means[best]):
        return int(np.argmax(means))
    for i in [0, *(i for i in range(1, best) if means[i] > means[0])]:
        gained, error = mean_and_error(figures[best] - figures[i], weights)
        if not gained > clearly * error:
            return i
    return best


def rarest(data: Labeled, classes: int) -> I64:
    """Return each document's rarest label."""
    counts = data.counts(classes).tolist()
    return np.array([min(own, key=counts.__getitem__) for own in data.labels], dtype=np.int64)


def folds_of(
    labels: I64, folds: int, random: np.random.Generator, groups: I64 | None = None
) -> I64:
    """Assign documents to folds, stratified by class.

    All documents of a group get the same fold. A group counts as the class of its first document.
    """
    inverse = np.arange(len(labels))
    if groups is not None:
        _, first, inverse = np.unique(groups, return_index=True, return_inverse=True)
        labels = labels[first]
    order = random.permutation(len(labels))
    order = order[np.argsort(labels[order], kind="stable")]
    found = np.empty(len(labels), dtype=np.int64)
    found[order] = np.arange(len(labels)) % folds
    return found[inverse]


@dataclass(frozen=True)
class OutOfFold:
    """Out-of-fold scores of documents, with the documents' labels and weights."""

    scores: F64
    labels: list[Sequence[int]]
    weights: F64


@dataclass
class Choice:
    """The settings that the search chose, with the score of every trial.

    Attributes
    ----------
    setting : dict
        Values of the options that were searched, by name.
    measure, figures, at
        The measure that was compared, its value per document for the chosen setting, and the
        indices of these documents; None if not all candidates were compared.
    held_out : int
        Number of held-out documents.
    trials : list of tuple of dict and float
        Each setting with its mean measure.
    seconds : float
    complete : bool
        Whether all trials were finished; otherwise time ran out.
    scores : OutOfFold or None
        Out-of-fold scores of the chosen setting, if each trial was trained on all other documents.
    """

    setting: Setting
    measure: Measure | None = field(default=None, repr=False)
    figures: F64 | None = field(default=None, repr=False)
    at: I64 | None = field(default=None, repr=False)
    held_out: int = 0
    trials: list[tuple[Setting, float]] = field(default_factory=list)
    seconds: float = 0.0
    complete: bool = True
    scores: OutOfFold | None = field(default=None, repr=False)

    @property
    def record(self) -> dict[str, Any]:
        """The chosen settings, as an entry for the model's JSON record."""
        trials = [{**one, "measure": figure} for one, figure in self.trials]
        return {
            "flags": flags_of(self.setting), "held_out": self.held_out,
            "seconds": round(self.seconds, 3), "complete": self.complete, "trials": trials,
        }  # fmt: skip

    @property
    def line(self) -> str:
        """A one-line message that compares the chosen settings with the other candidates."""
        flags = flags_of(self.setting)
        if not self.trials:
            why = "" if self.complete else f": no trial finished within {self.seconds:.1f} s"
            return f"{flags}, chosen without a comparison{why}"
        best: dict[str, float] = {}
        for one, figure in self.trials:
            new = {k: v for k, v in one.items() if self.setting.get(k) != v}
            best[flags_of(new) or "this"] = figure
        shown = "; ".join(f"{name} {figure:.4f}" for name, figure in best.items())
        if len(best) > 2 * FOLDS:
            shown = f"this {best['this']:.4f}; {len(self.trials)} trials"
        over = "" if self.complete else "; time ran out before the last trial"
        return f"{flags}, chosen on {self.held_out:,} held-out documents ({shown}{over})"


def flags_of(setting: Setting) -> str:
    """Format a setting as command-line flags."""
    shown = {k: f"{v:g}" if isinstance(v, float) else v for k, v in setting.items()}
    return " ".join(f"{flag_of(name)} {value}" for name, value in shown.items())


@dataclass(frozen=True)
class _Trial:
    figures: F64
    scores: F64 | None = None
    known: Bools | None = None  # whether each document's label occurs in the training data
    # Computes scores for calibration, ignoring features that occur in no training document.
    in_use: Callable[[], F64] | None = None


class _Over(Exception):
    """Exception that ends a trial when time runs out or a signal arrives."""


class Search:
    """A settings search that stores the cross-validation results of every setting.

    Parameters
    ----------
    problem : Problem
    seconds : float
        Time limit, at which running trials stop.
    reporter : Reporter, optional
        Receives the number of trials.
    received : ReceivedSignal, optional
        A signal ends the search.
    """

    def __init__(
        self,
        problem: Problem,
        seconds: float = math.inf,
        reporter: Reporter = QUIET,
        received: ReceivedSignal | None = None,
    ) -> None:
        self.problem, self._reporter = problem, reporter
        self._received, self._failed = received or ReceivedSignal(), False
        self._start, self._end = time.monotonic(), time.monotonic() + seconds
        self._found: dict[tuple[Any, ...], list[_Trial]] = {}
        self._rows_of: dict[tuple[Any, ...], AnyRows] = {}
        self._held_rows_of: dict[tuple[Any, ...], AnyRows] = {}
        self._second: tuple[CompressedRows, F32] | None = None
        data, random = problem.data, np.random.default_rng(problem.given.seed)
        count = len(data.labels)
        self._folds = folds_of(rarest(data, problem.classes), FOLDS, random, data.groups)
        self._order = random.permutation(count)
        size = max(1, min(count // FOLDS, HELD_OUT))
        self._held = [
            self._order[self._folds[self._order] == fold][:HELD_OUT]
            for fold in range(min(FOLDS, math.ceil(CERTAIN / size)))
        ]
        self._weights = np.ones(count) if data.weights is None else data.weights.astype(np.float64)
        self._is_whole = count - size <= TRIAL_DOCUMENTS
        self._keeps = sum(map(len, self._held)) * problem.classes <= KEPT_SCORES and self._is_whole

    def run(self, stages: Sequence[Stage], setting: Setting) -> Choice:
        """Run all stages of the search, and return the best setting.

        Raises
        ------
        Interrupted
            A signal arrived.
        """
        choice = Choice(setting)
        self._reporter.stage("choosing the settings", None, "trials")
        try:
            for stage in stages:
                self._run(stage, choice)
        except _Over:
            choice.complete = False
        if self._received.number is not None:
            raise Interrupted(
                f"stopped by {self._received.name} while choosing the settings; nothing was "
                f"written; the best settings so far: {flags_of(choice.setting)}",
                self._received.number,
            )
        measure = stages[-1].measure if stages else self.problem.measure
        if choice.complete and (own := self._found.get(_key(choice.setting, measure, 1.0))):
            choice.scores = self._out_of_fold(own) if self._keeps else None
            choice.measure, choice.at = measure, np.concatenate(self._held)
            choice.figures = np.concatenate([one.figures for one in own])
        choice.seconds = time.monotonic() - self._start
        return choice

    def scores(self, setting: Setting) -> OutOfFold:
        """Return out-of-fold scores of the documents whose classes occur in the training folds."""
        return self._out_of_fold(self._measured([setting], self.problem.measure, 1.0)[0])

    def _run(self, stage: Stage, choice: Choice) -> None:
        candidates = stage.candidates(self.problem, choice.setting)
        left = list({tuple(sorted(one.items())): one for one in candidates}.values())
        choice.setting = left[0]
        if len(left) < 2:
            return
        for share in stage.shares:
            if share < 1 and len(left) < 3:
                continue
            trials = self._measured(left, stage.measure, share)
            figures = [np.concatenate([one.figures for one in own]) for own in trials]
            own = self._weights[np.concatenate(self._held[: len(trials[0])])]
            means = [float(np.average(one, weights=own)) for one in figures]
            choice.trials += zip(left, means, strict=True)
            if share < 1:
                ranked = sorted(range(len(left)), key=lambda i: -means[i])
                kept = {0, *ranked[: math.ceil(len(left) / KEPT)]}
                left = [left[i] for i in sorted(kept)]
        choice.held_out = len(figures[0])
        choice.setting = left[decide(figures, own, stage.clearly)]

    def _measured(
        self, settings: Sequence[Setting], measure: Measure, share: float
    ) -> list[list[_Trial]]:
        """Run a trial of each setting on each fold, several trials at a time."""
        new = [one for one in settings if _key(one, measure, share) not in self._found]
        size = max([self._rows(one).shape[1] for one in new], default=1)
        threads = min(
            threads_of(self.problem.given.threads), TABLES // (size * self.problem.classes)
        )
        folds = range(len(self._held) if share == 1 else 1)
        with ThreadPoolExecutor(max(1, threads)) as pool:
            jobs = [
                [pool.submit(self._trial, one, measure, share, fold) for fold in folds]
                for one in new
            ]
            try:
                for one, own in zip(new, jobs, strict=True):
                    self._found[_key(one, measure, share)] = [job.result() for job in own]
                    self._reporter.advance(len(self._found))
            except BaseException:
                self._failed = True
                raise
        return [self._found[_key(one, measure, share)] for one in settings]

    def _rows(self, setting: Setting) -> AnyRows:
        """Return the document rows for a setting, rotated if the setting uses the dual solver."""
        key = self._kind_of_rows(setting)
        if key not in self._rows_of:
            rows, products = self.problem.rows(setting), partial(self._products, setting)
            self._rows_of[key] = rotated(rows, products) if key[0] else rows
        return self._rows_of[key]

    def _held_rows(self, setting: Setting, fold: int) -> AnyRows:
        """Return the rows of the documents that a fold holds out."""
        key = fold, *self._kind_of_rows(setting)
        if key not in self._held_rows_of:
            self._held_rows_of[key] = self._rows(setting)[self._held[fold]]
        return self._held_rows_of[key]

    def _kind_of_rows(self, setting: Setting) -> tuple[Any, ...]:
        """Return the cache key of a setting's rows: whether the solver is dual, and features."""
        is_dual = setting.get("solver", self.problem.given.solver) == "dual"
        names = {name for one in self.problem.features for name in one}
        return is_dual, *((name, setting.get(name)) for name in sorted(names))

    def _products(self, setting: Setting, columns: CompressedRows) -> F32:
        """Return the inner products of documents, given a matrix with one row per feature.

        The products of the second block of features are cached.
        """
        if self.problem.second_block is None:
            return inner_products(columns)
        is_second = self.problem.second_block(setting)
        second = columns[is_second]
        known = self._second and self._second[0]
        if known is None or not all(
            np.array_equal(getattr(known, name), getattr(second, name))
            for name in ("data", "indices", "indptr")
        ):
            self._second = second, inner_products(second)
        assert self._second is not None
        return inner_products(columns[~is_second]) + self._second[1]

    def _trial(self, setting: Setting, measure: Measure, share: float, fold: int) -> _Trial:
        problem, held = self.problem, self._held[fold]
        rest = self._order[self._folds[self._order] != fold][:TRIAL_DOCUMENTS]
        learned = np.sort(rest[: max(math.ceil(share * len(rest)), FEW)])
        labels = [problem.data.labels[i] for i in held]
        try:
            weights, known = self._learned(setting, learned)
            pieces = []
            for scores in weights.batches(SparseRows(self._held_rows(setting, fold)), 1):
                check_scores(scores)
                pieces.append(scores)
                if not self._keeps:
                    begin = sum(map(len, pieces)) - len(scores)
                    pieces[-1] = measure(scores, labels[begin : begin + len(scores)])
        except DivergedError:
            return _Trial(np.full(len(held), -math.inf))
        if not self._keeps:
            return _Trial(np.concatenate(pieces))
        scores = np.concatenate(pieces)
        has = np.array([own[0] in known for own in labels]) if not problem.several else None
        figures = measure(scores, labels)
        bias = weights.intercepts

        # Only calibration calls `longer`, because only calibration depends on the scale of scores.
        def longer() -> F64:
            factors = factors_without_unknown(problem.rows(setting), held, learned)
            return bias + factors[:, None] * (scores - bias)

        return _Trial(figures, scores, has, longer if problem.is_unit else None)

    def _learned(self, setting: Setting, learned: I64) -> tuple[Weights, set[int]]:
        """Train on the documents `learned`, with an L2 penalty scaled to their total weight.

        Return the weights, and the classes of these documents.
        """
        options, data = self.problem.options(setting), self.problem.data
        numbers, labels = instances_of([data.labels[i] for i in learned])
        total, sample_weight = float(len(learned)), None
        if data.weights is not None:
            total = float(data.weights[learned].sum(dtype=float))
            sample_weight = data.weights[learned[numbers]]
        l2 = (options.l2 or 0.0) * data.total / total
        epochs = options.epochs or 1
        if options.solver == "dual":
            epochs = math.ceil(TRIAL_EPOCHS * epochs)
        options = replace(options, l2=l2, epochs=epochs, threads=1)
        rows, classes = self._rows(setting), self.problem.classes
        if options.solver == "lbfgs":
            rows, over = rows[learned], lambda *_: self._is_over()
            weights = solve(rows, numbers, labels, classes, options, over, sample_weight)
        else:
            training = ClassifierTrainer(
                rows, learned[numbers], labels, classes, options, sample_weight=sample_weight
            )
            for number in range(training.epochs):
                training.epoch(number, lambda _: self._is_over())
                if training.unfinished is not None:
                    break
            weights = training.weights
        if self._is_over():
            raise _Over
        return weights, {*labels.tolist()}

    def _is_over(self) -> bool:
        late = time.monotonic() > self._end
        return late or self._failed or self._received.number is not None

    def _out_of_fold(self, trials: Sequence[_Trial]) -> OutOfFold:
        scores, labels, kept = [], list[Sequence[int]](), [np.zeros(0, np.int64)]
        for held, trial in zip(self._held, trials, strict=True):
            if trial.scores is None:
                continue
            has = np.ones(len(held), dtype=bool) if trial.known is None else trial.known
            scores.append((trial.in_use() if trial.in_use else trial.scores)[has])
            labels += [self.problem.data.labels[i] for i in held[has]]
            kept.append(held[has])
        found = np.concatenate(scores or [np.zeros((0, self.problem.classes))])
        return OutOfFold(found, labels, self._weights[np.concatenate(kept)])


def choose(
    problem: Problem,
    seconds: float | None = None,
    reporter: Reporter = QUIET,
    received: ReceivedSignal | None = None,
) -> Choice | None:
    """Choose the settings that give the best results on held-out documents.

    If `seconds` is 0, the first candidate is chosen without a comparison.

    Returns
    -------
    Choice or None
        None if the options leave nothing to choose.

    Raises
    ------
    CorpusError
        There are too few documents for --tune.
    """
    stages, count = stages_of(problem, bool(seconds)), problem.data.held_together
    if seconds and count < MIN_TUNED:
        raise CorpusError(
            f"--tune={seconds:g}: {count} documents or sentences are not enough to choose "
            f"settings; provide at least {MIN_TUNED}, or omit --tune"
        )
    if not stages:
        return None
    first = dict(problem.features[0])
    if seconds == 0 or (seconds is None and count < MIN_COMPARED):
        return Choice(stages[0].candidates(problem, first)[0])
    return Search(problem, seconds or math.inf, reporter, received).run(stages, first)


def factors_without_unknown(rows: AnyRows, held: I64, learned: I64) -> F64:
    """Return the ratio of each held-out row's norm to its norm without unknown features.

    An unknown feature occurs in no training row. It has no weight, but lowers the other values of a
    row with unit length. A finished model has no columns for unknown features, so its scores are
    higher by this ratio.
    """
    is_known = np.zeros(rows.shape[1], dtype=bool)
    is_known[rows[learned].indices] = True
    out = rows[held]
    every = squared_lengths(out)
    known = squared_lengths(with_values(out, np.where(is_known[out.indices], out.data, 0)))
    found: F64 = np.sqrt(np.divide(every, known, out=np.ones_like(every), where=known > 0))
    return found


def _key(setting: Setting, measure: Measure, share: float) -> tuple[Any, ...]:
    return (*sorted(setting.items()), measure, share)

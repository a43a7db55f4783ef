"""The search for settings on held-out documents: ``classify train --tune``.

Successive halving (Karnin, Koren and Somekh 2013; Jamieson and Talwalkar 2016) in three stages:
loss and learning rate, features, epochs and L2 regularization. A trial has one thread and several
run at a time, so that the choice does not depend on the number of threads.
"""

import dataclasses
import math
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from scipy.sparse import csr_matrix

from dcme_w2v.declarations import flag_of, threads_of
from dcme_w2v.errors import CorpusError, DivergedError, UsageError
from dcme_w2v.numeric.arrays import F32, I64
from dcme_w2v.training.interrupts import Interrupted, ReceivedSignal
from dcme_w2v.training.progress import QUIET, Reporter

from .fit import Labeled, measure
from .metrics import Measures
from .options import FEW_CLASSES, MAX_BIAS, RATE_OF_HINGE, ClassifyOptions, resolved
from .solver import solve
from .trainer import ClassifierTrainer, Weights, length_and_steps

MIN_DOCUMENTS = 10
FOLDS, HELD_OUT = 5, 5000  # documents of a fold, at most
LEARNED = 40_000  # documents of a trial at most
SHARE, MIN_LEARNED = 4, 1000  # the first trials learn from one document in SHARE, or so many
CERTAIN = 1500  # documents held out for the last trials, in several folds
# Trials have the rates of the training, whose losses and rates they then rank as all documents do;
# L2 regularization is stronger with fewer documents, the same in proportion to the sum of losses.
LONGER, LONG, MANY = 20, 10, 20_000  # epochs at C = 1; with more documents than MANY
RATE_OF_RARE = 2  # times the default at C = 1, from FEW_CLASSES classes on
FEW, C_OF_FEW = 500, 10  # documents; with fewer, and fewer than columns, C = 10 is better than 1
BIAS_OF_SVM = 0.2  # for rows of unit length
CLEARLY = 0.75  # standard errors of an accuracy by which another candidate has to be better
HINGE_CLASSES = 5000  # with more, all classes take too long for each document
TABLES = 1 << 28  # weights of trials at the same time
RATES, EPOCHS = (1.0, 0.25, 0.0625), (5, 10)
L2 = {"softmax": (0.0, 1e-6), "hinge": (0.0, 3e-5)}
PATH = (1e-4, 1e-5, 1e-6, 1e-7, 1e-8)  # L2 of L-BFGS, each from the last one's weights

LOSSES = ("softmax", "hinge")
Setting = Mapping[str, Any]  # values of options by name
Key = tuple[tuple[str, Any], ...]


class Features(Protocol):
    """Documents under several settings of their features."""

    def choices(self) -> list[Setting]:
        """Return the settings to try, the present one first."""

    def matrix(self, setting: Setting) -> csr_matrix:
        """Return the documents under a setting, which may have other names as well."""


@dataclass(frozen=True)
class Rows:
    """Documents that are vectors, whose features are as they are."""

    rows: csr_matrix

    def choices(self) -> list[Setting]:
        """Return nothing to try."""
        return [{}]

    def matrix(self, setting: Setting) -> csr_matrix:
        """Return the documents."""
        return self.rows


@dataclass(frozen=True)
class Tuned:
    """What was chosen, and why.

    Attributes
    ----------
    setting : mapping
        Values of the options that were searched, by name.
    accuracy : float
        On documents held out; with several labels, the precision at 1. NaN if no trial ended.
    held_out : int
        Documents that it was measured on.
    trials : list of dict
        Of each trial its setting, the `documents` learned from, and the `accuracy`.
    seconds : float
    is_complete : bool
        Whether all trials were made; otherwise the time was over.
    """

    setting: Setting
    accuracy: float
    held_out: int
    trials: list[dict[str, Any]]
    seconds: float
    is_complete: bool

    @property
    def flags(self) -> str:
        """The choice as flags of the command."""
        return flags_of(self.setting)

    def options(
        self, given: ClassifyOptions, classes: int, multilabel: bool = False
    ) -> ClassifyOptions:
        """Return the given options with the choice, resolved."""
        return with_setting(given, self.setting, classes, multilabel)

    @property
    def record(self) -> dict[str, Any]:
        """For the model's JSON file."""
        accuracy = self.accuracy if math.isfinite(self.accuracy) else None
        return {
            "flags": self.flags, "accuracy": accuracy, "held_out": self.held_out,
            "seconds": round(self.seconds, 3), "complete": self.is_complete, "trials": self.trials,
        }  # fmt: skip

    @property
    def line(self) -> str:
        """The choice in words."""
        if not self.held_out:
            return f"--tune: no trial ended in {self.seconds:.1f} s; {self.flags}"
        over = "" if self.is_complete else "; the time was over before the last trial"
        return (
            f"--tune: {self.flags}, with an accuracy of {self.accuracy:.4f} on {self.held_out:,} "
            f"documents held out ({len(self.trials)} trials in {self.seconds:.1f} s{over})"
        )


class _Over(Exception):
    """The time is over, or a signal arrived; the argument is the best setting so far."""


@dataclass(frozen=True)
class _Level:
    """How much a trial learns from, and which folds are held out."""

    documents: int
    folds: int


class Search:
    """A search for the settings of a classifier.

    Parameters
    ----------
    features : Features
        The documents.
    labels : sequence of sequence of int
        Class indices of each document's labels.
    classes : int
        Number of classes.
    given : ClassifyOptions
        Not resolved; an option that is not None is not searched.
    seconds : float
        No trial goes on for longer.
    weights : ndarray of float32, shape (documents,), optional
        Weights of the documents.
    reporter : Reporter, optional
        Receives the number of trials.
    received : ReceivedSignal, optional
        A signal ends the search.

    Raises
    ------
    CorpusError
        There are too few documents.
    """

    path: tuple[float, ...] = PATH
    min_documents = MIN_DOCUMENTS

    def __init__(
        self,
        features: Features,
        labels: Sequence[Sequence[int]],
        classes: int,
        given: ClassifyOptions,
        seconds: float,
        weights: F32 | None = None,
        reporter: Reporter = QUIET,
        received: ReceivedSignal | None = None,
    ) -> None:
        count = len(labels)
        if count < self.min_documents:
            raise CorpusError(
                f"--tune={seconds:g}: {count} documents of {classes} classes are too few to choose "
                f"settings; give {MIN_DOCUMENTS} or more, or omit it"
            )
        self._features, self._labels, self._classes = features, labels, classes
        self._given, self._weights, self._seconds = given, weights, seconds
        self._reporter, self._received = reporter, received or ReceivedSignal()
        self._order = np.random.default_rng(given.seed).permutation(count)
        self._fold = min(max(1, count // FOLDS), HELD_OUT)
        learned = min(count - self._fold, LEARNED)
        self._full = _Level(learned, min(FOLDS, math.ceil(CERTAIN / self._fold)))
        self._first = _Level(min(learned, max(learned // SHARE, MIN_LEARNED)), 1)
        self._multilabel = any(len(one) > 1 for one in labels)
        self._has_many = classes >= FEW_CLASSES
        self._measure_names: tuple[str, ...] = ("accuracy", "precision_at_1")
        self._clearly = 0.0 if self._multilabel else CLEARLY
        self._found: dict[tuple[Key, _Level], float] = {}  # accuracies
        self._trials: list[dict[str, Any]] = []
        self._start, self._stop = time.monotonic(), False

    def run(self) -> Tuned:
        """Return the settings that predict held-out documents best.

        Raises
        ------
        Interrupted
            A signal arrived.
        """
        self._reporter.stage("choosing the settings", None, "trials")
        best, is_complete = self._defaults(), False
        try:
            for candidates in self._stages():
                best = self._halve(best, candidates(best))
            is_complete = True
        except _Over as over:
            best = over.args[0]
        if self._received.number is not None:
            raise Interrupted(
                f"stopped by {self._received.name} while choosing the settings; nothing was "
                f"written; the best so far: {flags_of(best)}",
                self._received.number,
            )
        levels = [level for key, level in self._found if key == _key(best)]
        level = max(levels, key=lambda one: (one.documents, one.folds), default=None)
        return Tuned(
            best,
            math.nan if level is None else self._found[_key(best), level],
            0 if level is None else level.folds * self._fold,
            self._trials,
            time.monotonic() - self._start,
            is_complete,
        )

    # ---- settings to try ----

    def _stages(self) -> Sequence[Callable[[Setting], list[Setting]]]:
        """Return what gives the candidates of each stage, from the best setting so far."""
        return (self._losses, self._feature_settings, self._lengths)

    def _defaults(self) -> Setting:
        """Return the options that are searched, with their defaults."""
        full, given = resolved(self._given, self._classes), self._given
        names = ["l2"]
        if full.solver == "sgd":
            names = ["loss"] if self._may_be_hinge() else []
            names += ["lr"] if given.min_lr is None else []  # the two are one schedule
            names += ["epochs", "l2"]
        found = {name: getattr(full, name) for name in names if getattr(given, name) is None}
        return {**found, **self._features.choices()[0]}

    def _may_be_hinge(self) -> bool:
        try:
            resolved(replace(self._given, loss="hinge"), self._classes)
        except UsageError:
            return False
        return self._classes <= HINGE_CLASSES

    def _losses(self, best: Setting) -> list[Setting]:
        """Return losses and learning rates; with L-BFGS, the path of regularization."""
        if self._given.solver == "lbfgs":
            return [best, *({**best, "l2": l2} for l2 in self.path)] if "l2" in best else []
        found: list[Setting] = []
        losses = LOSSES if "loss" in best else (self._given.loss,)
        if "hinge" in losses and not self._multilabel:
            found += self._near_optimum(best)
        for loss in losses:
            own = {**best, "loss": loss} if "loss" in best else dict(best)
            if "lr" not in best:
                found.append(own)
                continue
            default = self._options({**own, "lr": None}).lr or 0.0
            found += [{**own, "lr": default * factor} for factor in RATES]
        return found

    def _near_optimum(self, best: Setting) -> list[Setting]:
        """Return the setting of `_like_svm`; of few documents, with weaker L2 regularization first.

        At C = 1 a class with somewhat more documents than the others is predicted too often.
        """
        svm, columns = self._like_svm(best), self._features.matrix(best).shape[1]
        if "l2" not in svm or len(self._labels) >= min(FEW, columns):
            return [svm]
        return [{**svm, "l2": float(f"{svm['l2'] / C_OF_FEW:.2g}")}, svm]

    def _like_svm(self, best: Setting) -> Setting:
        """Return the setting that is near LinearSVC at C = 1, as far as options are not given.

        The objective of LinearSVC is this one with l2 = 1 / (2 C n). With many classes, most of
        which are rare, a higher learning rate needs half of the epochs; with many documents as
        well, the defaults of the hinge loss are as good.
        """
        near: dict[str, Any] = {"loss": "hinge", "lr": RATE_OF_HINGE}
        count, is_of_rare = len(self._labels), self._has_many and not self._multilabel
        if not is_of_rare or count <= MANY:
            is_long = is_of_rare or self._multilabel or count > MANY
            near["epochs"] = LONG if is_long else LONGER
            near["l2"] = float(f"{0.5 / count:.2g}")
            near["lr"] *= RATE_OF_RARE if is_of_rare else 1
        found = {**best, **{name: near[name] for name in best if name in near}}
        if self._given.bias is None and not (self._has_many or self._multilabel):
            rows = self._features.matrix(best)
            square, _ = length_and_steps(rows, np.arange(rows.shape[0]), self._weights)
            bias = BIAS_OF_SVM * math.sqrt(square or 1.0)
            found["bias"] = min(float(f"{bias:.2g}"), MAX_BIAS)
        return found

    def _feature_settings(self, best: Setting) -> list[Setting]:
        return [{**best, **choice} for choice in self._features.choices()]

    def _lengths(self, best: Setting) -> list[Setting]:
        """Return numbers of epochs and L2 regularizations."""
        if self._given.solver == "lbfgs":
            return []
        found: list[Setting] = [best]
        if "epochs" in best:
            found = [{**best, "epochs": epochs} for epochs in EPOCHS]
        if "l2" in best:
            penalties = L2[self._options(best).loss or LOSSES[0]]
            found = [{**one, "l2": l2} for one in found for l2 in penalties]
        return [best, *found]

    def _options(self, setting: Setting) -> ClassifyOptions:
        options = with_setting(self._given, setting, self._classes, self._multilabel)
        return replace(options, threads=1)

    # ---- halving ----

    def _halve(self, best: Setting, candidates: Sequence[Setting]) -> Setting:
        """Return the best setting: all learn from some documents, a third of them from all.

        The first candidate is kept unless another is clearly better: with more documents, as the
        training has, a small difference may be the opposite.
        """
        left = list({_key(one): one for one in [best, *candidates]}.values())
        if len(left) > 2 and self._first != self._full:
            ranked, count = self._ranked(left, self._first, best), max(2, math.ceil(len(left) / 3))
            # pairs of words and character n-grams pay with all documents only, so they are
            # always measured on them, as are the settings that are taken without a search
            kept = [best, candidates[0]]
            more = [
                one for one in ranked[count:]
                if one in kept or one.get("ngrams", 1) > best.get("ngrams", 1)
                or one.get("subwords") != best.get("subwords")
            ]  # fmt: skip
            left, best = ranked[:count] + more, ranked[0]
        if len(left) < 2:
            return best
        found, first = self._ranked(left, self._full, best)[0], candidates[0]
        lower, highest = self._accuracy(first), self._accuracy(found)
        error = math.sqrt(max(highest * (1 - highest), 0.0) / (self._full.folds * self._fold))
        return found if highest > lower + self._clearly * error else first

    def _ranked(self, settings: Sequence[Setting], level: _Level, best: Setting) -> list[Setting]:
        """Return settings in descending order of their accuracy; of equal ones in their order.

        Raises
        ------
        _Over
            With the best one that was measured, or `best`.
        """
        is_over = not self._measure(settings, level)
        known = [one for one in settings if (_key(one), level) in self._found]
        known.sort(key=lambda one: -self._found[_key(one), level])
        if is_over:
            raise _Over(known[0] if known else best)
        return known

    def _measure(self, settings: Sequence[Setting], level: _Level) -> bool:
        """Measure settings side by side; returns whether there was time for all."""
        new = [one for one in settings if (_key(one), level) not in self._found]
        paths = self._paths(new)
        size = 1
        for one in new:
            if self._is_over():
                return False
            size = max(size, self._features.matrix(one).shape[1] * self._classes)
        threads = min(threads_of(self._given.threads), TABLES // size)
        with ThreadPoolExecutor(max(1, threads)) as pool:
            try:
                jobs = [
                    [pool.submit(self._trial, path, level, fold) for fold in range(level.folds)]
                    for path in paths
                ]
                for path, own in zip(paths, jobs, strict=True):
                    self._note(path, level, [job.result() for job in own])
            except BaseException:
                self._stop = True
                raise
        return all((_key(one), level) in self._found for one in new)

    def _paths(self, settings: Sequence[Setting]) -> list[list[Setting]]:
        """Return paths, settings trained one after the other: with L-BFGS, of the same features."""
        if self._given.solver != "lbfgs":
            return [[one] for one in settings]
        found: dict[Key, list[Setting]] = {}
        for one in settings:
            rest = {name: value for name, value in one.items() if name != "l2"}
            found.setdefault(_key(rest), []).append(one)
        # the strongest regularization takes the fewest steps
        return [sorted(path, key=lambda one: -one.get("l2", 0.0)) for path in found.values()]

    def _accuracy(self, setting: Setting) -> float:
        """Return the accuracy of a setting on all folds; 0 if it was not measured."""
        return self._found.get((_key(setting), self._full), 0.0)

    def _note(self, path: Sequence[Setting], level: _Level, folds: list[list[float]]) -> None:
        """Note the accuracies of settings that were measured on every fold."""
        for number, setting in enumerate(path):
            if any(len(one) <= number for one in folds):
                return
            accuracy = float(np.mean([one[number] for one in folds]))
            self._found[_key(setting), level] = accuracy
            trial = {**setting, "documents": level.documents, "accuracy": accuracy}
            self._trials.append(trial)
            self._reporter.advance(len(self._trials), accuracy=accuracy)

    # ---- a trial ----

    def _trial(self, path: Sequence[Setting], level: _Level, fold: int) -> list[float]:
        """Return the accuracies on a fold of settings, trained one after the other."""
        begin, found = fold * self._fold, []
        held = self._order[begin : begin + self._fold]
        rest = np.concatenate([self._order[:begin], self._order[begin + self._fold :]])
        learned, weights = np.sort(rest[: level.documents]), None
        for setting in path:
            if self._is_over():
                break
            try:
                weights = self._learned(setting, learned, weights)
                if self._is_over():
                    break
                found.append(self._quality(weights, self._some(setting, held)))
            except DivergedError:
                found.append(0.0)
        return found

    def _quality(self, weights: Weights, held: Labeled) -> float:
        """Return the accuracy on held-out documents, or the other measure that is searched for."""
        figures = measure(weights, held, Measures(self._classes, self._multilabel), 1)
        known = [figures[name] for name in self._measure_names if name in figures]
        return float(known[0]) if known else 0.0

    def _learned(self, setting: Setting, learned: I64, last: Weights | None) -> Weights:
        """Train on some documents; L-BFGS starts at the last weights."""
        options, data = self._options(setting), self._some(setting, learned)
        l2 = (options.l2 or 0.0) * len(self._labels) / len(learned)
        options = replace(options, l2=l2)
        documents, labels = data.instances()
        task = (data.matrix, documents, labels, self._classes)
        sample_weight = None if data.weights is None else data.weights[documents]
        if options.solver == "lbfgs":
            watch = lambda iteration, loss: self._is_over()  # noqa: E731
            return solve(*task, options, watch, sample_weight, last)
        training = ClassifierTrainer(*task, options, sample_weight=sample_weight)
        for number in range(training.epochs):
            training.epoch(number, lambda progress: self._is_over())
            if training.unfinished is not None:
                break
        return training.weights

    def _some(self, setting: Setting, chosen: I64) -> Labeled:
        data = Labeled(self._features.matrix(setting), self._labels, self._weights)
        return data.some(chosen)

    def _is_over(self) -> bool:
        late = time.monotonic() - self._start > self._seconds
        return late or self._stop or self._received.number is not None


def with_setting(
    given: ClassifyOptions, setting: Setting, classes: int, multilabel: bool = False
) -> ClassifyOptions:
    """Return options with the values of a setting, resolved."""
    names = {item.name for item in dataclasses.fields(ClassifyOptions)}
    own = {name: value for name, value in setting.items() if name in names}
    return resolved(replace(given, **own), classes, multilabel)


def flags_of(setting: Setting) -> str:
    """Return a setting as flags of the command."""
    return " ".join(_flag(name, value) for name, value in setting.items())


def _flag(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return flag_of(name) if value else flag_of(f"no-{name}")
    return f"{flag_of(name)} {value:g}" if isinstance(value, float) else f"{flag_of(name)} {value}"


def _key(setting: Setting) -> Key:
    return tuple(sorted(setting.items()))

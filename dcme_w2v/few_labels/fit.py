"""Train an initial model, levels and a final model on labeled and unlabeled rows.

This is the procedure of Suzuki and Nagata (AAAI 2014), but with log ratios as impacts, weights of
the levels learned from out-of-fold scores, and several rounds. The levels form a fused model, which
labels the unlabeled documents for the final model.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse import csr_matrix

from dcme_w2v.classify.calibration import NEVER, likeliest_factors
from dcme_w2v.classify.choose import Problem, folds_of
from dcme_w2v.classify.choose import choose as choose_settings
from dcme_w2v.classify.fit import Job, fit_linear
from dcme_w2v.classify.labeled import Labeled
from dcme_w2v.classify.levels import BIAS, Evidence
from dcme_w2v.classify.options import ClassifyOptions
from dcme_w2v.classify.trainer import Weights
from dcme_w2v.errors import CorpusError, UsageError
from dcme_w2v.numeric.arrays import F64, I64, Bools
from dcme_w2v.numeric.sparse_rows import ones
from dcme_w2v.training.progress import QUIET, Reporter

from . import initial
from .evidence import Tied, evidence_of, learn
from .initial import ScoredRows
from .options import FusedOptions
from .statistics import Statistics, check_values, sum_over

ALL = -1  # dictionary key of the model that is trained on all folds
# The final model is trained on this fraction of the predictions, the most confident ones.
CONFIDENT_SHARE = 0.75
TEACHER_WEIGHT = 0.5  # weight of the fused model's scores in the final model


class TrainingRows:
    """Labeled and unlabeled rows with the same columns, and the training options.

    Parameters
    ----------
    labeled : csr_matrix of float32, shape (documents, features)
    labels : ndarray of int64, shape (documents,)
        The class of each labeled row, below `classes`.
    unlabeled : csr_matrix of float32, shape (others, features)
    classes : int
        Number of classes.
    options : FusedOptions
        Options with all defaults filled in.
    documents : ndarray of int64, shape (documents,), optional
        The document index of each row, ascending; a document with several labels has one row per
        label.
    groups : ndarray of int64, shape (documents,), optional
        The group of each row, ascending; rows of a group, such as the tokens of a sentence, share a
        fold (default: `documents`).
    """

    def __init__(
        self,
        labeled: csr_matrix,
        labels: I64,
        unlabeled: csr_matrix,
        classes: int,
        options: FusedOptions,
        documents: I64 | None = None,
        groups: I64 | None = None,
    ) -> None:
        self.labels, self.classes, self.options = labels, classes, options
        self.threads = options.threads or 1
        self.labeled = ScoredRows(labeled, self.threads)
        self.unlabeled = self.fused = ScoredRows(unlabeled, self.threads)
        if options.is_paper:
            self.fused = ScoredRows(ones(unlabeled), self.threads)
        self.documents = np.arange(len(labels)) if documents is None else documents
        self.groups = self.documents if groups is None else groups

    def part(self, kept: Bools) -> TrainingRows:
        """Return a copy of the data that has only some of the labeled rows."""
        found = copy.copy(self)
        # Drop the cached classifier options, because they were chosen for all labeled rows.
        found.__dict__.pop("classifier", None)
        found.labels = self.labels[kept]
        found.documents, found.groups = self.documents[kept], self.groups[kept]
        found.labeled = ScoredRows(self.labeled.matrix[kept], self.threads)
        return found

    def features_of_levels(self) -> csr_matrix:
        """Return the labeled rows from which fused features are computed."""
        rows = self.labeled.matrix
        return ones(rows) if self.options.is_paper else rows

    def folds(self) -> I64:
        """Assign labeled rows to folds, stratified by class, with each group in a single fold."""
        random = np.random.default_rng(self.options.seed)
        return folds_of(self.labels, self.options.folds, random, self.groups)

    def with_all_labels(self) -> Labeled:
        """Merge the rows of each document into one row with all of its labels."""
        _, first = np.unique(self.documents, return_index=True)
        labels = [own.tolist() for own in np.split(self.labels, first[1:])]
        return Labeled(self.labeled.matrix[first], labels, groups=self.groups[first])

    @functools.cached_property
    def classifier(self) -> ClassifyOptions:
        """The options that `classify train` would choose for these rows."""
        data = self.with_all_labels()
        several = len(self.labels) > len(data.labels)
        given = ClassifyOptions(
            loss="hinge" if several else None, threads=self.threads, seed=self.options.seed
        )
        is_by_token = not np.array_equal(self.documents, self.groups)
        problem = Problem(data, self.classes, given, several)
        choice = None if is_by_token else choose_settings(problem)
        return problem.options(choice.setting if choice else {})

    def supervised(self) -> Weights:
        """Train like `classify train`, but never predict a class that has no documents."""
        # With several threads, results would differ between runs.
        options = replace(self.classifier, threads=1)
        data, counts = self.with_all_labels(), np.bincount(self.labels, minlength=self.classes)
        several = len(self.labels) > len(data.labels)
        problem = Problem(data, self.classes, options, several)
        weights = fit_linear(problem, Job(chooses=False, calibrates=several)).scorer
        assert isinstance(weights, Weights)
        weights.offset[counts == 0] = NEVER
        return weights

    def train_on_both(self, teacher: Weights, count: int) -> Weights:
        """Train on labeled documents and on another model's most confident predictions."""
        decided, confidence = self.unlabeled.decisions(teacher)
        taken = np.sort(np.argsort(-confidence, kind="stable")[:count])
        pieces = [self.labeled.matrix, self.unlabeled.matrix[taken]]
        rows = sparse.vstack(pieces, format="csr")
        both = np.concatenate([self.labels, decided[taken]])
        return initial.train(rows, both, self.classes, initial.L2, self.threads)


@dataclass
class Fitted:
    """A fitted linear model and, for fused models, the levels.

    Attributes
    ----------
    weights : Weights
        The model in the form of the classifiers.
    final : str
        "distill", "levels" (the levels alone), "beside", "supervised" (the classifier of `classify
        train`), "self-training", or "sum" of the scores of all but "levels".
    evidence : Evidence or None
        The levels; with "distill" and "sum", the levels of the teacher.
    tied : Tied or None
        Weights of the levels, and class biases.
    binary : bool
        Whether all nonzero feature values count as 1.
    record : dict
        Statistics of the fit.
    """

    weights: Weights
    final: str
    evidence: Evidence | None = None
    tied: Tied | None = None
    binary: bool = False
    record: dict[str, Any] = field(default_factory=dict)

    def scores(self, matrix: csr_matrix, threads: int) -> F64:
        """Return an array of class scores for each row, shape (rows, classes)."""
        rows = ones(matrix) if self.binary else matrix
        return ScoredRows(rows, threads).all_scores(self.weights)

    def scale(self, factor: float) -> None:
        """Multiply all scores by a factor."""
        self.weights.scale(factor)
        if self.tied is not None:
            self.tied = Tied(factor * self.tied.weights, factor * self.tied.biases)


def check_data(data: TrainingRows, names: list[str] | None = None) -> list[str]:
    """Raise an error if the data does not allow training; otherwise, return warnings.

    Parameters
    ----------
    data : TrainingRows
    names : list of str, optional
        Names of the classes.

    Raises
    ------
    CorpusError, UsageError
        Some data is missing, which the message names.
    """
    options, count = data.options, len(np.unique(data.groups))
    check_values(data.labeled.matrix, "labeled")
    check_values(data.unlabeled.matrix, "unlabeled")
    if count < 2:
        raise CorpusError(
            f"at least two labeled documents are required, but there are {count}; label more "
            "documents"
        )
    if options.folds > count:
        raise UsageError(
            f"there are only {count} labeled documents, fewer than --folds={options.folds}; label "
            "more documents, or lower --folds"
        )
    if not len(data.unlabeled):
        raise CorpusError(
            "there are no unlabeled documents; pass some with --unlabeled, or use classify train "
            "instead"
        )
    columns = data.labeled.matrix.shape[1]
    there = np.bincount(data.labeled.matrix.indices, minlength=columns) > 0
    shared = there & (np.bincount(data.unlabeled.matrix.indices, minlength=columns) > 0)
    if not shared.any():
        raise CorpusError(
            f"no unlabeled document contains any of the {int(there.sum()):,} features that the "
            "labeled documents contain; use unlabeled documents that resemble the labeled documents"
        )
    few = np.flatnonzero(np.bincount(data.labels, minlength=data.classes) < options.folds)
    if len(few) and (options.initial == "supervised" or options.choose):
        shown = ", ".join(str(names[c]) if names else str(c) for c in few[:5])
        more = f" and {len(few) - 5} more" if len(few) > 5 else ""
        return [
            f"warning: these classes have fewer labeled documents than the {options.folds} folds, "
            f"so some folds are trained without these classes: {shown}{more}"
        ]
    return []


def fit_models(data: TrainingRows, of_all: bool, reporter: Reporter = QUIET) -> dict[str, Fitted]:
    """Fit models, and return a dictionary that maps the name of each model to the model.

    Unless `of_all` is set, only the model that the option `final` selects is returned.
    """
    weights, options = data.supervised(), data.options
    found = {"supervised": Fitted(copy.deepcopy(weights), "supervised")}
    final = str(options.final)
    if options.initial == "self-training":
        trained = _self_trained(data, weights, reporter)
        found["self-training"] = Fitted(trained, "self-training")
        sums = _statistics(data, Fitted(trained, "levels"), "round 1", reporter)
        last = fit_rounds(data, sums, reporter)
    else:
        last = fit_out_of_fold(data, weights, final == "beside", reporter)
    last = distill(data, last, reporter) if final == "distill" else last
    found[final] = last
    if not of_all:
        return {final: last}
    once = copy.copy(data)
    once.options = replace(options, rounds=1)
    return found | {"beside": fit_out_of_fold(once, weights, True, reporter)}


def _self_trained(data: TrainingRows, weights: Weights, reporter: Reporter) -> Weights:
    """Train a model on its most confident predictions, using more predictions in each step."""
    reporter.stage("self-training", None, "documents")
    for step in range(1, initial.SELF_TRAINING_STEPS + 1):
        count = len(data.unlabeled) * step // initial.SELF_TRAINING_STEPS
        weights = data.train_on_both(weights, count)
    return weights


def fit_rounds(data: TrainingRows, sums: Statistics, reporter: Reporter) -> Fitted:
    """Fit levels and level weights in several rounds, each time on all labeled rows.

    The initial model, whose statistics are `sums`, was trained on all labels.
    """
    found: Fitted | None = None
    rounds = list[dict[str, Any]]()
    for number in range(data.options.rounds or 1):
        own = _statistics(data, found, f"round {number + 1}", reporter) if found else sums
        evidence = evidence_of(own, data.options)
        rounds.append(_round_record(own, evidence))
        parts = evidence.parts(data.features_of_levels())
        found = _fused(data, evidence, learn(parts, data.labels))
    assert found is not None
    return replace(found, record={"rounds": rounds})


def fit_out_of_fold(
    data: TrainingRows, weights: Weights, beside: bool, reporter: Reporter
) -> Fitted:
    """Fit levels in several rounds, and learn the level weights from out-of-fold levels.

    Each fold has its own model, trained on the other folds, and the levels of this model give the
    columns for the fold's documents. Weights learned on documents that the initial model was
    trained on would trust that model too much.
    """
    options, folds = data.options, data.folds()
    bad, own = np.zeros(len(folds), dtype=bool), {ALL: weights}
    scores = np.zeros((len(folds), data.classes))
    for fold in np.unique(folds):
        rest = folds != fold
        if len(np.unique(data.labels[rest])) < 2:  # training requires at least two classes
            continue
        bad |= ~rest & ~np.isin(data.labels, data.labels[rest])
        own[fold] = data.part(rest).supervised()
        scores[~rest] = data.part(~rest).labeled.all_scores(own[fold])
    bad |= ~np.isin(folds, list(own))
    if bad.all():
        raise CorpusError(
            "no class has two labeled documents; label more documents, or use "
            "--initial=self-training"
        )
    (factor,), _ = likeliest_factors([scores[~bad]], data.labels[~bad, None].tolist())
    for one in own.values():  # scale the weights, because the models' scores will be summed
        one.table *= np.float32(factor)
    models = {fold: Fitted(one, "levels") for fold, one in own.items()}
    bases = own if beside else dict.fromkeys(own)
    rounds, sums = [], list[Statistics]()
    for number in range(options.rounds or 1):
        parts, of_fold = np.zeros((len(folds), data.classes, options.levels + beside)), {}
        for fold, model in models.items():
            stage = f"round {number + 1}" + ("" if fold == ALL else f", fold {fold + 1}")
            found = _statistics(data, model, stage, reporter)
            of_fold[fold] = evidence_of(found, options)
            if fold == ALL:
                sums.append(found)
            else:
                out = folds == fold
                parts[out] = _parts(data.part(out), of_fold[fold], bases[fold])
        tied = learn(parts[~bad], data.labels[~bad])
        right = tied.scores(parts[~bad]).argmax(axis=1) == data.labels[~bad]
        accuracy = round(float(right.mean()), 6)
        rounds.append(_round_record(sums[-1], of_fold[ALL], fold_accuracy=accuracy))
        models = {fold: _fused(data, one, tied, bases[fold]) for fold, one in of_fold.items()}
    record = {"rounds": rounds, "left_out": int(bad.sum())}
    return replace(models[ALL], record=record)


def distill(data: TrainingRows, fused: Fitted, reporter: Reporter = QUIET) -> Fitted:
    """Train the final model on the labels and the fused model's most confident predictions.

    The least certain quarter of the predictions is left out, because many of them are wrong. The
    weighted scores of the fused model are added, because the two models make different errors.
    """
    reporter.stage("distillation", None, "documents")
    count = int(np.ceil(CONFIDENT_SHARE * len(data.unlabeled)))
    learned = data.train_on_both(fused.weights, count)
    weights = combined([(1.0, learned), (TEACHER_WEIGHT, fused.weights)])
    return replace(fused, weights=weights, final="distill")


def _statistics(data: TrainingRows, model: Fitted, stage: str, reporter: Reporter) -> Statistics:
    """Compute the statistics of unlabeled documents from a model's predicted probabilities."""
    reporter.stage(stage, len(data.unlabeled), "documents")
    rows = data.fused if model.evidence is not None else data.unlabeled
    batches = rows.log_probabilities(model.weights)
    return sum_over(data.fused.matrix, batches, data.classes, reporter)


def _parts(data: TrainingRows, evidence: Evidence, base: Weights | None) -> F64:
    """Return the fused features of labeled rows, with the scores of the model `base` appended.

    A class without training documents in the initial model gets the lowest of the other scores.
    """
    parts = evidence.parts(data.features_of_levels())
    if base is None:
        return parts
    scores = data.labeled.all_scores(base)
    unseen = base.offset <= NEVER
    scores[:, unseen] = scores[:, ~unseen].min(axis=1, keepdims=True)
    return np.concatenate([parts, scores[:, :, None]], axis=2)


def _fused(
    data: TrainingRows, evidence: Evidence, tied: Tied, base: Weights | None = None
) -> Fitted:
    """Convert levels and level weights to a fitted linear model."""
    final = "levels" if base is None else "beside"
    weights = linear(evidence, tied, base)
    return Fitted(weights, final, evidence, tied, data.options.is_paper)


def linear(evidence: Evidence, tied: Tied, base: Weights | None = None) -> Weights:
    """Return the linear model that is equivalent to the given levels and level weights."""
    count = len(evidence.values)
    table = np.append(evidence.weights(tied.weights[:count]), np.float32(tied.biases)[None], axis=0)
    weights = Weights(len(table) - 1, len(tied.biases), BIAS)
    weights.set(table)
    return weights if base is None else combined([(1.0, weights), (tied.weights[count], base)])


def combined(parts: Sequence[tuple[float, Weights]]) -> Weights:
    """Return the linear model whose scores are a weighted sum of several models' scores."""
    first = parts[0][1]
    found = Weights(first.features, first.classes, BIAS)
    table = np.zeros((first.features + 1, first.classes), dtype=np.float32)
    for factor, one in parts:
        own = one.get()
        own[-1] *= one.bias / BIAS
        table += np.float32(factor) * own
        found.offset[one.offset <= NEVER] = NEVER
    found.set(table)
    return found


def _round_record(sums: Statistics, evidence: Evidence, **more: float) -> dict[str, Any]:
    """Return the statistics of a training round for the model's record."""
    found = {"documents": sums.documents, "without_features": sums.empty}
    return found | {"pairs": int(evidence.levels.nnz), "loss": evidence.loss, **more}

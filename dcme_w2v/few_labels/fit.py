"""Fitting fused features to labelled and unlabelled rows: initial model, rounds, final model.

The procedure of Suzuki & Nagata (AAAI 2014) with log-odds for impacts, weights learnt out of fold,
and more than one round. Called by `dcme_w2v.few_labels.jobs` and `dcme_w2v.few_labels.estimator`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csr_matrix

from dcme_w2v.classify.metrics import log_softmax
from dcme_w2v.classify.model import Predictor
from dcme_w2v.classify.trainer import Weights
from dcme_w2v.errors import CorpusError, UsageError
from dcme_w2v.few_labels import initial
from dcme_w2v.few_labels.evidence import SHRUNK, Evidence, evidence_of
from dcme_w2v.few_labels.initial import Rows
from dcme_w2v.few_labels.options import FusedOptions, kept_pairs
from dcme_w2v.few_labels.statistics import Statistics, check_values, sum_over, sum_screened
from dcme_w2v.few_labels.tied import Tied, learn
from dcme_w2v.training.progress import Quiet, Reporter

OF_LEVELS = ("tied", "beside", "columns")  # final models that are made of levels
SCREENED = 1 << 20  # features above which statistics are of those only that --keep may keep
BIAS = 1.0  # value of the constant feature of a fused model
L2_OF_COLUMNS = 1e-4
SUREST = 0.75  # share of the fused model's decisions that teach
TEACHER = 0.5  # weight of its scores beside those of the model that it teaches


class Data:
    """Labelled and unlabelled rows of the same columns.

    Parameters
    ----------
    labelled : csr_matrix of float32, shape (documents, features)
    labels : ndarray of int64, shape (documents,)
        A class each, below `classes`.
    unlabelled : csr_matrix of float32, shape (others, features)
    classes : int
    options : FusedOptions
        Resolved.
    groups : ndarray of int64, shape (documents,), optional
        Numbers of documents, ascending: one with several labels is there once for each.
    """

    def __init__(
        self,
        labelled: csr_matrix,
        labels: NDArray[np.int64],
        unlabelled: csr_matrix,
        classes: int,
        options: FusedOptions,
        groups: NDArray[np.int64] | None = None,
    ) -> None:
        self.labels, self.classes, self.options = labels, classes, options
        self.threads = options.threads or 1
        self.labelled, self.unlabelled = (
            Rows(labelled, self.threads),
            Rows(unlabelled, self.threads),
        )
        self.groups = np.arange(len(labels)) if groups is None else groups
        binary = options.impact == "paper"
        self.fused_labelled = self.labelled if not binary else Rows(ones(labelled), self.threads)
        self.fused = self.unlabelled if not binary else Rows(ones(unlabelled), self.threads)

    def part(self, kept: NDArray[np.bool_]) -> Data:
        """Return the data with some of the labelled documents only."""
        found = object.__new__(Data)
        found.__dict__.update(self.__dict__)
        found.labels, found.groups = self.labels[kept], self.groups[kept]
        found.labelled = Rows(csr_matrix(self.labelled.matrix[kept]), self.threads)
        found.fused_labelled = found.labelled
        if self.fused_labelled is not self.labelled:
            found.fused_labelled = Rows(ones(found.labelled.matrix), self.threads)
        return found

    def folds(self, seed: int) -> NDArray[np.int64]:
        """Return a fold for each labelled document, by class; one document is in one fold."""
        _, first = np.unique(self.groups, return_index=True)
        random = np.random.default_rng(seed)
        own = initial.folds_of(self.labels[first], self.options.folds, random)
        return own[np.searchsorted(self.groups[first], self.groups)]


@dataclass
class Fitted:
    """A linear model of rows, and what it is made of.

    Attributes
    ----------
    weights : Weights
        The model as classifiers have it.
    final : str
        "teach", "tied", "beside", "columns", "maxent" or "self-training".
    evidence : Evidence or None
        The levels; with "teach" those of the model that has taught this one.
    tied : Tied or None
        Their weights and the biases.
    base : Weights or None
        beside: the initial model, whose scores are level K + 1.
    binary : bool
        Whether levels are of features whose values count as 1.
    record : dict
        What was done.
    sums : Statistics or None
        The statistics of the first round.
    """

    weights: Weights
    final: str
    evidence: Evidence | None = None
    tied: Tied | None = None
    base: Weights | None = None
    binary: bool = False
    record: dict[str, Any] = field(default_factory=dict)
    sums: Statistics | None = field(default=None, repr=False)

    @property
    def predicts_binary(self) -> bool:
        """Whether the weights, too, are of features whose values count as 1."""
        return self.binary and self.final in OF_LEVELS


def ones(matrix: csr_matrix) -> csr_matrix:
    """Return a matrix whose entries are all 1."""
    data = np.ones_like(matrix.data)
    return csr_matrix((data, matrix.indices, matrix.indptr), shape=matrix.shape)


def check_data(data: Data, names: list[str] | None = None, counted: bool = False) -> list[str]:
    """Raise if there is nothing to learn; returns warnings.

    Parameters
    ----------
    data : Data
    names : list of str, optional
        Of the classes.
    counted : bool
        Whether there are statistics of unlabelled documents already.

    Raises
    ------
    CorpusError, UsageError
        The message says what is missing.
    """
    options, count = data.options, len(np.unique(data.groups))
    check_values(data.labelled.matrix, "labelled")
    check_values(data.unlabelled.matrix, "unlabelled")
    if count < 2:
        raise CorpusError(f"there is {count} labelled document; give two or more")
    if options.folds > count:
        raise UsageError(f"--folds={options.folds}: there are {count} labelled documents")
    if counted:
        return []
    if not len(data.unlabelled):
        raise CorpusError("no unlabelled documents; give --unlabelled, or use classify train")
    columns = data.labelled.matrix.shape[1]
    there = np.bincount(data.labelled.matrix.indices, minlength=columns) > 0
    shared = there & (np.bincount(data.unlabelled.matrix.indices, minlength=columns) > 0)
    if not shared.any():
        raise CorpusError(
            f"the unlabelled documents have 0 of the {int(there.sum()):,} features of the "
            "labelled ones: all impacts are 0; give other documents"
        )
    few = np.flatnonzero(np.bincount(data.labels, minlength=data.classes) < options.folds)
    if len(few) and (options.initial == "supervised" or options.choose):
        shown = ", ".join(str(names[c]) if names else str(c) for c in few[:5])
        more = f" and {len(few) - 5} more" if len(few) > 5 else ""
        return [
            f"warning: fewer labelled documents than {options.folds} folds: {shown}{more}; some "
            "folds have no evidence for them"
        ]
    return []


def fit(data: Data, reporter: Reporter | None = None) -> Fitted:
    """Fit fused features.

    Parameters
    ----------
    data : Data
        Checked by `check_data`.
    reporter : Reporter, optional
        Takes the progress.
    """
    reporter = reporter or Quiet()
    record: dict[str, Any] = {}
    if data.options.choose:
        from dcme_w2v.few_labels.choose import choose

        options, final, record["choice"] = choose(data, reporter)
        data.options = options
    else:
        final = str(data.options.final)
    found = fit_final(data, final, reporter)
    found.record = record | found.record
    return found


def fit_final(data: Data, final: str, reporter: Reporter | None = None) -> Fitted:
    """Fit the model of one kind."""
    reporter = reporter or Quiet()
    l2 = _l2(data)
    weights = initial.train(data.labelled.matrix, data.labels, data.classes, l2, data.threads)
    record: dict[str, Any] = {"l2": l2}
    if final == "maxent":
        return Fitted(weights, final, record=record)
    if data.options.initial == "self-training" or final == "self-training":
        reporter.stage("self-training", None, "documents")
        weights = initial.self_train(data.labelled.matrix, data.labels, data.unlabelled, weights)
        if final == "self-training":
            return Fitted(weights, final, record=record)
        found = fit_rounds(data, weights, reporter)
    else:
        found = fit_out_of_fold(data, weights, l2, final == "beside", reporter)
    found.record = record | found.record
    return finished(data, found, final, reporter)


def finished(data: Data, found: Fitted, final: str, reporter: Reporter) -> Fitted:
    """Return the final model that is made by means of a fused one."""
    if final == "teach":
        reporter.stage("teaching", None, "documents")
        return distill(data, found)
    if final == "columns":
        return _columns(data, found)
    found.final = final
    return found


def fit_from_statistics(
    data: Data,
    reference: Predictor | None,
    parts: Statistics | None,
    write: Callable[[Statistics], None],
    reporter: Reporter,
) -> Fitted:
    """Fit without folds, by a given initial model or with statistics to add or to write.

    Parameters
    ----------
    data : Data
        Perhaps without unlabelled documents where there are parts.
    reference : Predictor or None
        The initial model.
    parts : Statistics or None
        Of documents that were counted before.
    write : callable
        Gets the statistics of the first round.
    """
    if reference is None:
        found = fit(data, reporter)
        assert found.sums is not None
        if found.sums.rows is not None:
            raise UsageError("--statistics: requires all pairs; omit --keep, or lower --features")
        write(found.sums)
        return found
    pieces = reference.log_probabilities(data.unlabelled.matrix, data.threads)
    sums = sum_over(data.fused.matrix, pieces, data.classes, data.threads)
    if parts is not None:
        sums += parts
    write(sums)
    found = fit_rounds(data, None, reporter, sums)
    return finished(data, found, str(data.options.final), reporter)


def fit_rounds(
    data: Data, weights: Weights | None, reporter: Reporter, first: Statistics | None = None
) -> Fitted:
    """Fit levels and weights in rounds, without folds: the initial model saw all labels already.

    The first round takes its statistics from the model of `weights`, or from `first`.
    """
    matrix = data.fused_labelled.matrix
    found = Fitted(weights, "tied") if weights is not None else None
    rounds, opening = [], first
    for number in range(data.options.rounds or 1):
        if found is None:
            assert first is not None
            evidence, sums = evidence_of(first, data.options), first
        else:
            evidence, sums = _evidence(data, found, f"round {number + 1}", reporter)
        opening = sums if number == 0 else opening
        tied = learn(evidence.parts(matrix), data.labels, data.options.shrinkage)
        found = _fused(data, evidence, tied)
        rounds.append(_epoch_record(sums, evidence))
    assert found is not None
    found.record, found.sums = {"rounds": rounds}, opening
    return found


def fit_out_of_fold(
    data: Data, weights: Weights, l2: float, beside: bool, reporter: Reporter
) -> Fitted:
    """Fit levels and weights in rounds; the weights see documents out of fold only.

    Each fold has a model of its own, which has learnt from the other folds: its levels make the
    columns of the fold's documents. Weights learnt on documents that the initial model has seen
    would trust it too much.
    """
    options, folds = data.options, data.folds(data.options.seed)
    bad, own = np.zeros(len(folds), dtype=bool), {}
    for fold in np.unique(folds):
        rest = folds != fold
        if not rest.any():
            continue
        trained = initial.train(
            csr_matrix(data.labelled.matrix[rest]), data.labels[rest], data.classes, l2,
            data.threads,
        )  # fmt: skip
        bad |= ~rest & ~np.isin(data.labels, data.labels[rest])
        own[fold] = Fitted(trained, "tied")
    bad |= ~np.isin(folds, list(own))
    if bad.all():
        raise CorpusError("no class has two labelled documents; give more, or self-training")
    models, full = dict(own), Fitted(weights, "tied")
    rounds, opening = [], None
    for number in range(options.rounds or 1):
        evidence, sums = _evidence(data, full, f"round {number + 1}", reporter)
        opening = sums if number == 0 else opening
        parts = np.zeros((len(folds), data.classes, options.levels + beside))
        of_fold = {}
        for fold, model in models.items():
            stage = f"round {number + 1}, fold {fold + 1}"
            of_fold[fold], _ = _evidence(data, model, stage, reporter)
            out = folds == fold
            base = own[fold].weights if beside else None
            parts[out] = _parts(data, of_fold[fold], base, out)
        tied = learn(parts[~bad], data.labels[~bad], options.shrinkage)
        right = tied.scores(parts[~bad]).argmax(axis=1) == data.labels[~bad]
        rounds.append(_epoch_record(sums, evidence, fold_accuracy=round(float(right.mean()), 6)))
        models = {
            f: _fused(data, of_fold[f], tied, own[f].weights if beside else None) for f in models
        }
        full = _fused(data, evidence, tied, weights if beside else None)
    full.record, full.sums = {"rounds": rounds, "left_out": int(bad.sum())}, opening
    return full


def distill(data: Data, fused: Fitted) -> Fitted:
    """Return a maximum-entropy model that has learnt the fused model's surest decisions, beside it.

    Decisions that are not sure are often wrong, so that a quarter of them is left out. The fused
    model's own scores are added with a weight: the two err on different documents.
    """
    decided, sure = data.fused.decisions(fused.weights)
    taken = np.sort(np.argsort(-sure, kind="stable")[: int(np.ceil(SUREST * len(sure)))])
    rows = sparse.vstack([data.labelled.matrix, data.unlabelled.matrix[taken]], format="csr")
    labels = np.concatenate([data.labels, decided[taken]])
    weights = initial.train(
        csr_matrix(rows), labels, data.classes, initial.L2_OF_MANY, data.threads
    )
    if data.fused is data.unlabelled:  # else its scores are of other values of the features
        table, own = weights.get(), fused.weights.get()
        own[-1] *= fused.weights.bias / weights.bias
        weights.set(table + np.float32(TEACHER) * own)
    return dataclasses.replace(fused, weights=weights, final="teach", base=None)


def _columns(data: Data, fused: Fitted) -> Fitted:
    """Return a maximum-entropy model of a column for each level and class, learnt in sample."""
    assert fused.evidence is not None
    columns = fused.evidence.columns()
    rows = csr_matrix(data.fused_labelled.matrix @ columns)
    found = initial.train(rows, data.labels, data.classes, L2_OF_COLUMNS, data.threads)
    table = found.get()
    weights = Weights(columns.shape[0], data.classes, found.bias)
    weights.set(np.concatenate([np.asarray(columns @ table[:-1]), table[-1:]]).astype(np.float32))
    weights.offset[:] = found.offset
    return dataclasses.replace(fused, weights=weights, final="columns", tied=None)


def _evidence(
    data: Data, model: Fitted, stage: str, reporter: Reporter
) -> tuple[Evidence, Statistics]:
    """Return the levels that a model's probabilities of the unlabelled documents give."""
    reporter.stage(stage, len(data.unlabelled), "documents")
    rows = data.fused if model.evidence is not None else data.unlabelled

    def watched(pieces: Iterable[NDArray[np.float64]]) -> Iterator[NDArray[np.float64]]:
        done = 0
        for piece in pieces:
            yield piece
            done += len(piece)
            reporter.advance(done)

    def pieces() -> Iterator[NDArray[np.float64]]:
        return watched(rows.log_probabilities(model.weights))

    matrix, o = data.fused.matrix, data.options
    if o.keep is not None and o.impact == "log" and matrix.shape[1] > SCREENED:
        keep = kept_pairs(o.keep, matrix.shape[1] * data.classes)
        sums = sum_screened(matrix, pieces, data.classes, data.threads, keep, SHRUNK)
        o = dataclasses.replace(o, keep=str(min(keep, sums.joint.size)))
    else:
        sums = sum_over(matrix, pieces(), data.classes, data.threads)
    return evidence_of(sums, o), sums


def _parts(
    data: Data, evidence: Evidence, base: Weights | None, out: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Return h of some labelled documents, beside the scores of the initial model if it is given.

    A class that the initial model never saw has the lowest score of the others.
    """
    parts = evidence.parts(csr_matrix(data.fused_labelled.matrix[out]))
    if base is None:
        return parts
    rows = Rows(csr_matrix(data.labelled.matrix[out]), data.threads)
    scores = np.concatenate(list(rows.scores(base)))
    unseen = base.offset <= initial.NEVER
    scores[:, unseen] = scores[:, ~unseen].min(axis=1, keepdims=True)
    return np.concatenate([parts, scores[:, :, None]], axis=2)


def _fused(data: Data, evidence: Evidence, tied: Tied, base: Weights | None = None) -> Fitted:
    """Return levels and their weights as a linear model."""
    return Fitted(
        linear(evidence, tied, base), "tied" if base is None else "beside", evidence, tied, base,
        binary=data.options.impact == "paper",
    )  # fmt: skip


def linear(evidence: Evidence, tied: Tied, base: Weights | None = None) -> Weights:
    """Return the linear model of levels and weights: theta_jc = sign w_k v_k."""
    count = len(evidence.values)
    table = np.append(evidence.weights(tied.weights[:count]), np.float32(tied.biases)[None], axis=0)
    if base is not None:
        own = base.get()
        own[-1] *= base.bias / BIAS
        table += np.float32(tied.weights[count]) * own
    weights = Weights(len(table) - 1, len(tied.biases), BIAS)
    weights.set(table)
    if base is not None:
        weights.offset[base.offset <= initial.NEVER] = initial.NEVER
    return weights


def _l2(data: Data) -> float:
    folds = data.folds(data.options.seed)
    return initial.chosen_l2(data.labelled.matrix, data.labels, data.classes, folds, data.threads)


def _epoch_record(sums: Statistics, evidence: Evidence, **more: float) -> dict[str, Any]:
    """Return what the record says of a round."""
    found = {"documents": sums.documents, "without_features": sums.empty}
    return found | {"pairs": int(evidence.levels.nnz), "loss": evidence.loss, **more}


def log_probabilities(weights: Weights, rows: Rows) -> NDArray[np.float64]:
    """Return the log-probabilities of all rows."""
    pieces = [log_softmax(piece) for piece in rows.scores(weights)]
    return np.concatenate(pieces) if pieces else np.zeros((0, weights.classes))

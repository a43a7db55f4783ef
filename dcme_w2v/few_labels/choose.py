"""Cross-validation on the labeled documents: which model, and how sure its probabilities are.

The probabilities of most of these models are too near 0 and 1, since they learn decisions as if
they were labels. A temperature by the folds corrects them (Guo et al. 2017).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy import sparse

from dcme_w2v.classify.calibration import likeliest_factor
from dcme_w2v.classify.tune import CLEARLY
from dcme_w2v.numeric.arrays import F64, I64, Bools
from dcme_w2v.training.progress import QUIET, Reporter

from . import initial
from .fit import TrainingRows, fit_final
from .initial import ScoredRows
from .options import ROUNDS, FusedOptions

FOLDS, L2 = 3, 1e-4
MARGIN = 0.15  # above 0.5: documents of one domain were below 0.06, of two mostly above 0.18
ERRORS = 3.0  # standard errors above 0.5, where documents are few


def separability(data: TrainingRows, decided: I64) -> tuple[float, int]:
    """Return how well labeled and unlabeled documents can be separated.

    Parameters
    ----------
    data : TrainingRows
    decided : ndarray of int64
        The estimated classes of the unlabeled documents.

    Returns
    -------
    area : float
        Area under the ROC curve, out of fold; 0.5 where there are too few documents.
    count : int
        Number of labeled documents that were used, with as many unlabeled ones.
    """
    random = np.random.default_rng(data.options.seed)
    _, first = np.unique(data.documents, return_index=True)  # a document with two labels once
    labeled, unlabeled = [], []
    for label in range(data.classes):
        own = first[data.labels[first] == label]
        others = np.flatnonzero(decided == label)
        count = min(len(own), len(others))
        labeled.append(random.permutation(own)[:count])
        unlabeled.append(random.permutation(others)[:count])
    ours, theirs = np.concatenate(labeled), np.concatenate(unlabeled)
    count = len(ours)
    if count < FOLDS:
        return 0.5, count
    pieces = [data.labeled.matrix[ours], data.unlabeled.matrix[theirs]]
    rows = sparse.vstack(pieces, format="csr")
    sides = np.repeat(np.arange(2), count)
    folds = initial.folds_of(sides, FOLDS, random)
    areas = []
    for fold in range(FOLDS):
        out = folds == fold
        weights = initial.train(rows[~out], sides[~out], 2, L2, data.threads)
        tested = ScoredRows(rows[out], data.threads)
        scores = tested.all_scores(weights)
        areas.append(area_under_curve(scores[:, 1] - scores[:, 0], sides[out] == 1))
    return float(np.mean(areas)), count


def differs(area: float, count: int) -> bool:
    """Return whether an area from `separability` is significantly above 0.5."""
    return count >= FOLDS and area > 0.5 + max(MARGIN, ERRORS / np.sqrt(6 * count))


def area_under_curve(scores: F64, positive: Bools) -> float:
    """Return how often a positive has a higher score than a negative; ties count half."""
    many, few = int(positive.sum()), int((~positive).sum())
    _, place, equal = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(equal) - (equal - 1) / 2)[place]
    return float((ranks[positive].sum() - many * (many + 1) / 2) / (many * few))


# Name -> initial model, rounds, final model. The first is chosen unless another is clearly better.
# Self-training alone and naive Bayes with EM are not among them: they won on the folds where they
# lost on test documents, by up to 12 and 36 points.
CANDIDATES: dict[str, tuple[str, int, str]] = {
    "distill": ("self-training", ROUNDS, "distill"),
    "supervised": ("supervised", 1, "supervised"),
    "beside": ("supervised", 1, "beside"),
}


@dataclass(frozen=True)
class Choice:
    """The options that are fitted in the end.

    Attributes
    ----------
    options : FusedOptions
        With the initial model and number of rounds that were chosen.
    final : str
        The final model; see `Fitted.final`.
    record : dict
        `chosen`, `fold_accuracy` of each candidate, `separability` of the two kinds of documents,
        `fold_log_likelihood` of the chosen one.
    scale : float
        Factor of the scores, so that the mean log-likelihood on the folds is the highest.
    """

    options: FusedOptions
    final: str
    record: dict[str, Any] = field(default_factory=dict)
    scale: float = 1.0

    def of(self, name: str) -> Choice:
        """Return the choice of a candidate."""
        start, rounds, final = CANDIDATES[name]
        return Choice(replace(self.options, initial=start, rounds=rounds), final)


def choose(data: TrainingRows, reporter: Reporter) -> Choice:
    """Choose among all candidates, or compare the model of the options with simpler ones.

    Without ``--choose``, the supervised model replaces the default where the folds are better,
    but no option that was given. Where the unlabeled documents are of another domain than the
    labeled ones, folds of the labeled documents do not show the best model for them, and the model
    of the options is taken.
    """
    options = data.options
    as_given = Choice(options, "tied" if options.is_paper else str(options.final))
    if options.choose is False:
        return as_given
    free = options.choose or as_given == as_given.of("distill")
    choices = {
        name: as_given if name == "given" else as_given.of(name)
        for name in (CANDIDATES if options.choose else ("given", "supervised"))
    }
    area, count = separability(data, data.unlabeled.decisions(data.supervised())[0])
    record: dict[str, Any] = {"separability": round(area, 6)}
    is_other = differs(area, count)
    if is_other:
        reporter.message(
            "warning: the unlabeled documents differ from the labeled ones (separated with an "
            f"area under the curve of {area:.2f}): folds cannot choose; {as_given.final} is taken. "
            "If they are not of the kind to be classified, leave them out: classify train"
        )
        choices = {"given": as_given}
    measured = _measured(data, choices, reporter)
    if measured is None:
        return replace(as_given, record={"chosen": as_given.final, **record})
    accuracy = {name: round(float(measured.right(name).sum()), 6) for name in choices}
    best = measured.best(accuracy)
    name = best if free else "given"
    chosen = choices[name]
    scale, log_likelihood = likeliest_factor(
        measured.scores[name], measured.labels[:, None].tolist(), measured.weights
    )
    shown = ", ".join(f"{choices[one].final} {value:.4f}" for one, value in accuracy.items())
    note = f"chosen: {chosen.final}" if name == best else (
        f"warning: {choices[best].final} on the folds is better"
        + ("; classify train trains it" if best == "supervised" else "")
    )  # fmt: skip
    reporter.message(
        f"accuracy on the folds: {shown}; log-likelihood {log_likelihood:.4f}, of a uniform guess "
        f"{-np.log(data.classes):.4f}; {note}"
    )
    if not is_other:
        record["fold_accuracy"] = {choices[one].final: value for one, value in accuracy.items()}
    record |= {"chosen": chosen.final, "scale": scale}
    record["fold_log_likelihood"] = round(log_likelihood, 6)
    return replace(chosen, record=record, scale=scale)


@dataclass
class _Measured:
    """Scores of labeled documents by each candidate out of fold; classes; weights of sum 1."""

    scores: dict[str, F64]
    labels: I64
    weights: F64

    def right(self, name: str) -> F64:
        """Return the weight of each document, 0 where a candidate is wrong."""
        return np.where(self.scores[name].argmax(axis=1) == self.labels, self.weights, 0.0)

    def best(self, accuracy: dict[str, float]) -> str:
        """Return the candidate of the highest accuracy, the first one unless that is clear."""
        best, first = max(accuracy, key=lambda one: accuracy[one]), next(iter(accuracy))
        gained = self.right(best) - self.right(first)
        error = np.std(gained) * np.sqrt(len(gained))
        return best if gained.sum() > CLEARLY * error else first


def _measured(
    data: TrainingRows, choices: dict[str, Choice], reporter: Reporter
) -> _Measured | None:
    """Return how the candidates classify labeled documents that they have not learned.

    Labeled documents may have other shares of the classes than the unlabeled ones: a document
    has the weight of its class among the unlabeled documents, by the mean decision of the
    candidates. None if each fold has a single class.
    """
    folds = data.folds()
    scores = {name: np.zeros((len(folds), data.classes)) for name in choices}
    tested, decided = np.zeros(len(folds), dtype=bool), np.zeros(data.classes)
    for fold in np.unique(folds):
        out = folds == fold
        if len(np.unique(data.labels[~out])) < 2 or len(np.unique(data.groups[~out])) < 2:
            continue
        reporter.stage(f"cross-validation, fold {int(fold) + 1}", len(choices), "models")
        tested |= out
        rest = data.part(~out)
        for done, (name, choice) in enumerate(choices.items(), 1):
            rest.options = choice.options
            found = fit_final(rest, choice.final, QUIET)
            scores[name][out] = found.scores(data.labeled.matrix[out], data.threads)
            best, _ = data.unlabeled.decisions(found.weights)
            decided += np.bincount(best, minlength=data.classes)
            reporter.advance(done)
    if not tested.any():
        return None
    labels = data.labels[tested]
    shares = (decided + 1) / np.maximum(np.bincount(labels, minlength=data.classes), 1)
    own = {name: one[tested] for name, one in scores.items()}
    weights = shares[labels]
    return _Measured(own, labels, weights / weights.sum())

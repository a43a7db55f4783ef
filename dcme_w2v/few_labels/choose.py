"""Cross-validation on the labeled documents: which model, and whether it is better than maxent."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from dcme_w2v.few_labels import domain, initial
from dcme_w2v.few_labels.fit import Fitted, TrainingRows, fit_final
from dcme_w2v.few_labels.initial import ScoredRows
from dcme_w2v.few_labels.options import ROUNDS, FusedOptions
from dcme_w2v.training.progress import Quiet, Reporter

# Name -> initial model, rounds, final model. The first of equal accuracy is chosen.
CANDIDATES: dict[str, tuple[str, int, str]] = {
    "distill": ("self-training", ROUNDS, "distill"),
    "self-training": ("self-training", 1, "self-training"),
    "maxent": ("supervised", 1, "maxent"),
    "beside": ("supervised", 1, "beside"),
}
CLEARLY = 1.64  # standard errors by which maxent has to be better to replace the default


@dataclass(frozen=True)
class Choice:
    """What is fitted in the end.

    Attributes
    ----------
    options : FusedOptions
        With the initial model and number of rounds that were chosen.
    final : str
        The final model; see `Fitted.final`.
    record : dict
        `chosen`, `fold_accuracy` of each candidate, `separability` of the two kinds of documents.
    """

    options: FusedOptions
    final: str
    record: dict[str, Any] = field(default_factory=dict)

    def of(self, name: str) -> Choice:
        """Return the choice of a candidate."""
        start, rounds, final = CANDIDATES[name]
        return Choice(dataclasses.replace(self.options, initial=start, rounds=rounds), final)


def choose(data: TrainingRows, reporter: Reporter) -> Choice:
    """Choose among all candidates, or compare the model of the options with maxent.

    Without ``--choose`` the options decide, and maxent replaces only the default, if it is clearly
    better. Where the unlabeled documents are of another domain than the labeled ones, folds of
    the labeled documents do not show what is best for them, and the model of the options is taken.
    """
    options = data.options
    as_given = Choice(options, "tied" if options.is_paper else str(options.final))
    if options.choose is False:
        return as_given
    names = list(CANDIDATES) if options.choose else ["given", "maxent"]
    area, count = _separability(data)
    record: dict[str, Any] = {"separability": round(area, 6)}
    if domain.differs(area, count):
        reporter.message(
            "warning: the unlabeled documents differ from the labeled ones (separated with an "
            f"area under the curve of {area:.2f}): folds cannot choose; {as_given.final} is taken. "
            "If they are not of the kind to be classified, leave them out: classify train"
        )
        return dataclasses.replace(as_given, record={"chosen": as_given.final, **record})
    choices = {name: as_given if name == "given" else as_given.of(name) for name in names}
    measured = _measured(data, choices, reporter)
    if measured is None:
        return as_given
    accuracy = {choices[name].final: value for name, value in measured.accuracy().items()}
    shown = ", ".join(f"{name} {value:.4f}" for name, value in accuracy.items())
    best = as_given.final
    if options.choose:
        best = max(accuracy, key=lambda name: accuracy[name])
        note = f"chosen: {best}"
    else:
        errors = measured.standard_errors("maxent", "given")
        free = as_given == as_given.of("distill")
        note = ""
        if accuracy["maxent"] > accuracy[best]:
            switch = free and errors > CLEARLY
            note = "warning: maxent on the labeled documents alone is better"
            note += "; it is taken instead" if switch else "; classify train trains it"
            best = "maxent" if switch else best
    reporter.message(f"accuracy on the folds: {shown}" + (f"; {note}" if note else ""))
    chosen = as_given if best == as_given.final else as_given.of(best)
    return dataclasses.replace(chosen, record={"chosen": best, "fold_accuracy": accuracy, **record})


@dataclass
class _Measured:
    """Which documents each candidate classifies correctly out of fold, and their weights."""

    right: dict[str, NDArray[np.bool_]]
    weights: NDArray[np.float64]

    def accuracy(self) -> dict[str, float]:
        """Return the weighted accuracy of each candidate."""
        total = float(self.weights.sum())
        return {
            name: round(float(hits @ self.weights) / total, 6) for name, hits in self.right.items()
        }

    def standard_errors(self, one: str, other: str) -> float:
        """Return by how many standard errors `one` is more accurate than `other`."""
        gains = (self.right[one].astype(float) - self.right[other]) * self.weights
        return float(gains.sum() / max(np.sqrt(np.square(gains).sum()), 1e-300))


def _measured(
    data: TrainingRows, choices: dict[str, Choice], reporter: Reporter
) -> _Measured | None:
    """Return how well the candidates classify labeled documents that they have not learned.

    Labeled documents may have other shares of the classes than the unlabeled ones: a document
    has the weight of its class among the unlabeled documents, by the mean decision of the
    candidates. None if each fold has a single class.
    """
    folds = data.folds(data.options.seed)
    right = {name: np.zeros(len(folds), dtype=bool) for name in choices}
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
            found = fit_final(rest, choice.final, Quiet())
            right[name][out] = _decisions(data, found, out) == data.labels[out]
            best, _ = data.unlabeled.decisions(found.weights)
            decided += np.bincount(best, minlength=data.classes)
            reporter.advance(done)
    if not tested.any():
        return None
    labels = data.labels[tested]
    shares = (decided + 1) / np.maximum(np.bincount(labels, minlength=data.classes), 1)
    return _Measured({name: hits[tested] for name, hits in right.items()}, shares[labels])


def _decisions(data: TrainingRows, found: Fitted, out: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the classes that a model decides for some labeled documents."""
    rows = ScoredRows(csr_matrix(data.labeled.matrix[out]), data.threads)
    return rows.decisions(found.weights)[0]


def _separability(data: TrainingRows) -> tuple[float, int]:
    """Return how well labeled and unlabeled documents can be separated; see `domain`."""
    weights = data.maxent(np.ones(len(data.labels), dtype=bool), initial.L2_OF_MANY)
    decided, _ = data.unlabeled.decisions(weights)
    return domain.separability(data, decided)

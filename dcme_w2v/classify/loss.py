"""The default loss and its learning rate, by held-out documents.

The hinge loss predicts better than the softmax on most texts, and worse on some; where labels are
wrong, a lower learning rate is better for both. One candidate is near LinearSVC at C = 1, with the
same objective, and is taken where no other one is clearly better: it is rarely far from the best.
With ten epochs and a bias of .1 it classified 2.2 % of the documents of held-out folds of 13 sets
otherwise than LinearSVC, with twenty and .2 1.0 %. A trial learns from 20,000 documents at most, so
that the choice takes a small part of a long training. With fewer than 500 documents C = 1
regularizes too much, and C = 10 comes first. Documents with several labels have the hinge loss, and
folds choose the learning rate. Their labels are learned independently, so that with many of them
and many documents, a trial learns some labels from all documents, and is measured by the average
precision of all their scores, which does not depend on the labels that are left out.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from scipy.sparse import csr_matrix

from dcme_w2v.training.interrupts import ReceivedSignal
from dcme_w2v.training.progress import QUIET, Reporter

from .feature_sets import FeatureSets
from .fit import Labeled
from .metrics import average_precision, relevance
from .options import (
    L2_OF_SETS,
    NO_SUBWORDS,
    RATE_OF_HINGE,
    TREE_CLASSES,
    ClassifyOptions,
    is_hinge_possible,
    resolved,
)
from .trainer import Weights, core_documents
from .tune import FEW, HINGE_CLASSES, Rows, Search, Setting, Tuned, flags_of

MIN_DOCUMENTS = 50  # with fewer, a fold says little, and the first candidate is taken
LEARNED = 20_000  # documents of a trial at most
# Documents; with fewer, pairs of long ones are rare and lose up to 2 points, and single words of
# short ones are rare: character n-grams have up to 25 points more.
MIN_OF_PAIRS = 1000
MIN_INSTANCES, MIN_OF_A_CLASS = 10_000, 150  # to choose only the rate of a loss that is given
EPOCHS = 20  # that are given, at most
SHORT_SETS = 1 << 24  # documents times labels, several a document; above, a part of the labels:
PART_OF_SETS, SHORT_PART = 50, 1 << 21  # one in so many, or so many documents times labels
# See `CLEARLY`: among seven candidates, few documents often prefer the luckiest one.
CLEARLY_OF_FEW, CLEARLY_OF_SETS = 1.5, 0.5
RATES_OF_SETS, RATES_OF_MANY = (2.0, 0.5, 0.125), (2.0, 0.5)  # times the default
SMALL_WEIGHTS, SMALL_PRODUCTS = 1 << 16, 1 << 22  # L-BFGS takes a second at most
SMALL_PATH = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)


class LossSearch(Search):
    """A search for the loss, its learning rate and `features`, every candidate on all folds."""

    min_documents = 2

    def __init__(
        self,
        data: Labeled,
        classes: int,
        given: ClassifyOptions,
        reporter: Reporter = QUIET,
        received: ReceivedSignal | None = None,
        features: FeatureSets | None = None,
    ) -> None:
        self._sets = features
        several = sum(map(len, data.labels)) > len(data.labels)
        self._some_labels = several and len(data.labels) * classes > SHORT_SETS
        if self._some_labels:
            given = replace(given, batch=resolved(given, classes, True).batch)
            data, classes = _with_some_labels(data, classes)
        super().__init__(
            features or Rows(data.matrix), data.labels, classes, given, float("inf"), data.weights,
            reporter, received,
        )  # fmt: skip
        if not self._some_labels:
            self._full = replace(self._full, documents=min(self._full.documents, LEARNED))
        self._first, self._multilabel = self._full, several
        if len(self._labels) < FEW:
            self._clearly = CLEARLY_OF_FEW
        if several:
            self._measure_names, self._clearly = ("ndcg_at_5",), CLEARLY_OF_SETS

    def _stages(self) -> Sequence[Callable[[Setting], list[Setting]]]:
        has_folds = len(self._labels) >= MIN_DOCUMENTS
        return (self._losses, self._feature_settings) if has_folds else ()

    def _defaults(self) -> Setting:
        found = {**super()._defaults()}
        if self._sets is not None:
            found |= self._sets.simple(len(self._labels) < MIN_OF_PAIRS)
        if not self._multilabel:
            return found if len(self._labels) >= MIN_DOCUMENTS else self._losses(found)[0]
        own = {"loss": "hinge", "lr": RATE_OF_HINGE, "l2": L2_OF_SETS}
        return {**found, **{name: own[name] for name in found if name in own}}

    def _losses(self, best: Setting) -> list[Setting]:
        if self._multilabel:
            if self._some_labels:
                return [{**best, "lr": RATE_OF_HINGE * factor} for factor in RATES_OF_MANY]
            found = [{**best, "lr": RATE_OF_HINGE * factor} for factor in RATES_OF_SETS]
            return [self._like_svm(best), *found]
        if "loss" in best and self._has_many:
            return [self._like_svm(best), best]
        return super()._losses(best)

    def _feature_settings(self, best: Setting) -> list[Setting]:
        found = super()._feature_settings(best)
        return found if len(self._labels) >= MIN_OF_PAIRS else [best, *found]

    def _quality(self, weights: Weights, held: Labeled) -> float:
        if not self._some_labels:
            return super()._quality(weights, held)
        scores = weights.scores(core_documents(held.matrix), 0, len(held.labels), 1)
        relevant = relevance(held.labels, self._classes)
        return average_precision(scores[:, :-1], relevant[:, :-1])  # the last one is for no label


def _with_some_labels(data: Labeled, classes: int) -> tuple[Labeled, int]:
    """Return documents with some of their labels, and how many classes there are.

    One label of so many by frequency is learned, the middle one: the most frequent one of all would
    outweigh the others. The last class is for documents that have none of these labels.
    """
    count = max(1, classes // PART_OF_SETS, min(classes, SHORT_PART // len(data.labels)))
    order = np.argsort(-np.bincount(data.instances()[1], minlength=classes), kind="stable")
    number = np.full(classes, -1)
    number[order[(2 * np.arange(count) + 1) * classes // (2 * count)]] = np.arange(count)
    labels = [[k for k in number[list(one)].tolist() if k >= 0] or [count] for one in data.labels]
    return replace(data, labels=labels), count + 1


class PenaltySearch(Search):
    """A search for the L2 regularization of L-BFGS, with the highest likelihood on all folds."""

    path = SMALL_PATH

    def __init__(self, data: Labeled, classes: int, given: ClassifyOptions) -> None:
        rows, endless = Rows(data.matrix), float("inf")
        super().__init__(rows, data.labels, classes, given, endless, data.weights)
        self._first, self._measure_names = self._full, ("log_likelihood",)

    def _stages(self) -> Sequence[Callable[[Setting], list[Setting]]]:
        return (self._losses,)


def loss_line(tuned: Tuned) -> str:
    """Return the choice of the loss, and of pairs of words, in words."""
    best: dict[str, float] = {}
    if not tuned.held_out:
        return f"{tuned.flags}: with fewer than {MIN_DOCUMENTS} documents, none are held out"
    for trial in tuned.trials:
        name = str(trial.get("loss") or f"--lr {trial['lr']:g}")
        name = "pairs of the first words" if trial.get("lead_ngrams", 1) > 1 else name
        name = "pairs of words" if trial.get("ngrams", 1) > 1 else name
        if trial.get("subwords", NO_SUBWORDS) != NO_SUBWORDS:
            name = "character n-grams"
        best[name] = max(trial["accuracy"], best.get(name, 0.0))
    tried = ", ".join(f"{name} {accuracy:.4f}" for name, accuracy in best.items())
    chosen = flags_of(tuned.setting)
    return f"{chosen}, by {tuned.held_out:,} documents held out ({tried})"


def is_loss_open(given: ClassifyOptions, data: Labeled, classes: int) -> bool:
    """Return whether `LossSearch` may choose the loss, the learning rate, or both."""
    count, labels = len(data.labels), sum(map(len, data.labels))
    own = (given.lr, given.min_lr)
    if any(one is not None for one in own) or given.solver == "lbfgs":
        return False
    if (given.epochs or 0) > EPOCHS:
        return False
    if labels > count:
        is_table = classes < TREE_CLASSES and count >= MIN_DOCUMENTS
        return is_table and given.loss in (None, "hinge") and is_hinge_possible(given)
    if given.loss != "softmax" and is_hinge_possible(given) and classes <= HINGE_CLASSES:
        return True
    options = resolved(given, classes)
    is_exact = options.objective == "gd" or options.dcme_update == "robust"
    enough = count >= max(MIN_INSTANCES, MIN_OF_A_CLASS * classes)
    return is_exact and options.objective in ("gd", "dcme") and enough


def is_small(given: ClassifyOptions, matrix: csr_matrix, classes: int) -> bool:
    """Return whether L-BFGS reaches the optimum as fast, and no option of another solver is set.

    Few documents of text have more words than documents; the hinge loss is better on them.
    """
    own = (given.solver, given.loss, given.lr, given.min_lr, given.epochs, given.batch, given.trees)
    is_short = (matrix.shape[1] + 1) * classes <= SMALL_WEIGHTS
    is_short = is_short and matrix.nnz * classes <= SMALL_PRODUCTS
    rows, columns = matrix.shape
    is_short = is_short and (columns < rows or 2 * matrix.nnz > rows * columns)
    return is_short and is_hinge_possible(given) and not any(one is not None for one in own)

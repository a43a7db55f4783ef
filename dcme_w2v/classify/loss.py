"""The default loss and its learning rate where training is short, by held-out documents.

With few classes the hinge loss predicts better than the softmax on most texts (0.8 points of
accuracy on ten sets of 3 to 150 classes), and worse on some; where labels are wrong, a lower
learning rate is better for both. One candidate is near LinearSVC at C = 1, its objective at ten
epochs, and is taken where no other one is clearly better: it is rarely far from the best.
Documents with several labels have the hinge loss, and folds choose its learning rate.
"""

import math
from collections.abc import Callable, Sequence

from scipy.sparse import csr_matrix

from dcme_w2v.training.interrupts import ReceivedSignal
from dcme_w2v.training.progress import QUIET, Reporter

from .fit import Labelled
from .options import (
    FEW_CLASSES,
    L2_OF_SETS,
    RATE_OF_HINGE,
    TREE_CLASSES,
    ClassifyOptions,
    is_hinge_possible,
)
from .tune import Rows, Search, Setting, Tuned, flags_of

DOCUMENTS = (50, 20_000)  # with fewer, a fold says little; with more, training is not short
EPOCHS = 20  # that are given, at most
SHORT_SETS = 1 << 24  # documents times labels, several a document
RATES_OF_SETS = (2.0, 0.5, 0.125)  # times the default
LONGER = 10  # epochs at C = 1
CLEARLY = 0.5  # standard errors of an accuracy by which another candidate has to be better
SMALL_WEIGHTS, SMALL_PRODUCTS = 1 << 16, 1 << 22  # L-BFGS takes a second at most


class LossSearch(Search):
    """A search for the loss and its learning rate, with every candidate on all folds."""

    def __init__(
        self,
        data: Labelled,
        classes: int,
        given: ClassifyOptions,
        reporter: Reporter = QUIET,
        received: ReceivedSignal | None = None,
    ) -> None:
        super().__init__(
            Rows(data.matrix), data.labels, classes, given, float("inf"), data.weights, reporter,
            received,
        )  # fmt: skip
        self._first = self._full

        if self._multilabel:
            self._measure_names = ("ndcg_at_5",)

    def _stages(self) -> Sequence[Callable[[Setting], list[Setting]]]:
        return (self._losses,)

    def _defaults(self) -> Setting:
        found = super()._defaults()
        if not self._multilabel:
            return found
        own = {"loss": "hinge", "lr": RATE_OF_HINGE, "l2": L2_OF_SETS}
        return {**found, **{name: own[name] for name in found if name in own}}

    def _losses(self, best: Setting) -> list[Setting]:
        found = [{**best, "lr": RATE_OF_HINGE * factor} for factor in RATES_OF_SETS]
        return [self._like_svm(best), *(found if self._multilabel else super()._losses(best))]

    def _like_svm(self, best: Setting) -> Setting:
        """Return the setting that is near LinearSVC at C = 1, as far as options are not given.

        Its objective is this one with l2 = 1 / (2 C n).
        """
        near = {"loss": "hinge", "lr": RATE_OF_HINGE, "epochs": LONGER, "l2": self._l2_of_svm}
        return {**best, **{name: near[name] for name in best if name in near}}

    @property
    def _l2_of_svm(self) -> float:
        return float(f"{0.5 / len(self._labels):.2g}")

    def _halve(self, best: Setting, candidates: Sequence[Setting]) -> Setting:
        """Return the best candidate; the first one, unless another is clearly better."""
        found = super()._halve(best, candidates)
        first, highest = (self._accuracy(one) for one in (candidates[0], found))
        error = math.sqrt(max(highest * (1 - highest), 0.0) / (self._full.folds * self._fold))
        return found if highest > first + CLEARLY * error else candidates[0]


def loss_line(tuned: Tuned) -> str:
    """Return the choice of the loss in words."""
    best: dict[str, float] = {}
    for trial in tuned.trials:
        name = str(trial.get("loss", "hinge"))
        best[name] = max(trial["accuracy"], best.get(name, 0.0))
    tried = ", ".join(f"{name} {accuracy:.4f}" for name, accuracy in best.items())
    chosen = flags_of(tuned.setting)
    return f"{chosen}, by {tuned.held_out:,} documents held out ({tried})"


def is_loss_open(given: ClassifyOptions, data: Labelled, classes: int) -> bool:
    """Return whether `LossSearch` may choose: training is short, and nothing excludes a loss."""
    count = len(data.labels)
    short = DOCUMENTS[0] <= count < DOCUMENTS[1] and (given.epochs or 0) <= EPOCHS
    if all(len(labels) == 1 for labels in data.labels):
        short = short and classes < FEW_CLASSES and given.loss is None
    else:
        short = short and classes * count <= SHORT_SETS and given.loss in (None, "hinge")
        short = short and classes < TREE_CLASSES
    own = given.lr is None and given.min_lr is None
    return short and own and is_hinge_possible(given)


def is_small(given: ClassifyOptions, matrix: csr_matrix, classes: int) -> bool:
    """Return whether L-BFGS reaches the optimum as fast, and no option of another solver is set."""
    own = (given.loss, given.lr, given.min_lr, given.epochs, given.batch, given.trees)
    is_short = (matrix.shape[1] + 1) * classes <= SMALL_WEIGHTS
    is_short = is_short and matrix.nnz * classes <= SMALL_PRODUCTS
    return is_short and is_hinge_possible(given) and not any(one is not None for one in own)

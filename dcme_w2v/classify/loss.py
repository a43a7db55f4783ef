"""The default loss where training is short: softmax or hinge, by held-out documents.

With few classes the hinge loss predicts better than the softmax on most texts (0.8 points of
accuracy on ten sets of 3 to 150 classes), and worse on some; where labels are wrong, a lower
learning rate is better for both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from scipy.sparse import csr_matrix

from dcme_w2v.classify.fit import Labelled
from dcme_w2v.classify.options import FEW_CLASSES, ClassifyOptions, is_hinge_possible
from dcme_w2v.classify.tune import Rows, Search, Setting, Tuned
from dcme_w2v.training.interrupts import ReceivedSignal
from dcme_w2v.training.progress import Reporter

DOCUMENTS = (50, 20_000)  # with fewer, a fold says little; with more, training is not short
EPOCHS = 20  # that are given, at most
SMALL_WEIGHTS, SMALL_PRODUCTS = 1 << 16, 1 << 22  # L-BFGS takes a second at most


class LossSearch(Search):
    """A search for the loss and its learning rate, with every candidate on all folds."""

    def __init__(
        self,
        data: Labelled,
        classes: int,
        given: ClassifyOptions,
        reporter: Reporter | None = None,
        received: ReceivedSignal | None = None,
    ) -> None:
        super().__init__(
            Rows(data.matrix), data.labels, classes, given, float("inf"), data.weights, reporter,
            received,
        )  # fmt: skip
        self._first = self._full

    def _stages(self) -> Sequence[Callable[[Setting], list[Setting]]]:
        return (self._losses,)


def loss_line(tuned: Tuned) -> str:
    """Return the choice of the loss in words."""
    best: dict[str, float] = {}
    for trial in tuned.trials:
        best[trial["loss"]] = max(trial["accuracy"], best.get(trial["loss"], 0.0))
    tried = ", ".join(f"{loss} {accuracy:.4f}" for loss, accuracy in best.items())
    loss, lr = tuned.setting["loss"], tuned.setting["lr"]
    return f"--loss {loss} --lr {lr:g}, by {tuned.held_out:,} documents held out ({tried})"


def is_loss_open(given: ClassifyOptions, data: Labelled, classes: int) -> bool:
    """Return whether `LossSearch` may choose: training is short, and nothing excludes a loss."""
    count = len(data.labels)
    short = classes < FEW_CLASSES and DOCUMENTS[0] <= count < DOCUMENTS[1]
    short = short and (given.epochs or 0) <= EPOCHS
    own = given.loss is None and given.lr is None and given.min_lr is None
    single = all(len(labels) == 1 for labels in data.labels)
    return short and own and is_hinge_possible(given) and single


def is_small(given: ClassifyOptions, matrix: csr_matrix, classes: int) -> bool:
    """Return whether L-BFGS reaches the optimum as fast, and no option of another solver is set."""
    own = (given.loss, given.lr, given.min_lr, given.epochs, given.batch)
    is_short = (matrix.shape[1] + 1) * classes <= SMALL_WEIGHTS
    is_short = is_short and matrix.nnz * classes <= SMALL_PRODUCTS
    return is_short and is_hinge_possible(given) and not any(one is not None for one in own)

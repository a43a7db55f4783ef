"""The options of `fuse fit`; see `dcme_w2v.declarations`."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dcme_w2v.classify.options import MAX_LEVELS
from dcme_w2v.declarations import Checked, filled, option, seed_option, threads_of, threads_option
from dcme_w2v.errors import UsageError

ROUNDS = 3
ONE_MODEL = ("initial", "rounds", "final")  # options that name a single model


@dataclass(frozen=True)
class FusedOptions(Checked):
    """How a classifier learns from few labels and many unlabeled documents."""

    group = "Model"

    levels: int = option(8, "number of levels", minimum=1, maximum=MAX_LEVELS)
    impact: str | None = option(
        None,
        "impact of a feature on a class: log-odds (log), or difference of probabilities (centered) "
        "(default: log)",
        choices=("log", "centered"),
        advanced=True,
    )
    initial: str | None = option(
        None,
        "initial model: trained on the labeled documents only (supervised), or also on its own "
        "decisions about the unlabeled documents (self-training) (default: self-training; with "
        "--final beside: supervised)",
        choices=("self-training", "supervised"),
        advanced=True,
    )
    rounds: int | None = option(
        None,
        "passes over the unlabeled documents, each with the model of the previous pass "
        "(default: 3; with --final beside: 1)",
        minimum=1,
        maximum=1000,
        advanced=True,
    )
    final: str | None = option(
        None,
        "final model: maximum entropy trained on the fused model's most confident decisions "
        "(distill), or the levels and the scores of the initial model (beside) (default: distill)",
        choices=("distill", "beside"),
        advanced=True,
    )
    folds: int = option(
        3,
        "folds of the labeled documents, stratified by class",
        minimum=2,
        maximum=1000,
        advanced=True,
    )
    choose: bool | None = option(
        None,
        "add the scores of four models, with factors from cross-validation: the classifier of "
        "classify train, the self-trained one, distill and beside (default: if neither --initial "
        "nor --final names one model, whose scores get such a factor); --no-choose: measure "
        "nothing",
    )
    preset: str | None = option(
        None,
        "paper: the form of Suzuki and Nagata 2014: binary features, a tenth of the pairs of "
        "feature and class, levels by ADMM, one weight a level",
        choices=("paper",),
    )
    threads: int | None = threads_option()
    seed: int = seed_option()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.preset and (self.impact or any(getattr(self, name) for name in ONE_MODEL)):
            raise UsageError(f"--preset={self.preset}: sets impact, initial, rounds and final")

    @property
    def is_paper(self) -> bool:
        """Whether features are binary and levels as in the paper."""
        return self.preset == "paper"


def resolved(options: FusedOptions) -> FusedOptions:
    """Return the options with their defaults filled in, except for `preset` and a neutral `choose`.

    Raises
    ------
    UsageError
        Options contradict each other.
    """
    threads = threads_of(options.threads)
    if options.is_paper:
        if options.choose:
            raise UsageError("--preset=paper and --choose: give one")
        return replace(options, choose=False, threads=threads)
    free = all(getattr(options, name) is None for name in ONE_MODEL)
    choose = options.choose
    if choose and not free:
        raise UsageError(
            "--choose: adds several models; leave out --initial and --final, or --choose"
        )
    if choose is None and free:
        choose = True
    beside = options.final == "beside"
    if beside and options.initial == "self-training":
        raise UsageError("--final=beside: needs scores out of fold; give --initial=supervised")
    return filled(replace(options, choose=choose, threads=threads), {
        "impact": "log",
        "initial": "supervised" if beside else "self-training",
        "rounds": 1 if beside else ROUNDS,
        "final": "distill",
    })  # fmt: skip

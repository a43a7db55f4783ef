"""Option declarations for `fuse fit`; see `dcme_w2v.declarations`."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dcme_w2v.classify.options import MAX_LEVELS
from dcme_w2v.declarations import Checked, filled, option, seed_option, threads_of, threads_option
from dcme_w2v.errors import UsageError

ROUNDS = 3
ONE_MODEL = ("initial", "rounds", "final")  # options that select a single model


@dataclass(frozen=True)
class FusedOptions(Checked):
    """How a classifier learns from few labels and many unlabeled documents."""

    group = "Model"

    levels: int = option(8, "number of weight levels", minimum=1, maximum=MAX_LEVELS)
    impact: str | None = option(
        None,
        "impact measure for features: log-odds (log), or probability difference (centered) "
        "(default: log)",
        choices=("log", "centered"),
        advanced=True,
    )
    initial: str | None = option(
        None,
        "initial model: trained on labeled documents, or also on its own predictions (default: "
        "self-training; --final beside: supervised)",
        choices=("self-training", "supervised"),
        advanced=True,
    )
    rounds: int | None = option(
        None,
        "number of passes over the unlabeled documents (default: 3; with --final beside: 1)",
        minimum=1,
        maximum=1000,
        advanced=True,
    )
    final: str | None = option(
        None,
        "final model: trained on confident decisions (distill), or fused and initial scores added"
        " (beside) (default: distill)",
        choices=("distill", "beside"),
        advanced=True,
    )
    folds: int = option(
        3,
        "number of cross-validation folds of the labeled documents, stratified by class",
        minimum=2,
        maximum=1000,
        advanced=True,
    )
    choose: bool | None = option(
        None,
        "combine four models by weights from cross-validation (default: unless --initial or "
        "--final is given)",
    )
    preset: str | None = option(
        None,
        "follow Suzuki and Nagata 2014 exactly",
        choices=("paper",),
    )
    threads: int | None = threads_option()
    seed: int = seed_option()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.preset and (self.impact or any(getattr(self, name) for name in ONE_MODEL)):
            raise UsageError(
                f"--preset={self.preset}: already sets impact, initial, rounds and final; omit "
                "those options"
            )

    @property
    def is_paper(self) -> bool:
        """Whether features are binary and levels are learned as in the paper."""
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
            raise UsageError("--preset=paper: is not supported with --choose; omit one")
        return replace(options, choose=False, threads=threads)
    free = all(getattr(options, name) is None for name in ONE_MODEL)
    choose = options.choose
    if choose and not free:
        raise UsageError(
            "--choose: combines several models; omit --choose, or omit --initial and --final"
        )
    if choose is None and free:
        choose = True
    beside = options.final == "beside"
    if beside and options.initial == "self-training":
        raise UsageError("--final=beside: requires out-of-fold scores; give --initial=supervised")
    return filled(replace(options, choose=choose, threads=threads), {
        "impact": "log",
        "initial": "supervised" if beside else "self-training",
        "rounds": 1 if beside else ROUNDS,
        "final": "distill",
    })  # fmt: skip

"""The options of `fuse fit`; see `dcme_w2v.declarations`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from dcme_w2v.declarations import Checked, option, seed_option, threads_of, threads_option
from dcme_w2v.errors import UsageError, warn

MAX_LEVELS = 127  # signed levels are stored as int8
CHOOSE_A_CLASS = 50  # labeled documents a class from which on cross-validation chooses
ROUNDS = 3
CHOSEN = ("initial", "rounds", "final")  # options that `choose` chooses


@dataclass(frozen=True)
class FusedOptions(Checked, group="Model"):
    """How a classifier learns from few labels and many unlabeled documents."""

    removed = ("keep", "optimiser", "shrinkage")

    levels: int = option(8, "number of levels", minimum=1, maximum=MAX_LEVELS)
    impact: str | None = option(
        None,
        "impact of a feature on a class: log-odds (log), or difference of probabilities (centered) "
        "(default: log)",
        choices=("log", "centered"),
        former_values={"centred": "centered"},
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
        former_values={"teach": "distill"},
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
        "choose initial model, rounds and final model by cross-validation, the classifier of "
        "classify train (supervised) among the candidates (default: from 50 labeled documents a "
        "class on, if none of them is given; otherwise the result is compared with supervised); "
        "--no-choose: measure nothing",
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
        if self.impact == "paper":
            warn("--impact=paper is now --preset=paper")
            object.__setattr__(self, "impact", None)
            object.__setattr__(self, "preset", "paper")
        super().__post_init__()
        if self.preset and (self.impact or any(getattr(self, name) for name in CHOSEN)):
            raise UsageError(f"--preset={self.preset}: sets impact, initial, rounds and final")

    @classmethod
    def from_stored(cls, values: Mapping[str, Any]) -> FusedOptions:
        """Create options from a model, which an earlier version may have written."""
        found = dict(values)
        if found.get("impact") == "paper":
            found["preset"] = "paper"
        if found.get("preset") or found.get("final") in ("tied", "columns"):
            found |= dict.fromkeys(("impact", *CHOSEN))
        return super().from_stored(found)

    @property
    def is_paper(self) -> bool:
        """Whether features are binary and levels as in the paper."""
        return self.preset == "paper"


def resolved(options: FusedOptions, documents: int, classes: int) -> FusedOptions:
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
    free = all(getattr(options, name) is None for name in CHOSEN)
    choose = options.choose
    if choose and not free:
        raise UsageError(
            "--choose: chooses --initial, --rounds and --final; leave them out, or give --no-choose"
        )
    if choose is None and free and documents >= CHOOSE_A_CLASS * classes:
        choose = True
    beside = options.final == "beside"
    if beside and options.initial == "self-training":
        raise UsageError("--final=beside: needs scores out of fold; give --initial=supervised")
    return replace(
        options,
        impact=options.impact or "log",
        initial=options.initial or ("supervised" if beside else "self-training"),
        rounds=options.rounds or (1 if beside else ROUNDS),
        final=options.final or "distill",
        choose=choose,
        threads=threads,
    )

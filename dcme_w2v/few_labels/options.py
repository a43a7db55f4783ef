"""Declare the `fuse fit` options."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from dcme_w2v.classify.options import MAX_LEVELS
from dcme_w2v.declarations import SEED, THREADS, Checked, filled, option, threads_of
from dcme_w2v.errors import UsageError

ROUNDS = 3
PRESETS: dict[str, dict[str, Any]] = {
    "paper": {
        "impact": "paper",
        "initial": "supervised",
        "final": "levels",
        "choose": False,
    }
}
ONE_MODEL = ("initial", "rounds", "final")  # options that select a single model, unlike --choose


@dataclass(frozen=True)
class FusedOptions(Checked):
    """Options for training a classifier on few labels and much unlabeled text."""

    group = "Model"

    levels: int = option(
        8,
        "number of quantization levels for feature impacts",
        minimum=1,
        maximum=MAX_LEVELS,
    )
    impact: str | None = option(
        None,
        "feature impacts: log (log ratio, the default), centered (difference) or paper (Suzuki "
        "and Nagata)",
        choices=("log", "centered", "paper"),
        advanced=True,
    )
    initial: str | None = option(
        None,
        "training data of the initial model: supervised (labels) or self-training (labels and "
        "predictions, the default)",
        choices=("self-training", "supervised"),
        advanced=True,
    )
    rounds: int | None = option(
        None,
        "number of passes over the unlabeled documents (default: 3 for --final=distill, otherwise "
        "1)",
        minimum=1,
        maximum=1000,
        advanced=True,
    )
    final: str | None = option(
        None,
        "final model's basis: distill (confident predictions, the default), levels or beside "
        "(levels plus initial scores)",
        choices=("distill", "beside", "levels"),
        advanced=True,
    )
    folds: int = option(
        3,
        "number of stratified cross-validation folds for the labeled documents",
        minimum=2,
        maximum=1000,
        advanced=True,
    )
    choose: bool | None = option(
        None,
        "combine four models with weights from cross-validation (default: yes, unless other "
        "options select a single model)",
    )
    preset: str | None = option(
        None, "use the settings of Suzuki and Nagata (2014)", presets=PRESETS
    )
    threads: int | None = option(**THREADS)
    seed: int = option(**SEED)

    @property
    def is_paper(self) -> bool:
        """Whether to use binary features and to learn the levels as in the paper."""
        return self.impact == "paper"


def resolved(options: FusedOptions) -> FusedOptions:
    """Fill in the defaults of all options, except `choose` if the options select one model.

    Raises
    ------
    UsageError
        Options contradict each other.
    """
    threads = threads_of(options.threads)
    free = all(getattr(options, name) is None for name in ONE_MODEL)
    choose = options.choose
    if choose and not free:
        raise UsageError(
            "--choose is not supported with options that select a single model; omit --choose, or "
            "omit --preset, --initial, --rounds and --final"
        )
    if choose is None and free:
        choose = True
    if options.is_paper and options.final != "levels":
        raise UsageError(
            "--impact=paper requires --final=levels; use both options, or --preset=paper"
        )
    beside = options.final == "beside"
    if beside and options.initial == "self-training":
        raise UsageError(
            "--final=beside is not supported with --initial=self-training; use --initial=supervised"
        )
    return filled(replace(options, choose=choose, threads=threads), {
        "impact": "log",
        "initial": "supervised" if beside else "self-training",
        "rounds": ROUNDS if options.final in (None, "distill") else 1,
        "final": "distill",
    })  # fmt: skip

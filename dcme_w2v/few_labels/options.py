"""The only declaration of the options of fused features; as in `dcme_w2v.options`."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from dcme_w2v.declarations import Checked, default_threads, option, seed_option, threads_option
from dcme_w2v.errors import UsageError

MAX_LEVELS = 127  # signed levels are stored as int8
IMPACTS = ("log", "centred", "paper")
FINALS = ("teach", "tied", "beside", "columns")
# Choosing by folds pays from this many labelled documents a class on, and in all.
CHOOSE_A_CLASS, CHOOSE_DOCUMENTS = 50, 300
PAPER_KEPT = "0.1"  # share of pairs that the paper keeps
ROUNDS = 3


@dataclass(frozen=True)
class FusedOptions(Checked, group="Model"):
    """How fused features are learnt."""

    levels: int = option(8, "number of levels", minimum=1, maximum=MAX_LEVELS)
    impact: str = option(
        "log",
        "impact of a feature on a class: log-odds (log), difference (centred), or 2r - 1 of "
        "binary features (paper)",
        choices=IMPACTS,
        advanced=True,
    )
    keep: str | None = option(
        None,
        "keep N pairs of feature and class, or a share such as 0.1 or 1/20 "
        "(default: all; paper: 0.1)",
        metavar="N|SHARE",
    )
    initial: str | None = option(
        None,
        "initial model: trained on the labelled documents, or self-trained on the unlabelled "
        "ones, too (default: self-training; paper: supervised)",
        choices=("self-training", "supervised"),
        advanced=True,
    )
    rounds: int | None = option(
        None,
        "passes over the unlabelled documents, each with the model of the one before "
        "(default: 3; paper: 1)",
        minimum=1,
        maximum=1000,
        advanced=True,
    )
    final: str | None = option(
        None,
        "final model: maxent trained on the fused model's surest decisions (teach), a weight a "
        "level (tied), that and the initial model's scores (beside), or maxent on a column for "
        "each level and class (columns) (default: teach; paper: tied)",
        choices=FINALS,
        advanced=True,
    )
    folds: int = option(
        3,
        "folds of the labelled documents, by class (supervised)",
        minimum=2,
        maximum=1000,
        advanced=True,
    )
    choose: bool | None = option(
        None,
        "choose initial model, rounds and final model by cross-validation, maxent and "
        "self-training among the candidates (default: from 50 labelled documents a class on, "
        "unless one of them is given)",
    )
    optimiser: str = option(
        "exact",
        "levels by optimal weighted k-means (exact), or by the paper's ADMM",
        choices=("exact", "admm"),
        advanced=True,
    )
    shrinkage: float = option(
        0.0, "precision of a prior that makes the weights of all levels similar", minimum=0.0,
        maximum=1e9,
        advanced=True,
    )  # fmt: skip
    threads: int | None = threads_option()
    seed: int = seed_option()

    def __post_init__(self) -> None:
        super().__post_init__()
        kept_pairs(self.keep, 1 << 62)


@dataclass(frozen=True)
class ShrinkOptions(Checked, group="Model"):
    """How the weights of a classifier are made small."""

    levels: int = option(8, "number of levels", minimum=1, maximum=MAX_LEVELS)
    keep: str | None = option(
        None,
        "keep N weights, or a share such as 0.1 or 1/20 (default: all)",
        metavar="N|SHARE",
    )
    max_bytes: int | None = option(
        None,
        "as many weights as fit into N bytes on disk; the number of levels is chosen by --holdout",
        minimum=1,
    )
    coding: str = option(
        "entropy",
        "levels on disk: entropy-coded, packed (4 bits up to 7 levels, then 5), or a byte each",
        choices=("entropy", "packed", "plain"),
    )
    words: str = option(
        "front",
        "words on disk: front-coded, as hash values, or plain",
        choices=("front", "hashed", "plain"),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        kept_pairs(self.keep, 1 << 62)


def kept_pairs(keep: str | None, pairs: int) -> int:
    """Return how many of some pairs to keep, from a number, a share or a fraction.

    Raises
    ------
    UsageError
        It is neither, is 0, or more than there are.
    """
    if keep is None:
        return pairs
    over, slash, under = keep.partition("/")
    try:
        number = int(keep) if keep.isdecimal() else None
        share = float(over) / float(under) if slash else float(keep)
    except (ValueError, ZeroDivisionError):
        number, share = None, -1.0
    if number is not None and (number > 1 or keep == "1"):
        if number > pairs:
            raise UsageError(f"--keep={keep}: there are {pairs:,} pairs; keep fewer, or a share")
        return number
    if not 0 < share <= 1:
        raise UsageError(
            f"--keep={keep}: must be a number of pairs, or a share such as 0.1 or 1/20"
        )
    return max(1, int(share * pairs))


def resolved(options: FusedOptions, documents: int, classes: int) -> FusedOptions:
    """Return the options with every default filled in, for so many labelled documents."""
    paper = options.impact == "paper"
    free = options.initial is None and options.rounds is None and options.final is None
    enough = documents >= max(CHOOSE_DOCUMENTS, CHOOSE_A_CLASS * classes)
    choose = options.choose if options.choose is not None else free and enough and not paper
    if choose and not free:
        raise UsageError(
            "--choose: chooses --initial, --rounds and --final; leave them out, or give --no-choose"
        )
    beside = options.final == "beside"
    initial = options.initial or ("supervised" if paper or beside else "self-training")
    if beside and initial != "supervised":
        raise UsageError("--final=beside: needs scores out of fold; give --initial=supervised")
    return dataclasses.replace(
        options,
        keep=options.keep or (PAPER_KEPT if paper else None),
        initial=initial,
        rounds=options.rounds or (1 if paper or beside else ROUNDS),
        final=options.final or ("tied" if paper else "teach"),
        choose=choose,
        threads=options.threads or default_threads(),
    )

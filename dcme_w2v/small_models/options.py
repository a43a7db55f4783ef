"""The options of `fuse shrink`; see `dcme_w2v.declarations`."""

from dataclasses import dataclass

from dcme_w2v.declarations import Checked, option
from dcme_w2v.errors import UsageError
from dcme_w2v.few_labels.options import MAX_LEVELS


@dataclass(frozen=True)
class ShrinkOptions(Checked):
    """How the weights of a classifier are compressed."""

    group = "Model"

    removed = ("coding", "words")

    levels: int = option(8, "number of levels", minimum=1, maximum=MAX_LEVELS)
    keep: str | None = option(
        None,
        "keep N weights, or a share such as 0.1 or 1/20 (default: all)",
        metavar="N|SHARE",
        check=lambda keep: kept_weights(keep, 1 << 62),
    )
    max_bytes: int | None = option(
        None,
        "keep as many weights as fit into N bytes on disk; --holdout chooses the number of levels",
        minimum=1,
    )


def kept_weights(keep: str | None, total: int) -> int:
    """Return how many of `total` weights stay, given a number, a share or a fraction.

    Raises
    ------
    UsageError
        `keep` is no number or share, is 0, or is more than `total`.
    """
    if keep is None:
        return total
    over, slash, under = keep.partition("/")
    try:
        number = int(keep) if keep.isdecimal() else None
        share = float(over) / float(under) if slash else float(keep)
    except (ValueError, ZeroDivisionError):
        number, share = None, -1.0
    if number is not None and (number > 1 or keep == "1"):
        if number > total:
            raise UsageError(
                f"--keep={keep}: there are {total:,} weights; keep fewer, or a share of them"
            )
        return number
    if not 0 < share <= 1:
        raise UsageError(
            f"--keep={keep}: must be a number of weights, or a share such as 0.1 or 1/20"
        )
    return max(1, int(share * total))

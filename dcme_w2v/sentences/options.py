"""Declare the sentence-vector options."""

from dataclasses import dataclass

from dcme_w2v.declarations import Checked, option

POOLINGS = ("static", "usif", "mean")


@dataclass(frozen=True)
class EncodeOptions(Checked):
    """Options for pooling word vectors into sentence vectors."""

    group = "Model"

    pooling: str = option(
        "static",
        "sentence vector: static (weighted mean of whitened vectors), usif (common components "
        "removed) or mean (unweighted)",
        choices=POOLINGS,
    )
    dim: int | None = option(
        None,
        "keep the N dimensions with the highest variance",
        minimum=1,
        only={"pooling": ("static",)},
    )
    unit: bool = option(
        False,
        "scale sentence vectors to unit length (default: off, unless a VECTORS folder enables it)",
    )

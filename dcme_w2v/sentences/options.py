"""The options of sentence vectors; see `dcme_w2v.declarations`."""

from dataclasses import dataclass

from dcme_w2v.declarations import Checked, option

POOLINGS = ("static", "usif", "mean")


@dataclass(frozen=True)
class EncodeOptions(Checked):
    """How word vectors become sentence vectors."""

    group = "Model"

    pooling: str = option(
        "static",
        "whitened unit rows with SIF and idf weights, which needs no other sentences; uSIF, which "
        "removes what the given sentences have in common; the plain mean",
        choices=POOLINGS,
    )
    dim: int | None = option(
        None, "keep the N directions of the most variance", minimum=1, only={"pooling": ("static",)}
    )
    unit: bool = option(
        False, "scale sentence vectors to unit length (default: as a folder of VECTORS declares)"
    )

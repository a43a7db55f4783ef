"""The options of sentence vectors; see `dcme_w2v.declarations`."""

from dataclasses import dataclass

from dcme_w2v.declarations import Checked, option

POOLINGS = ("static", "usif", "mean", "idf")


@dataclass(frozen=True)
class EncodeOptions(Checked):
    """How word vectors become sentence vectors."""

    group = "Model"

    pooling: str = option(
        "static",
        "whitened unit rows with SIF and idf weights, which needs no other sentences; uSIF, which "
        "removes what the given sentences have in common; the plain mean; the mean weighted by idf",
        choices=POOLINGS,
    )
    dim: int | None = option(
        None, "keep the N directions of the most variance", minimum=1, only={"pooling": ("static",)}
    )
    unit: bool = option(
        False, "scale sentence vectors to unit length (default: as a folder of VECTORS declares)"
    )


@dataclass(frozen=True)
class CardOptions(Checked):
    """What the model card of a folder of static embeddings says, besides the manifest."""

    group = "Output"

    language: str | None = option(None, "language of the text, as en", metavar="CODE")
    license: str | None = option(
        None, "license of the vectors, as cc-by-sa-3.0", metavar="NAME", advanced=True
    )
    scores: str | None = option(
        None,
        "scores for the card: the output of eval sts --json",
        metavar="FILE",
        path="reads",
        advanced=True,
    )

"""The options of search; see `dcme_w2v.declarations`."""

from dataclasses import dataclass

from dcme_w2v.declarations import Checked, option


@dataclass(frozen=True)
class SearchOptions(Checked):
    """How documents are ranked; docs/decisions/search.md has how the defaults were chosen."""

    group = "Model"

    k1: float = option(
        1.2, "BM25: how slowly the score of a repeated word saturates", minimum=0, maximum=100
    )
    b: float = option(0.6, "BM25: how much long documents are penalized", minimum=0, maximum=1)
    characters: float = option(
        1.0, "weight of character n-grams, where words have 1", minimum=0, maximum=100
    )
    vector_weight: float = option(
        0.1,
        "weight of the cosines of VECTORS, where words have 1",
        minimum=0,
        maximum=100,
        needs=("vectors",),
    )

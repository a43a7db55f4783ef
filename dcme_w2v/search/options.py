"""Declare the search options."""

from dataclasses import dataclass

from dcme_w2v.declarations import Checked, option


@dataclass(frozen=True)
class SearchOptions(Checked):
    """Options for ranking documents; docs/decisions/search.md explains the defaults."""

    group = "Model"

    k1: float = option(
        1.2, "BM25 saturation: higher values reward repeated words more", minimum=0, maximum=100
    )
    b: float = option(
        0.6,
        "BM25 length normalization: higher values penalize long documents more",
        minimum=0,
        maximum=1,
    )
    characters: float = option(
        1.0,
        "weight of the BM25 score for character n-grams, relative to the score for words",
        minimum=0,
        maximum=100,
    )
    vector_weight: float = option(
        0.1,
        "weight of the word-vector similarity (--vectors), relative to the BM25 score",
        minimum=0,
        maximum=100,
        needs=("vectors",),
    )

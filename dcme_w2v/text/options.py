"""Declare the phrase options."""

from dataclasses import dataclass

from dcme_w2v.declarations import Checked, option, options_in
from dcme_w2v.options import VocabularyOptions

READING = [  # options for reading text, which `phrases` also accepts
    one.name for one in options_in(VocabularyOptions) if one.name not in ("min_count", "max_vocab")
]


@dataclass(frozen=True)
class PhraseOptions(Checked):
    """Options that determine which pairs of words are joined into phrases."""

    group = "Model"

    passes: int = option(
        1,
        "number of passes over the text (two passes find phrases of up to four words)",
        minimum=1,
        maximum=9,
        unless=("read_table",),
    )
    threshold: float | None = option(
        None,
        "join word pairs whose score is above X (default: 100, or 0.5 with --scorer=npmi)",
        word2vec="threshold",
        unless=("read_table",),
    )
    scorer: str = option(
        "default",
        "pair score: default (as in word2phrase) or npmi (normalized pointwise mutual information)",
        choices=("default", "npmi"),
        unless=("read_table",),
    )
    min_count: int = option(
        5,
        "join only words and pairs that occur at least N times",
        minimum=1,
        word2vec="min-count",
        unless=("read_table",),
    )
    connectors: str | None = option(
        None,
        'connectors allowed inside phrases, such as "of": english (built-in list) or a file',
        metavar="english|FILE",
        path="reads",
        unless=("read_table",),
    )
    memory: float = option(
        1.0,
        "memory limit in GB for pair counts; if exceeded, the text is read several times",
        minimum=0.001,
        maximum=1e6,
        unless=("read_table",),
        advanced=True,
        group="Run",
    )

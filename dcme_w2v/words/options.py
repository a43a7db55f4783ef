"""Declares the options of `train` that say which words get a vector, and their classes."""

from __future__ import annotations

from dataclasses import dataclass

from dcme_w2v.declarations import Checked, option
from dcme_w2v.errors import UsageError


@dataclass(frozen=True)
class NewWordsOptions(Checked, group="Input"):
    """Which words get a vector: words of the text, of earlier vectors, and one for rare words."""

    init_vocab: str = option(
        "new",
        "words that get vectors: words of the text (new), of --init (old) or of both (union); with "
        "old and union, counts of --init are added",
        choices=("new", "old", "union"),
        advanced=True,
        needs=("init",),
        unless=("read_vocab",),
        strict=True,
    )
    unk: str | None = option(
        None,
        "train one vector, of this word, for all words that are not in the vocabulary; <unk> if no "
        "word is given",
        metavar="WORD",
        bare="<unk>",
        advanced=True,
        unless=("subwords", "cluster"),
        strict=True,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.unk is None:
            return
        word = self.unk.encode(errors="surrogateescape")
        if word.split() != [word] or b"\0" in word or word == b"</s>" or not _is_text(word):
            raise UsageError(f"--unk={self.unk!r}: must be one word, such as <unk>")


def _is_text(word: bytes) -> bool:
    try:
        word.decode()
    except UnicodeDecodeError:
        return False
    return True


@dataclass(frozen=True)
class ClassesOptions(Checked, group="Output"):
    """Whether classes of words are written instead of their vectors."""

    classes: int = option(
        0,
        'write N k-means classes of the words to --output instead of vectors, lines "word class"; '
        "0: vectors",
        minimum=0,
        word2vec="classes",
        advanced=True,
        only={"format": ("text",)},
        unless=("output_context",),
        strict=True,
    )

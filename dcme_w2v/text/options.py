"""The options of the tokeniser; see `dcme_w2v.declarations`."""

from __future__ import annotations

from dataclasses import dataclass

from dcme_w2v.declarations import Checked, option

_WORDS = {"tokenize": ("words",)}


@dataclass(frozen=True)
class TokenizerOptions(Checked, group="Text"):
    """How text is split into tokens."""

    tokenize: str = option(
        "whitespace",
        "tokens are separated by whitespace; or runs of letters, marks and digits of raw text, in "
        "lower case",
        choices=("whitespace", "words"),
    )
    normalize: str = option(
        "nfc",
        "Unicode normal form of the text",
        choices=("nfc", "nfkc", "none"),
        only=_WORDS,
        advanced=True,
    )
    keep_case: bool = option(False, "do not convert to lower case", only=_WORDS, advanced=True)
    strip_accents: bool = option(
        False, "remove accents and other marks", only=_WORDS, advanced=True
    )
    digits: str = option(
        "keep",
        "digits as they are, as 0 (1984 is 0000), or dropped as punctuation is",
        choices=("keep", "zero", "drop"),
        only=_WORDS,
        advanced=True,
    )
    punctuation: str = option(
        "drop",
        "drop punctuation and symbols, or keep each as a token",
        choices=("drop", "keep"),
        only=_WORDS,
        advanced=True,
    )

r"""Tokenize raw text in the same way for training, for later use and in exported tokenizers.

Text is converted to a Unicode normal form and to lower case. A token is then a run of letters,
marks, digits and zero-width joiners; an ideograph is a token of its own; punctuation and variation
selectors are dropped:

>>> Tokenizer(TokenizerOptions(tokenize="words")).tokens("Das CAFE\u0301, 3 Euro!")
['das', 'café', '3', 'euro']

A `tokenizer.json` file of Hugging Face's tokenizers can express this rule exactly; see
`Tokenizer.to_json`.
"""

from __future__ import annotations

import json
import threading
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, TypeAlias

import numpy as np

from dcme_w2v._core.text import Tokenizer as CoreTokenizer
from dcme_w2v.declarations import part_of
from dcme_w2v.errors import FormatError, UnknownOptionError, UsageError
from dcme_w2v.formats.texts import Text, Tokenized
from dcme_w2v.numeric.arrays import I64
from dcme_w2v.options import TokenizerOptions

from .unicode_tables import (
    ALPHABETS_END,
    ASSIGNED_END,
    IDEOGRAPHS,
    JOINERS,
    LATER_BYTE,
    VARIATION_SELECTORS,
    unicode_tables,
)

CONTINUES = "##"
MAX_CHARACTERS = 1000  # maximum number of characters in a word that is split into pieces
_DIGITS = "0123456789"


class WordPieces:
    """Split words into pieces that a vocabulary contains.

    Parameters
    ----------
    words : iterable of str
        Words, and pieces that start with ``##``; word i has id i.
    """

    def __init__(self, words: Iterable[str]) -> None:
        texts = list(words)
        self._ids = sorted(range(len(texts)), key=texts.__getitem__)
        self._sorted = [texts[number] for number in self._ids]
        # In a sorted list, a word's longest listed prefix is the previous word or a prefix of it.
        self._within: list[int] = []
        for place, word in enumerate(self._sorted):
            self._within.append(self._beginning(word, place - 1))
        marked = [number for number, word in enumerate(texts) if word.startswith(CONTINUES)]
        self._behind = {texts[number][len(CONTINUES) :]: number for number in marked}
        self._longest = max(map(len, self._behind), default=0)

    def _beginning(self, word: str, place: int) -> int:
        while place >= 0 and not word.startswith(self._sorted[place]):
            place = self._within[place]
        return place

    def beginnings(self, count: int) -> I64:
        """For each of `count` words, return the ID of its longest prefix in the list, or -1."""
        ids = np.array([*self._ids, count])  # the index -1 (no prefix) selects this last item
        found = np.empty(len(ids), dtype=np.int64)
        found[ids[:-1]] = ids[self._within]
        return np.where(found[:count] < count, found[:count], -1)

    def of(self, word: str) -> list[int]:
        """Split a word into pieces and return their IDs, or [] if any part of it is unknown."""
        place = self._beginning(word, bisect_right(self._sorted, word) - 1)
        if place < 0 or len(word) > MAX_CHARACTERS:
            return []
        found, start = [self._ids[place]], len(self._sorted[place])
        while start < len(word):
            for end in range(min(start + self._longest, len(word)), start, -1):
                number = self._behind.get(word[start:end])
                if number is not None:
                    break
            else:
                return []
            found.append(number)
            start = end
        return found


def character_pieces(words: Sequence[str]) -> list[str]:
    """Return digits and the words' characters as pieces for the start and the inside of words."""
    known = set(words)
    characters = sorted(set("".join(known)).union(_DIGITS))
    pieces = [*characters, *(CONTINUES + one for one in characters)]
    return [piece for piece in pieces if piece not in known]


TokenizeLike: TypeAlias = str | Mapping[str, Any] | None
ENTRY = "tokenizer"  # key of the tokenizer options in manifests and models


class Tokenizer:
    """Split raw text into tokens; several threads can use the same object.

    Parameters
    ----------
    options : TokenizerOptions
        The rule; options that a subclass adds are ignored.

    Notes
    -----
    Python's `unicodedata` module determines which characters are letters, and their lower case;
    characters that its Unicode version does not define separate tokens.
    """

    def __init__(self, options: TokenizerOptions | None = None) -> None:
        self.options = part_of(options or TokenizerOptions(), TokenizerOptions)
        self._local = threading.local()

    @property
    def is_whitespace(self) -> bool:
        """Whether text is split at whitespace without any other change."""
        return self.options.tokenize == "whitespace"

    def tokenize(self, text: Text | memoryview) -> tuple[bytes, int]:
        r"""Split each line of UTF-8 text into tokens, and join the tokens with spaces.

        Parameters
        ----------
        text : bytes or Tokenized
            Any text. NUL and bytes that are not UTF-8 become parts of tokens.

        Returns
        -------
        tokenized : bytes
            The tokens, each after a space, and every line feed of the text.
        bad : int
            Offset in `text` of the first byte that is not UTF-8 text, or -1.
        """
        if isinstance(text, Tokenized):
            return text.text, -1
        if self.is_whitespace:
            return bytes(text), -1
        local = vars(self._local)
        if "complete" not in local:
            if np.frombuffer(text, dtype=np.uint8).max(initial=0) < LATER_BYTE:
                if "small" not in local:
                    local["small"] = self._core(ALPHABETS_END)
                return local["small"].tokenize(text)
            local["complete"] = self._core(ASSIGNED_END)
        return local["complete"].tokenize(text)

    def _core(self, end: int) -> CoreTokenizer:
        """Return the C core's tokenizer for text whose characters are all below `end`."""
        o = self.options
        form = "" if o.normalize == "none" else o.normalize.upper()
        args = form, not o.keep_case, o.strip_accents, o.digits, o.punctuation, end
        return CoreTokenizer(unicode_tables(*args))

    def tokens(self, text: str) -> list[str]:
        """Return the tokens of a text."""
        encoded = text.encode("utf-8", "surrogatepass")
        encoded, _ = self.tokenize(encoded)
        return [token.decode("utf-8", "surrogatepass") for token in encoded.split()]

    def to_json(self, words: Sequence[str]) -> dict[str, Any]:
        """Return the equivalent tokenizer.json for Hugging Face's tokenizers.

        Parameters
        ----------
        words : sequence of str
            The vocabulary: word i has id i. Out-of-vocabulary tokens are split as by `WordPieces`;
            where that fails they get the id of ``[UNK]``, the next id unless `words` has it.
        """
        vocabulary = {word: number for number, word in enumerate(words)}
        vocabulary.setdefault("[UNK]", len(vocabulary))
        return {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": [],
            "normalizer": self._normalizer(),
            "pre_tokenizer": self._pre_tokenizer(),
            "post_processor": None,
            "decoder": None,
            "model": {
                "type": "WordPiece",
                "vocab": vocabulary,
                "unk_token": "[UNK]",
                "continuing_subword_prefix": CONTINUES,
                "max_input_chars_per_word": MAX_CHARACTERS,
            },
        }

    def is_stated_by(self, layout: Mapping[str, Any]) -> bool:
        """Return whether a tokenizer.json describes this tokenizer exactly."""
        own = self.to_json([])
        del own["model"]
        return all(layout.get(name) == value for name, value in own.items())

    @classmethod
    def nearest_to(cls, layout: Mapping[str, Any]) -> Tokenizer:
        """Return the tokenizer most similar to that in another program's tokenizer.json."""
        steps = json.dumps(layout.get("normalizer"))
        lowers = '"type": "Lowercase"' in steps or '"lowercase": true' in steps
        strips = '"StripAccents"' in steps or '"strip_accents": true' in steps
        strips |= '"BertNormalizer"' in steps and '"strip_accents": null' in steps and lowers
        options = TokenizerOptions(
            "words", keep_case=not lowers, strip_accents=strips, punctuation="keep"
        )
        return cls(options)

    def _normalizer(self) -> dict[str, Any] | None:
        o = self.options
        if self.is_whitespace:
            return None
        form = {"nfc": "NFC", "nfkc": "NFKC", "none": None}[o.normalize]
        steps: list[dict[str, Any]] = []
        if o.strip_accents:
            steps += [{"type": form.replace("C", "D")}] if form else []
            steps += [_replace(r"\p{Mn}", "")]
            form = form and "NFC"
        else:
            steps += [_replace(f"[{''.join(map(_range, VARIATION_SELECTORS))}]", "")]
        steps += [{"type": form}] if form else []
        steps += [{"type": "Lowercase"}] if not o.keep_case else []
        steps += [_replace(r"\p{Nd}", "0")] if o.digits == "zero" else []
        return {"type": "Sequence", "normalizers": steps}

    def _pre_tokenizer(self) -> dict[str, Any]:
        if self.is_whitespace:
            pattern = r"[^ \t\n\r\u{b}\f]+".replace(r"\u{b}", "\v")
        else:
            single = "".join(map(_range, IDEOGRAPHS))
            word = r"\p{L}\p{M}" if self.options.digits == "drop" else r"\p{L}\p{M}\p{N}"
            part = rf"(?:(?![{single}])[{word}])+"
            pattern = rf"[{single}]|{part}(?:[{_range(JOINERS)}]+{part})*"
            if self.options.punctuation == "keep":
                pattern += r"|[\p{P}\p{S}]"
        return {
            "type": "Split",
            "pattern": {"Regex": pattern},
            "behavior": "Removed",
            "invert": True,
        }

    def entry(self) -> dict[str, Any]:
        """Return an entry for manifests and models; {} stands for splitting text at whitespace."""
        return {} if self.is_whitespace else {ENTRY: asdict(self.options)}

    @classmethod
    def of_entry(
        cls, record: Mapping[str, Any] | None, place: str = "the vectors or the model"
    ) -> Tokenizer:
        """Create the tokenizer that a manifest or model records; error messages name `place`.

        Raises
        ------
        FormatError
            The entry is not a rule.
        """
        try:
            return cls(TokenizerOptions.from_mapping((record or {}).get(ENTRY) or {}))
        except (UsageError, UnknownOptionError, TypeError, AttributeError) as error:
            raise FormatError(f"{place}: the recorded tokenizer is not valid: {error}") from None

    @classmethod
    def of(cls, tokenize: TokenizeLike) -> Tokenizer | None:
        """Create a tokenizer from a name, or from options of the ``words`` tokenizer."""
        if tokenize is None:
            return None
        given = {"tokenize": tokenize} if isinstance(tokenize, str) else tokenize
        return cls(TokenizerOptions.from_mapping({"tokenize": "words", **given}))

    def __reduce__(self) -> tuple[type[Tokenizer], tuple[TokenizerOptions]]:
        return Tokenizer, (self.options,)


def _range(characters: range) -> str:
    return f"{chr(characters.start)}-{chr(characters.stop - 1)}"


def _replace(pattern: str, content: str) -> dict[str, Any]:
    return {"type": "Replace", "pattern": {"Regex": pattern}, "content": content}

"""Texts in memory: lines, lists of tokens, and blocks of them.

Whitespace is what `bytes.split` takes for it: space, tab, line feed, carriage return, vertical tab
and form feed. A line ends with a line feed. Both are the same in files, columns and lists.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from dcme_w2v.errors import CorpusError, UsageError

# As "surrogateescape" decodes them. Searched from a token's beginning only: linear in its length.
_BROKEN_TOKEN = re.compile(r"(?<!\S)\S*[\udc80-\udcff]\S*", re.ASCII)

_TOKEN = re.compile("[^ \t\n\r\v\f]+")


def tokens_of(text: str) -> list[str]:
    """Return the tokens of a text, separated by whitespace."""
    return _TOKEN.findall(text)


@dataclass(frozen=True)
class Tokenized:
    """Tokens separated by spaces, which no tokenizer changes."""

    text: bytes

    def __len__(self) -> int:
        return len(self.text)


Text: TypeAlias = bytes | Tokenized


def bytes_of(text: Text) -> bytes:
    """Return the bytes of a text."""
    return text.text if isinstance(text, Tokenized) else text


def is_null(value: Any) -> bool:
    """Return whether a value of a column or a Series stands for none."""
    is_nan = isinstance(value, float) and value != value
    return value is None or is_nan or type(value).__name__ == "NAType"


def text_of(value: Any, errors: str = "replace") -> Text:
    """Return a text, a list of tokens, or a list of such lists, as UTF-8.

    Tokens come as `Tokenized`, each list as a line; `errors` is for surrogates.

    Raises
    ------
    ValueError
        The value is something else, or a token has whitespace.
    """
    if isinstance(value, str):
        return value.encode("utf-8", errors)
    if isinstance(value, bytes):
        return value
    if isinstance(value, Mapping):
        raise ValueError("is a dict: name its text by --text-column, or give the text")
    try:
        parts = [text_of(part, errors) for part in value]
    except TypeError:
        raise ValueError(
            f"{value!r:.60} is neither a text nor a list of tokens; give str, bytes, or lists of "
            "these"
        ) from None
    tokens = [part.text for part in parts if isinstance(part, Tokenized)]
    if parts and len(tokens) == len(parts):
        return Tokenized(b"\n".join(tokens))
    for part in parts:
        if isinstance(part, Tokenized) or part.split() != [part]:
            shown = bytes_of(part).decode("utf-8", "backslashreplace")
            raise ValueError(
                f"the token {shown!r:.60} is empty or has whitespace in it; join its parts with _, "
                "or give the text as one string"
            )
    return Tokenized(b" ".join(map(bytes_of, parts)))


def valid(text: bytes, encoding_errors: str, place: Callable[[int], str]) -> bytes:
    """Return text as valid UTF-8 without NUL, or raise.

    Parameters
    ----------
    text : bytes
    encoding_errors : {"strict", "replace", "skip"}
        For tokens that are not UTF-8: fail, replace the bytes by U+FFFD, or skip the token.
    place : callable
        Returns how an error names a position in the text.
    """
    if (nul := text.find(b"\0")) >= 0:
        raise CorpusError(f"{place(nul)} is NUL: looks binary or UTF-16; give UTF-8 text")
    try:
        text.decode()
    except UnicodeDecodeError as error:
        if encoding_errors == "strict":
            raise CorpusError(
                f"{place(error.start)} is not UTF-8; convert the file, or use "
                "--encoding-errors=replace or skip (of a classifier: in training)"
            ) from None
        if encoding_errors == "replace":
            return text.decode(errors="replace").encode()
        return _BROKEN_TOKEN.sub("", text.decode(errors="surrogateescape")).encode()
    return text


def plain_lines(text: bytes) -> bytes:
    """Return lines with line feeds only between them."""
    return text.replace(b"\r\n", b"\n").removesuffix(b"\n") if b"\n" in text else text


def as_texts(items: Any, name: str = "document", errors: str = "replace") -> Iterator[Text]:
    """Return an iterable of texts or lists of tokens as UTF-8; a null is an empty text.

    Raises
    ------
    ValueError
        At once if `items` is one text or has several dimensions; later for an item of another type.
    """
    if isinstance(items, str | bytes | Mapping) or not isinstance(items, Iterable):
        raise ValueError(f"give an iterable of {name}s, not one {name} ({type(items).__name__})")
    if len(getattr(items, "shape", (0,))) != 1:
        raise ValueError(f"give {name}s of one dimension, as one column of a DataFrame")
    return (_as_text(item, f"{name} {number}", errors) for number, item in enumerate(items))


def _as_text(item: Any, place: str, errors: str) -> Text:
    item = item.as_py() if hasattr(item, "as_py") else item  # of pyarrow
    try:
        return b"" if is_null(item) else text_of(item, errors)
    except ValueError as error:
        kind = CorpusError if str(error).startswith("the token") else UsageError
        raise kind(f"{place}: {error}") from None


def blocks(texts: Iterable[Text], most_bytes: int, most: int | None = None) -> Iterator[list[Text]]:
    """Yield lists of texts, all or none of which are `Tokenized`.

    A list has `most` texts, or fewer with about `most_bytes`.
    """
    held: list[Text] = []
    size = 0
    for text in texts:
        if held and (size >= most_bytes or len(held) == most or type(text) is not type(held[0])):
            yield held
            held, size = [], 0
        held.append(text)
        size += len(text)
    if held:
        yield held


def joined(texts: list[Text]) -> Text:
    """Return texts as lines, `Tokenized` if they are; line ends inside of a text become spaces."""
    text = b"".join(bytes_of(one).replace(b"\n", b" ") + b"\n" for one in texts)
    return Tokenized(text) if isinstance(texts[0], Tokenized) else text

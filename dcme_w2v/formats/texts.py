"""Texts in memory: lines, lists of tokens, and blocks of them.

Whitespace is what `bytes.split` takes for it: space, tab, line feed, carriage return, vertical tab
and form feed. A line ends with a line feed. Both are the same in files, columns and lists.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from dcme_w2v.errors import CorpusError, UsageError

ENCODING_ERRORS = ("strict", "replace", "skip")
# As "surrogateescape" decodes them. Searched from a token's beginning only: linear in its length.
_BROKEN_TOKEN = re.compile(r"(?<!\S)\S*[\udc80-\udcff]\S*", re.ASCII)


class Tokenized(bytes):
    """Tokens separated by spaces, which no tokenizer changes."""


def is_null(value: Any) -> bool:
    """Return whether a value of a column or a Series stands for none."""
    is_nan = isinstance(value, float) and value != value
    return value is None or is_nan or type(value).__name__ == "NAType"


def text_of(value: Any, errors: str = "replace") -> bytes:
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
    if parts and all(isinstance(part, Tokenized) for part in parts):
        return Tokenized(b"\n".join(parts))
    for part in parts:
        if part.split() != [part] or isinstance(part, Tokenized):
            shown = part.decode("utf-8", "backslashreplace")
            raise ValueError(
                f"the token {shown!r:.60} is empty or has whitespace in it; join its parts with _, "
                "or give the text as one string"
            )
    return Tokenized(b" ".join(parts))


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


def lines_of(text: bytes) -> list[bytes]:
    """Return the lines of a text, at least one."""
    if b"\n" not in text:
        return [text]
    return text.replace(b"\r\n", b"\n").removesuffix(b"\n").split(b"\n")


def as_texts(items: Any, name: str = "document", errors: str = "replace") -> Iterator[bytes]:
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


def _as_text(item: Any, place: str, errors: str) -> bytes:
    item = item.as_py() if hasattr(item, "as_py") else item  # of pyarrow
    try:
        return b"" if is_null(item) else text_of(item, errors)
    except ValueError as error:
        kind = CorpusError if str(error).startswith("the token") else UsageError
        raise kind(f"{place}: {error}") from None


def blocks(
    texts: Iterable[bytes], most_bytes: int, most: int | None = None
) -> Iterator[list[bytes]]:
    """Yield lists of texts, all or none of which are `Tokenized`.

    A list has `most` texts, or fewer with about `most_bytes`.
    """
    held: list[bytes] = []
    size = 0
    for text in texts:
        is_other = held and isinstance(text, Tokenized) != isinstance(held[0], Tokenized)
        if size >= most_bytes or len(held) == most or is_other:
            yield held
            held, size = [], 0
        held.append(text)
        size += len(text)
    if held:
        yield held


def joined(lines: list[bytes]) -> bytes:
    """Return texts as lines, `Tokenized` if they are; line ends inside of a text become spaces."""
    text = b"".join(line.replace(b"\n", b" ") + b"\n" for line in lines)
    return Tokenized(text) if lines and isinstance(lines[0], Tokenized) else text

"""Convert texts and lists of tokens to UTF-8, and group them into blocks.

Whitespace is what `bytes.split` splits at: space, tab, line feed, carriage return, vertical tab and
form feed. A line ends with a line feed. Both rules are the same for files, columns and lists.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from dcme_w2v.errors import CorpusError, UsageError, warn
from dcme_w2v.files.opening import is_utf8

# Matches a token with undecodable bytes. The lookbehind makes the search time linear.
_BROKEN_TOKEN = re.compile(r"(?<!\S)\S*[\udc80-\udcff]\S*", re.ASCII)

_TOKEN = re.compile("[^ \t\n\r\v\f]+")


def tokens_of(text: str) -> list[str]:
    """Return the tokens of a text, separated by whitespace."""
    return _TOKEN.findall(text)


@dataclass(frozen=True)
class Tokenized:
    """Text that is already tokenized; a tokenizer only splits it at spaces."""

    text: bytes

    def __len__(self) -> int:
        return len(self.text)


Text: TypeAlias = bytes | Tokenized
T = TypeVar("T")


def bytes_of(text: Text) -> bytes:
    """Return a text as bytes, whether or not it is `Tokenized`."""
    return text.text if isinstance(text, Tokenized) else text


def is_null(value: Any) -> bool:
    """Return whether a value from a column or a Series is null."""
    is_nan = isinstance(value, float) and value != value
    return value is None or is_nan or type(value).__name__ == "NAType"


def text_of(value: Any, errors: str = "replace") -> Text:
    """Convert a text, a list of tokens, or several lists of tokens to UTF-8.

    Tokens are returned as `Tokenized`, each list as a line; `errors` applies to surrogates.

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
        raise ValueError(
            "the text is a dict; select its text column with --text-column, or pass only the text"
        )
    try:
        parts = [text_of(part, errors) for part in value]
    except TypeError:
        raise ValueError(
            f"{value!r:.60} is neither a text nor a list of tokens; use str, bytes, or lists of "
            "str or bytes"
        ) from None
    tokens = [part.text for part in parts if isinstance(part, Tokenized)]
    if parts and len(tokens) == len(parts):
        return Tokenized(b"\n".join(tokens))
    for part in parts:
        if isinstance(part, Tokenized) or part.split() != [part]:
            shown = bytes_of(part).decode("utf-8", "backslashreplace")
            raise ValueError(
                f"the token {shown!r:.60} is empty or contains whitespace; join its parts with _, "
                "or pass the text as one string"
            )
    return Tokenized(b" ".join(map(bytes_of, parts)))


def valid(text: bytes, encoding_errors: str, place: Callable[[int], str]) -> bytes:
    """Return text as valid UTF-8; raise an error if it contains NUL bytes.

    Parameters
    ----------
    text : bytes
    encoding_errors : {"strict", "replace", "skip"}
        For tokens that are not UTF-8: fail, replace the bytes by U+FFFD, or skip the token.
    place : callable
        Takes a position in the text; returns its name for error messages.
    """
    if (nul := text.find(b"\0")) >= 0:
        raise CorpusError(
            f"{place(nul)} is a NUL byte, so the file is probably binary or UTF-16; use UTF-8 text"
        )
    try:
        text.decode()
    except UnicodeDecodeError as error:
        if encoding_errors == "strict":
            raise CorpusError(
                f"{place(error.start)} is not UTF-8; convert the file to UTF-8, or use "
                "--encoding-errors=replace or skip (for a classifier, set this option during "
                "training)"
            ) from None
        if encoding_errors == "replace":
            return text.decode(errors="replace").encode()
        return _BROKEN_TOKEN.sub("", text.decode(errors="surrogateescape")).encode()
    return text


def plain_lines(text: bytes) -> bytes:
    """Convert CRLF line endings to LF, and remove one trailing LF, if present."""
    return text.replace(b"\r\n", b"\n").removesuffix(b"\n") if b"\n" in text else text


def as_texts(items: Any, name: str = "document", errors: str = "replace") -> Iterator[Text]:
    """Convert an iterable of texts or lists of tokens to UTF-8; a null becomes an empty text.

    With the default `errors`, bytes must be UTF-8, and no item may have a NUL character.

    Raises
    ------
    ValueError
        Immediately if `items` is one text or has several dimensions; for an item of another type,
        when it is reached.
    """
    if isinstance(items, str | bytes | Mapping) or not isinstance(items, Iterable):
        raise UsageError(f"{items!r:.60} is not a list of {name}s; pass a list, such as [{name}]")
    if len(getattr(items, "shape", (0,))) != 1:
        raise UsageError(
            f"the {name}s have several dimensions; pass a one-dimensional list or array, such as "
            "one column of a DataFrame"
        )
    return (_as_text(item, f"{name} {number}", errors) for number, item in enumerate(items))


def told_texts(items: Any) -> list[Text]:
    """Convert texts with `as_texts`, and warn if some texts are empty or missing."""
    texts = list(as_texts(items))
    if empty := sum(not bytes_of(text).strip() for text in texts):
        warn(f"{empty:,} of {len(texts):,} texts are empty or missing, so they have no features")
    return texts


def _as_text(item: Any, place: str, errors: str) -> Text:
    # Convert pyarrow scalars to Python values.
    item = item.as_py() if hasattr(item, "as_py") else item
    try:
        text = b"" if is_null(item) else text_of(item, errors)
    except ValueError as error:
        kind = CorpusError if str(error).startswith("the token") else UsageError
        raise kind(f"{place}: {error}") from None
    if errors == "replace":
        if b"\0" in bytes_of(text):
            raise CorpusError(f"{place} contains a NUL character; remove it")
        if not is_utf8(bytes_of(text)):
            raise CorpusError(f"{place} is not UTF-8; decode the bytes, or pass a str")
    return text


def blocks(
    texts: Iterable[T],
    most_bytes: int,
    most: int | None = None,
    size_of: Callable[[Any], int] = len,
) -> Iterator[list[T]]:
    """Group texts into lists that contain only `Tokenized` texts or only other texts.

    A list has `most` texts, or fewer with about `most_bytes`, and is yielded as soon as it is full.
    """
    held: list[T] = []
    size = 0
    for text in texts:
        if held and type(text) is not type(held[0]):
            yield held
            held, size = [], 0
        held.append(text)
        size += size_of(text)
        if size >= most_bytes or len(held) == most:
            yield held
            held, size = [], 0
    if held:
        yield held


def joined(texts: list[Text]) -> Text:
    """Join texts, one per line (line feeds become spaces); `Tokenized` texts remain `Tokenized`."""
    text = b"".join(bytes_of(one).replace(b"\n", b" ") + b"\n" for one in texts)
    return Tokenized(text) if isinstance(texts[0], Tokenized) else text

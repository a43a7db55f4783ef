"""A corpus from an iterable of token lists or lines, as a stream of blocks.

Called by `dcme_w2v.words.train`; `dcme_w2v.text.encode` reads it as it reads a `Corpus`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from dcme_w2v.errors import CorpusError, UsageError
from dcme_w2v.files.opening import BYTE_ORDER_MARK
from dcme_w2v.formats.corpus import BLOCK_BYTES, Block

Sentence = str | bytes | Iterable[str | bytes]  # a line or a list of tokens


class Sentences:
    """An iterable of sentences as one stream of blocks, which is iterated once.

    Parameters
    ----------
    items : iterable of str, bytes, or iterables of str or bytes
        A str or bytes is a line, whose tokens are separated by whitespace; other iterables are the
        tokens of a sentence.
    block_bytes : int
        Minimum size of a block.

    Attributes
    ----------
    paths, sizes, truncated, bytes_total
        As those of `dcme_w2v.formats.corpus.Corpus`: one source of unknown size.
    """

    def __init__(self, items: Iterable[Sentence], block_bytes: int = BLOCK_BYTES) -> None:
        self.paths = ["sentences"]
        self.sizes: list[int | None] = [None]
        self.truncated: list[str] = []
        self.bytes_total: int | None = None
        self._items = items
        self._block_bytes = block_bytes

    def __iter__(self) -> Iterator[Block]:
        lines: list[bytes] = []
        size = offset = 0
        for number, item in enumerate(self._items):
            line = _as_line(item, number)
            lines.append(line if number else line.removeprefix(BYTE_ORDER_MARK))
            size += len(line)
            if size >= self._block_bytes:
                yield self._block(lines, offset)
                offset, size, lines = offset + size, 0, []
        if lines:
            yield self._block(lines, offset)

    def _block(self, lines: list[bytes], offset: int) -> Block:
        text = memoryview(b"".join(lines))
        return Block(0, offset, text, offset + len(text))


def _as_line(item: Any, number: int) -> bytes:
    """Return a sentence as a line of UTF-8 with a line feed."""
    if isinstance(item, str | bytes):
        line = _as_bytes(item)
        return line if line.endswith(b"\n") else line + b"\n"
    try:
        tokens = [_as_bytes(token) for token in item]
    except (TypeError, AttributeError):
        raise UsageError(
            f"sentence {number}: {item!r:.60} is neither a line nor a list of tokens; give str, "
            "bytes, or lists of these"
        ) from None
    line = b" ".join(tokens)
    if len(line.split()) != len(tokens):
        wrong = next(token for token in tokens if token.split() != [token])
        shown = wrong.decode("utf-8", "backslashreplace")
        raise CorpusError(
            f"sentence {number}: the token {shown!r} is empty or has whitespace in it; join its "
            "parts with _, or give the sentence as one string"
        )
    return line + b"\n"


def _as_bytes(text: Any) -> bytes:
    """Return UTF-8; surrogates become invalid UTF-8, which `encode` handles."""
    if isinstance(text, bytes):
        return text
    if isinstance(text, str):
        return text.encode("utf-8", "surrogatepass")
    raise TypeError(f"a {type(text).__name__} is neither str nor bytes")

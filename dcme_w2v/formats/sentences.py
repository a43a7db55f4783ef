"""A corpus from an iterable of token lists or lines, as a stream of blocks."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from dcme_w2v.errors import CorpusError, UsageError
from dcme_w2v.files.opening import BYTE_ORDER_MARK
from dcme_w2v.formats.corpus import BLOCK_BYTES, Block, is_corpus_path

Sentence = str | bytes | Iterable[str | bytes]  # a line or a list of tokens
_PATH = re.compile(r"\S+/\S*|\S+\.[A-Za-z0-9]{1,5}")  # of a file that does not exist
CorpusLike = str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | Iterable[Sentence]


class CorpusPaths(tuple[str, ...]):
    """Paths of a corpus as the command line gives them, which are never lines of text."""


class Sentences:
    """An iterable of sentences as one stream of blocks, which is iterated once.

    Parameters
    ----------
    items : iterable of str, bytes, or iterables of str or bytes
        A str or bytes is a line, whose tokens are separated by whitespace; other iterables are the
        tokens of a sentence.

    Attributes
    ----------
    paths, sizes, truncated, bytes_total
        As in `dcme_w2v.formats.corpus.Corpus`: one source of unknown size.
    """

    def __init__(self, items: Iterable[Sentence]) -> None:
        self.paths = ["sentences"]
        self.sizes: list[int | None] = [None]
        self.truncated: list[str] = []
        self.bytes_total: int | None = None
        self.is_whole = False
        self._items = items

    def __iter__(self) -> Iterator[Block]:
        lines: list[bytes] = []
        size = offset = 0
        is_tokenized = False
        for item, line in self._lines():
            if size >= BLOCK_BYTES or (lines and is_tokenized != _is_tokens(item)):
                yield self._block(lines, offset, is_tokenized)
                offset, size, lines = offset + size, 0, []
            is_tokenized = _is_tokens(item)
            lines.append(line)
            size += len(line)
        if lines:
            yield self._block(lines, offset, is_tokenized)

    def lines(self) -> Iterator[bytes]:
        """Yield each sentence as a line of UTF-8 with a line feed."""
        return (line for _, line in self._lines())

    def _lines(self) -> Iterator[tuple[Sentence, bytes]]:
        for number, item in enumerate(self._items):
            line = _as_line(item, number)
            if self.is_whole:
                line = b" ".join(line.split()) + b"\n"
            yield item, line if number else line.removeprefix(BYTE_ORDER_MARK)

    def _block(self, lines: list[bytes], offset: int, is_tokenized: bool) -> Block:
        text = memoryview(b"".join(lines))
        return Block(0, offset, text, offset + len(text), is_tokenized=is_tokenized)


def paths_or_sentences(corpus: Any) -> tuple[tuple[str, ...], Sentences | None]:
    """Return the paths of a corpus, or its sentences if it is an iterable of sentences.

    A list or tuple of strings is read as paths if all of them exist, or if each has a slash or a
    suffix and no whitespace; otherwise as lines, which must have whitespace.

    Raises
    ------
    UsageError
        The corpus is none of these.
    """
    if isinstance(corpus, CorpusPaths):
        return corpus, None
    if isinstance(corpus, str | os.PathLike):
        if isinstance(corpus, str) and "\n" in corpus:
            raise UsageError("--corpus: is a string of several lines; give a list of lines")
        return (os.fspath(corpus),), None
    if isinstance(corpus, bytes) or not isinstance(corpus, Iterable):
        raise UsageError(
            f"--corpus={corpus!r:.60}: must be a path, paths, or an iterable of sentences"
        )
    if isinstance(corpus, Mapping):
        raise UsageError(
            "--corpus: is a dict, whose values are not read; give its values, or a list of "
            "sentences (counts of words are --read-vocab)"
        )
    if hasattr(corpus, "columns"):  # of pandas and polars
        raise UsageError(
            "--corpus: is a DataFrame, whose rows are not read; give its column of texts, as "
            "df['text']"
        )
    if isinstance(corpus, list | tuple):
        return _listed(corpus)
    items = iter(corpus)
    first = list(itertools.islice(items, 1))
    if first and isinstance(first[0], os.PathLike):
        return tuple(map(os.fspath, itertools.chain(first, items))), None
    return (), Sentences(itertools.chain(first, items))


def _listed(corpus: Sequence[Any]) -> tuple[tuple[str, ...], Sentences | None]:
    """Return a list as paths if all of them exist or look like paths, otherwise as sentences."""
    if corpus and (all(map(is_corpus_path, corpus)) or all(map(_looks_like_path, corpus))):
        return tuple(map(os.fspath, corpus)), None
    if corpus and all(isinstance(item, str) and len(item.split()) < 2 for item in corpus):
        raise UsageError(
            f"--corpus: {len(corpus):,} strings without whitespace, as {corpus[0]!r:.60}, are no "
            "files and have no context words: give sentences with spaces between the tokens, or "
            "lists of tokens"
        )
    return (), Sentences(corpus)


def _looks_like_path(item: object) -> bool:
    """Return whether a string reads as the name of a file: it has a slash or a suffix."""
    return isinstance(item, str) and _PATH.fullmatch(item) is not None


def _is_tokens(item: Sentence) -> bool:
    """Return whether a sentence is a list of tokens, which no tokeniser changes."""
    return not isinstance(item, str | bytes)


def _as_line(item: Any, number: int) -> bytes:
    """Return a sentence as a line of UTF-8 with a line feed; of a null, an empty one."""
    if (
        item is None
        or type(item).__name__ == "NAType"
        or (isinstance(item, float) and item != item)
    ):
        return b"\n"
    if isinstance(item, Mapping):
        raise UsageError(
            f"sentence {number} is a dict: give the column of texts, as dataset['text']"
        )
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

"""A corpus from an iterable of token lists or lines, as a stream of blocks."""

import itertools
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from dcme_w2v.errors import CorpusError, UsageError
from dcme_w2v.files.opening import BYTE_ORDER_MARK
from dcme_w2v.platform import PathLike

from .columns import Table, Tokenized, rows_of_dicts
from .corpus import BLOCK_BYTES, Block, is_corpus_path

Sentence = str | bytes | Iterable[str | bytes]  # a line or a list of tokens
_PATH = re.compile(r"\S+/\S*|\S+\.[A-Za-z0-9]{1,5}")  # of a file that does not exist
CorpusLike = PathLike | Iterable[PathLike] | Iterable[Sentence]


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
        self.column: str | None = None  # of text, if items are dicts
        self._items = items

    def __iter__(self) -> Iterator[Block]:
        lines: list[bytes] = []
        size = offset = 0
        was_tokenized = False
        for is_tokenized, line in self._lines():
            if size >= BLOCK_BYTES or (lines and is_tokenized != was_tokenized):
                yield self._block(lines, offset, was_tokenized)
                offset, size, lines = offset + size, 0, []
            was_tokenized = is_tokenized
            lines.append(line)
            size += len(line)
        if lines:
            yield self._block(lines, offset, was_tokenized)

    def lines(self) -> Iterator[bytes]:
        """Yield each sentence as a line of UTF-8 with a line feed."""
        return (line for _, line in self._lines())

    def _lines(self) -> Iterator[tuple[bool, bytes]]:
        if self.column is not None:
            table = Table("sentences", self.column, whole=self.is_whole)
            for row in rows_of_dicts(table, self._items):
                for text in row.lines:
                    yield row.is_tokenized, _as_line(text, 0)
            return
        for number, item in enumerate(self._items):
            line = _as_line(item, number)
            if self.is_whole:
                line = b" ".join(line.split()) + b"\n"
            is_tokenized = not isinstance(item, str | bytes)
            yield is_tokenized, line if number else line.removeprefix(BYTE_ORDER_MARK)

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
        path = os.fspath(corpus)
        if "\n" in path or (len(path.split()) > 3 and not is_corpus_path(path)):
            raise UsageError(f"--corpus={path!r:.60}: is text, no file; give a list of sentences")
        return (path,), None
    if hasattr(corpus, "columns"):  # of pandas, polars and pyarrow
        raise UsageError(
            "--corpus: is a DataFrame, whose rows are not read; give its column of texts, as "
            "df['text']"
        )
    if isinstance(corpus, bytes) or not isinstance(corpus, Iterable):
        raise UsageError(
            f"--corpus={corpus!r:.60}: must be a path, paths, or an iterable of sentences"
        )
    if isinstance(corpus, Mapping):
        raise UsageError(
            "--corpus: is a dict, whose values are not read; give its values, or a list of "
            "sentences (counts of words are --read-vocab)"
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
    look_like_paths = (isinstance(item, str) and _PATH.fullmatch(item) for item in corpus)
    if corpus and (all(map(is_corpus_path, corpus)) or all(look_like_paths)):
        return tuple(map(os.fspath, corpus)), None
    if corpus and all(isinstance(item, str) and len(item.split()) < 2 for item in corpus):
        raise UsageError(
            f"--corpus: {len(corpus):,} strings without whitespace, as {corpus[0]!r:.60}, are no "
            "files and have no context words: give sentences with spaces between the tokens, or "
            "lists of tokens"
        )
    return (), Sentences(corpus)


def as_texts(items: Any, name: str = "document") -> Iterator[bytes]:
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
    return (_as_text(item, f"{name} {number}") for number, item in enumerate(items))


def _as_text(item: Any, place: str, errors: str = "replace") -> bytes:
    """Return a text or a list of tokens as UTF-8; `errors` is for surrogates."""
    item = item.as_py() if hasattr(item, "as_py") else item  # of pyarrow
    is_nan = isinstance(item, float) and item != item
    if item is None or type(item).__name__ == "NAType" or is_nan:
        return b""
    if isinstance(item, Mapping):
        raise UsageError(f"{place} is a dict: name its text by --text-column, or give the text")
    if isinstance(item, str | bytes):
        return _as_bytes(item, errors)
    try:
        tokens = [_as_bytes(token, errors) for token in item]
    except (TypeError, AttributeError):
        raise UsageError(
            f"{place}: {item!r:.60} is neither a line nor a list of tokens; give str, bytes, or "
            "lists of these"
        ) from None
    text = b" ".join(tokens)
    if len(text.split()) != len(tokens):
        wrong = next(token for token in tokens if token.split() != [token])
        shown = wrong.decode("utf-8", "backslashreplace")
        raise CorpusError(
            f"{place}: the token {shown!r} is empty or has whitespace in it; join its parts with "
            "_, or give the text as one string"
        )
    return Tokenized(text)


def _as_line(item: Any, number: int) -> bytes:
    """Return a sentence as a line of UTF-8; invalid surrogates are handled by `encode`."""
    line = _as_text(item, f"sentence {number}", "surrogatepass")
    return line if line.endswith(b"\n") else line + b"\n"


def _as_bytes(text: Any, errors: str) -> bytes:
    if isinstance(text, bytes):
        return text
    if isinstance(text, str):
        return text.encode("utf-8", errors)
    raise TypeError(f"a {type(text).__name__} is neither str nor bytes")

"""A corpus from an iterable of token lists or lines, as a stream of blocks."""

import itertools
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dcme_w2v.errors import UsageError
from dcme_w2v.files.opening import BYTE_ORDER_MARK
from dcme_w2v.files.paths import listed
from dcme_w2v.platform import PathLike

from .columns import Source, Table, rows_of_dicts
from .corpus import BLOCK_BYTES, Block, is_corpus_path
from .texts import Text, Tokenized, as_texts, blocks, bytes_of

Sentence = str | bytes | Iterable[str | bytes]  # a line or a list of tokens
_PATH = re.compile(r"\S+/\S*|\S+\.[A-Za-z0-9]{1,5}")  # looks like the path of a missing file


@dataclass(frozen=True)
class CorpusPaths:
    """Paths from the command line, which are never taken for lines of text."""

    paths: tuple[Source, ...]


CorpusLike = PathLike | CorpusPaths | Iterable[PathLike] | Iterable[Sentence]


class Sentences:
    """An iterable of sentences, read once as one stream of blocks.

    Parameters
    ----------
    items : iterable of str, bytes, or iterables of str or bytes
        A str or bytes is a line, whose tokens are separated by whitespace; other iterables are the
        tokens of a sentence.
    column : str, optional
        The text column, if items are dicts.

    Attributes
    ----------
    paths, sizes, bytes_total
        As in `dcme_w2v.formats.corpus.Corpus`: one source of unknown size.
    """

    def __init__(self, items: Iterable[Any], column: str | None = None) -> None:
        self.paths = ["sentences"]
        self.sizes: list[int | None] = [None]
        self.bytes_total: int | None = None
        self.is_whole = False
        self.column = column
        self._items = items
        self.is_read_once = not isinstance(items, Sequence)

    def __iter__(self) -> Iterator[Block]:
        offset = 0
        for held in blocks(self.lines(), BLOCK_BYTES):
            text = memoryview(b"\n".join([*map(bytes_of, held), b""]))
            is_tokenized = isinstance(held[0], Tokenized)
            yield Block(0, offset, text, offset + len(text), is_tokenized=is_tokenized)
            offset += len(text)

    def lines(self) -> Iterator[Text]:
        """Yield each sentence as a line without a line feed; a text may have several lines."""
        if self.column is not None:
            table = Table("sentences", self.column, whole=self.is_whole)
            for row in rows_of_dicts(table, self._items):
                if row.text is not None:
                    yield Tokenized(row.text) if row.is_tokenized else row.text
            return
        # Invalid surrogates are handled by `encode`.
        for number, text in enumerate(as_texts(self._items, "sentence", "surrogatepass")):
            if isinstance(text, bytes):
                text = text.removeprefix(BYTE_ORDER_MARK if not number else b"")
                text = b" ".join(text.split()) if self.is_whole else text.removesuffix(b"\n")
            yield text


def paths_or_sentences(corpus: Any) -> tuple[Sequence[Source], Sentences | None]:
    """Return a corpus as paths, or as `Sentences` if it is an iterable of sentences.

    A list or tuple of strings is taken for paths if all of them exist, or if each has a slash or a
    suffix and no whitespace; otherwise for lines, which must contain whitespace.

    Raises
    ------
    UsageError
        The corpus is neither.
    """
    if isinstance(corpus, CorpusPaths):
        return corpus.paths, None
    if isinstance(corpus, Table) and corpus.rows is not None:
        return (), Sentences(corpus.rows, ",".join(corpus.text))
    if isinstance(corpus, str | os.PathLike):
        path = os.fspath(corpus)
        if "\n" in path or (len(path.split()) > 3 and not is_corpus_path(path)):
            raise UsageError(
                f"--corpus={path!r:.60}: is text, not a file; give a list of sentences"
            )
        return listed(corpus), None
    if hasattr(corpus, "columns"):  # pandas, polars, pyarrow
        raise UsageError(
            "--corpus: is a DataFrame, whose rows are not read; give its text column, as df['text']"
        )
    if isinstance(corpus, bytes) or not isinstance(corpus, Iterable):
        raise UsageError(
            f"--corpus={corpus!r:.60}: must be a path, paths, or an iterable of sentences"
        )
    if isinstance(corpus, Mapping):
        raise UsageError(
            "--corpus: is a dict, whose values are not read; give its values, or a list of "
            "sentences (word counts belong to --read-vocab)"
        )
    if isinstance(corpus, list | tuple):
        return _listed(corpus)
    items = iter(corpus)
    first = list(itertools.islice(items, 1))
    if first and isinstance(first[0], os.PathLike):
        return listed([*first, *items]), None
    return (), Sentences(itertools.chain(first, items))


def _listed(corpus: Sequence[Any]) -> tuple[Sequence[Source], Sentences | None]:
    """Return a list of strings as paths if all exist or look like paths, else as sentences."""
    look_like_paths = (isinstance(item, str) and _PATH.fullmatch(item) for item in corpus)
    if corpus and (all(map(is_corpus_path, corpus)) or all(look_like_paths)):
        return listed(corpus), None
    if corpus and all(isinstance(item, str) and len(item.split()) < 2 for item in corpus):
        raise UsageError(
            f"--corpus: {len(corpus):,} strings without whitespace, as {corpus[0]!r:.60}, are no "
            "files and have no context words: give sentences with spaces between the tokens, or "
            "lists of tokens"
        )
    return (), Sentences(corpus)

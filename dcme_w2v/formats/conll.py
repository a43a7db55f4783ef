"""Sentences of tokens with tags, in CoNLL's columns, and the features of each token.

A line is a token, columns, and its tag, separated by tabs or spaces; an empty line ends a sentence.
Lines that begin with ``-DOCSTART-`` are skipped. A line of one column has no tag.
"""

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from dcme_w2v.errors import CorpusError
from dcme_w2v.files.opening import read_lines

from .corpus import expand
from .documents import Document, checked_line

START, END = "<s>", "</s>"  # in place of words before and after a sentence
AFFIX = 4  # characters of the longest prefix and suffix


class Sentence(NamedTuple):
    """The lines between two empty ones.

    Attributes
    ----------
    tokens : list of str
    tags : list of str
        One for each token, or empty if the sentence has none.
    path : str
        The file, ``-`` for standard input.
    line : int
        The line of the first token, from 1.
    """

    tokens: list[str]
    tags: list[str]
    path: str
    line: int


def read_sentences(
    corpus: Sequence[str], *, encoding_errors: str = "strict", strict: bool = False
) -> Iterator[Sentence]:
    """Read sentences one by one, in order; parameters as in `read_documents`.

    Raises
    ------
    CorpusError
        A file cannot be read, is not text, or some tokens of a sentence have a tag and others none.
    """
    for path in expand(corpus, strict):
        lines = enumerate(read_lines(path), 1)
        read = (
            (n, checked_line(line.rstrip(b"\r\n"), path, n, encoding_errors)) for n, line in lines
        )
        kept = ((n, line) for n, line in read if not line.startswith(b"-DOCSTART-"))
        for has_tokens, block in itertools.groupby(
            kept, key=lambda one: bool(one[1].decode().strip())
        ):
            if has_tokens:
                yield _sentence(path, list(block))


def _sentence(path: str, block: list[tuple[int, bytes]]) -> Sentence:
    tokens, tags = [], []
    for number, line in block:
        # Columns are separated by ASCII spaces only: a no-break space is a part of its token.
        columns = [one.decode() for one in (line.split(b"\t") if b"\t" in line else line.split())]
        token = "".join(columns[0].split())
        if not token:
            raise CorpusError(f"{path}: line {number} has no token in its first column; add one")
        tokens.append(token)
        if len(columns) > 1 and columns[-1].strip():
            tags.append(columns[-1].strip())
        if len(tags) not in (0, len(tokens)):
            raise CorpusError(
                f"{path}: line {number}: some tokens of its sentence have a tag and others none; "
                "give each a tag in the last column, or none"
            )
    return Sentence(tokens, tags, path, block[0][0])


def token_documents(sentences: Iterator[Sentence]) -> Iterator[Document]:
    """Yield each token as a document: its tag, and its features separated by spaces."""
    for sentence in sentences:
        for i, features in enumerate(token_features(sentence.tokens)):
            labels = (sentence.tags[i],) if sentence.tags else ()
            text = " ".join(features).encode()
            yield Document(labels, text, sentence.path, sentence.line + i, i == 0)


def token_features(tokens: Sequence[str]) -> Iterator[list[str]]:
    """Yield the names of the features of each token of a sentence.

    These are the words up to two places away, pairs of neighbors, shapes (``Xx`` for Paris, ``0``
    for 1984), prefixes and suffixes of up to four characters.
    """
    lower = [START, START, *(token.lower() for token in tokens), END, END]
    shapes = [START, *map(shape, tokens), END]
    for i, token in enumerate(tokens):
        words = lower[i : i + 5]
        found = [f"w{place:+d}={word}" for place, word in zip(range(-2, 3), words, strict=True)]
        found += [f"w-1,w={words[1]},{words[2]}", f"w,w+1={words[2]},{words[3]}", f"token={token}"]
        near = shapes[i : i + 3]
        found += [f"shape{place:+d}={one}" for place, one in zip(range(-1, 2), near, strict=True)]
        sizes = range(1, min(AFFIX, len(token)) + 1)
        found += [f"prefix={token[:n]}" for n in sizes] + [f"suffix={token[-n:]}" for n in sizes]
        yield found


def shape(token: str) -> str:
    """Return a token with letters as X or x, digits as 0, and no letter repeated."""
    kinds = (
        "0" if c.isdigit() else "X" if c.isupper() else "x" if c.isalpha() else c for c in token
    )
    return "".join(kind for kind, _ in itertools.groupby(kinds))

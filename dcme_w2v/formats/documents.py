"""Read documents (one per line) and tagged sentences (CoNLL columns)."""

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePath
from typing import Any, NamedTuple

from dcme_w2v.declarations import ENCODING_ERRORS, check_choice, flag_of
from dcme_w2v.errors import CorpusError, warn
from dcme_w2v.files.atomic import STANDARD
from dcme_w2v.files.opening import (
    BYTE_ORDER_MARK,
    LINE_BYTES,
    CorpusFile,
    arriving_lines,
    head_of,
    read_lines,
    read_whole,
    sniff,
)
from dcme_w2v.files.paths import as_paths

from .columns import Source, Table, check_no_table, read_rows
from .corpus import expand, text_files
from .labels import label_of, labels_of
from .texts import Text, Tokenized, bytes_of, valid

FORMS = ("auto", "tab", "fasttext", "text")
# The literal comes first, so that `re` can search for it quickly.
_FASTTEXT_TOKEN = re.compile(rb"__label__(?<!\S__label__)(\S*)")
_CONLLU_ID = re.compile(r"[0-9]+(?:[-.][0-9]+)?")
_CONLLU_COLUMNS = 10


class Document(NamedTuple):
    """A document with its labels, its text and its position in the file.

    Attributes
    ----------
    labels : tuple of str
        The labels; empty if there are none.
    text : bytes or Tokenized
        The text after the labels, valid UTF-8 without NUL.
    path : str
        The file, ``-`` for standard input.
    line : int
        The line in that file, from 1.
    is_first : bool
        False for the second and later tokens of a sentence, where tokens are documents.
    kept : tuple
        The values of the columns `Table.keep`, if the document is a row of a table.
    """

    labels: tuple[str, ...]
    text: Text
    path: str
    line: int
    is_first: bool = True
    kept: tuple[Any, ...] = ()

    @property
    def words(self) -> list[bytes]:
        r"""The tokens of the text, which are separated by ASCII whitespace."""
        return bytes_of(self.text).split()

    @property
    def place(self) -> str:
        """The document's position in the form ``FILE:LINE``, for messages."""
        return f"{self.path}:{self.line}"


def read_documents(
    corpus: Sequence[Source],
    *,
    form: str = "auto",
    encoding_errors: str = "strict",
    by_class: bool = False,
) -> Iterator[Document]:
    """Read documents one by one, in order; an empty line is a document without tokens.

    Parameters
    ----------
    corpus : sequence of str
        Files, folders, ``-``, URLs, also compressed; see `dcme_w2v.formats.corpus.expand`. A
        null in the text column of a `Table` is a document without tokens, with a warning.
    form : {"auto", "tab", "fasttext", "text"}
        Format of a line: labels, a TAB and text; text with tokens that start with ``__label__``;
        text alone. "auto" detects it for each line, by such tokens, then by its first TAB.
    encoding_errors : {"strict", "replace", "skip"}
        For tokens that are not UTF-8: fail, replace the bytes by U+FFFD, or skip the token.
    by_class : bool
        Whether a folder whose lines have no labels contains one subfolder per class; its files are
        then the documents.

    Raises
    ------
    CorpusError
        A file cannot be read, or a line is not text; the message has file and line.
    UsageError
        `form` or `encoding_errors` is not one of the choices.
    """
    for name, value, choices in (
        ("form", form, FORMS),
        ("encoding_errors", encoding_errors, ENCODING_ERRORS["choices"]),
    ):
        check_choice(flag_of(name), value, choices)
    if not by_class:
        return _told(_read(expand(corpus), form, encoding_errors), corpus)
    read = []
    for path in as_paths(corpus):
        is_folder = isinstance(path, str) and path != STANDARD and Path(path).is_dir()
        files = _files_by_class(path) if is_folder else []
        read.append(
            _whole_files(files, encoding_errors)
            if files
            else _read(expand([path]), form, encoding_errors)
        )
    found = itertools.chain(*read) if read else _read(expand([]), form, encoding_errors)
    return _told(found, corpus)


def _told(documents: Iterator[Document], corpus: Sequence[Source]) -> Iterator[Document]:
    """Yield documents, and warn at the end about the number of table rows without text."""
    table = next((one for one in as_paths(corpus) if isinstance(one, Table)), None)
    if table is None or table.rows is not None:
        yield from documents
        return
    rows, without, place = 0, 0, ""
    for document in documents:
        rows += 1
        if not document.text:
            without, place = without + 1, place or document.place
        yield document
    if without:
        warn(
            f"{without:,} of {rows:,} rows, the first at {place}, have no text in column "
            f"{','.join(table.text)!r}, so they are documents without words"
        )


def at_least_one(documents: Iterable[Document], corpus: Sequence[Source]) -> Iterator[Document]:
    """Yield the documents of a corpus; raise a `CorpusError` if there are none."""
    document = None
    for document in documents:
        yield document
    if document is None:
        named = ", ".join(map(str, corpus[:3]))
        raise CorpusError(f"{named}: no documents were found; use files that contain text")


def _files_by_class(folder: str) -> list[tuple[str, str]]:
    """Return the label and path of every document in a folder that has one subfolder per class.

    Returns
    -------
    list of (str, str)
        Empty for a folder without subfolders, or whose lines have labels.

    Raises
    ------
    CorpusError
        It is not clear what the classes are.
    """
    files = [(PurePath(path).relative_to(folder).parts, path) for path in text_files(folder)]
    first = {parts[0]: path for parts, path in reversed(files) if len(parts) > 1}
    have_labels = {_has_labels(path) for path in first.values()}
    if have_labels in (set(), {True}):
        return []
    problem = ""
    if True in have_labels:
        problem = "only some of the files have labels in their lines"
    elif loose := [path for parts, path in files if len(parts) == 1]:
        problem = f"{loose[0]} is not in a subfolder"
    elif deep := [parts[:-1] for parts, _ in files if len(parts) > 2]:
        problem = f"there are folders in {Path(folder, deep[0][0])}"
    if problem:
        raise CorpusError(
            f"{folder}: {problem}; use a folder that contains only one subfolder per class, or "
            "use files whose lines have labels"
        )
    keys = {name.partition("=")[0] if "=" in name else "" for name in first}
    start = f"{next(iter(keys))}=" if len(keys) == 1 and "" not in keys else ""
    found = [(label_of(parts[0].removeprefix(start)), path) for parts, path in files]
    if unnamed := [
        path
        for label, path in found
        if not label or label.encode(errors="replace").decode() != label
    ]:
        raise CorpusError(
            f"{unnamed[0]}: the name of this file's folder is not a valid label; rename the folder"
        )
    warn(
        f"{folder}: the {len(first):,} subfolders are read as classes, and each file as one "
        "document; if each line is a document, pass the files instead of the folder"
    )
    return found


def _has_labels(path: str) -> bool:
    """Return whether a file is a table or has labels in its first lines."""
    head = head_of(path)
    lines = [line for line in head.split(b"\n") if line.strip()]
    # Ignore the last line of the sample, which may be incomplete.
    lines = lines[:-1] if len(lines) > 1 and not head.endswith(b"\n") else lines
    return sniff(head) is not None or (
        bool(lines) and all(b"\t" in line.strip() or _FASTTEXT_TOKEN.search(line) for line in lines)
    )


def _whole_files(files: Sequence[tuple[str, str]], encoding_errors: str) -> Iterator[Document]:
    """Yield each file as one document."""
    for label, path in files:
        content = read_whole(path).removeprefix(BYTE_ORDER_MARK)
        text = b" ".join(valid(content, encoding_errors, f"{path}: byte {{}}".format).split())
        if len(text) > LINE_BYTES:
            raise CorpusError(f"{path} has more than {LINE_BYTES:,} bytes; split the file")
        yield Document((label,), text, path, 1)


def _read(paths: Sequence[Source], form: str, encoding_errors: str) -> Iterator[Document]:
    for path in paths:
        if isinstance(path, Table):
            for number, row in read_rows(path):
                text = b" ".join((row.text or b"").split())
                shown = Tokenized(text) if row.is_tokenized else text
                yield Document(row.labels, shown, path.path, number, kept=row.kept)
            continue
        for number, line in _valid_lines(path, read_lines(path), encoding_errors):
            yield Document(*_split_line(line, form, path, number), path, number)


def arriving_documents(encoding_errors: str) -> Iterator[list[Document]]:
    """Yield batches of documents from standard input as soon as the documents arrive."""
    count = 0
    with CorpusFile(STANDARD) as file:
        for lines in arriving_lines(file.read, LINE_BYTES):
            if not count:
                lines[0] = lines[0].removeprefix(BYTE_ORDER_MARK)
            numbered = list(enumerate(lines, count + 1))
            valid = _valid_lines(STANDARD, numbered, encoding_errors, is_start=not count)
            yield [
                Document(*_split_line(line, "auto", STANDARD, number), STANDARD, number)
                for number, line in valid
            ]
            count += len(lines)


def _valid_lines(
    path: str, lines: Iterable[tuple[int, bytes]], encoding_errors: str, is_start: bool = True
) -> Iterator[tuple[int, bytes]]:
    """Yield the number (from 1) and the validated text of each line."""
    for number, line in lines:
        if is_start and line.strip():
            is_start = False
            check_no_table(path, line)

        def place(at: int, number: int = number) -> str:
            return f"{path}: byte {at} of line {number}"

        yield number, valid(line.rstrip(b"\r\n"), encoding_errors, place)


def _split_line(line: bytes, form: str, path: str, number: int) -> tuple[tuple[str, ...], bytes]:
    """Return the labels and the text of a line."""
    if form == "fasttext" or (form == "auto" and _FASTTEXT_TOKEN.search(line)):
        return _fasttext_labels(line, path, number)
    if form == "text":
        return (), line
    labels, tab, text = line.partition(b"\t")
    if tab:
        return labels_of(labels.decode()), text
    if form == "tab" and line:
        raise CorpusError(
            f"{path}: line {number} has no TAB between labels and text; add a TAB, or use text "
            "without any labels"
        )
    return (), line


def _fasttext_labels(line: bytes, path: str, number: int) -> tuple[tuple[str, ...], bytes]:
    """Return the fastText labels, which can occur anywhere in a line, and the remaining text."""
    labels = tuple(label_of(one.decode()) for one in _FASTTEXT_TOKEN.findall(line))
    if not all(labels):
        raise CorpusError(
            f"{path}: line {number} has an empty label; write the label after __label__"
        )
    return labels, _FASTTEXT_TOKEN.sub(b"", line).strip()


# Placeholders for the tokens before the start and after the end of a sentence in feature names.
START, END = "<s>", "</s>"
AFFIX = 4  # maximum length of prefix and suffix features in characters


class Sentence(NamedTuple):
    """A tagged sentence, which consists of the lines between two empty lines.

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
    corpus: Sequence[Source], *, encoding_errors: str = "strict"
) -> Iterator[Sentence]:
    """Read tagged sentences in order; `read_documents` describes the parameters.

    Raises
    ------
    CorpusError
        A file cannot be read or is not text, or only some tokens of a sentence have a tag.
    """
    for path in map(str, expand(corpus)):
        kept = (
            (n, line)
            for n, line in _valid_lines(path, read_lines(path), encoding_errors)
            if not line.startswith(b"-DOCSTART-")
        )
        for has_tokens, block in itertools.groupby(
            kept, key=lambda one: bool(one[1].decode().strip())
        ):
            if has_tokens and (found := _sentence(path, list(block))).tokens:
                yield found


def _columns(block: list[tuple[int, bytes]]) -> Iterator[tuple[int, list[str]]]:
    """Yield the number and the columns (token, ..., tag) of each line.

    Comments before the lines are skipped, as in CoNLL-U: lines that begin with #, and of which one
    has another number of columns. Of the ten columns of CoNLL-U only the form and the universal
    part of speech are used; ranges and empty nodes are skipped.
    """
    sizes = [line.count(b"\t") or -len(line.split()) for _, line in block]
    first = next((i for i, (_, line) in enumerate(block) if not line.startswith(b"#")), 0)
    if all(size == sizes[first] for size in sizes[:first]):
        first = 0
    # Split columns at ASCII spaces only, because tokens may contain no-break spaces.
    found = [
        (number, [one.decode() for one in (line.split(b"\t") if b"\t" in line else line.split())])
        for number, line in block[first:]
    ]
    if all(len(own) == _CONLLU_COLUMNS and _CONLLU_ID.fullmatch(own[0]) for _, own in found):
        found = [(number, [own[1], own[3]]) for number, own in found if own[0].isdecimal()]
        if all(own[1] == "_" for _, own in found):
            found = [(number, own[:1]) for number, own in found]
    yield from found


def _sentence(path: str, block: list[tuple[int, bytes]]) -> Sentence:
    tokens, tags = [], []
    for number, columns in _columns(block):
        token = "".join(columns[0].split())
        if not token:
            raise CorpusError(
                f"{path}: line {number} has no token in its first column; add a token"
            )
        tokens.append(token)
        if len(columns) > 1 and columns[-1].strip():
            tags.append(columns[-1].strip())
        if len(tags) not in (0, len(tokens)):
            raise CorpusError(
                f"{path}: line {number}: only some tokens in the sentence have a tag; in the last "
                "column, tag either all tokens or no token"
            )
    return Sentence(tokens, tags, path, block[0][0])


def token_documents(sentences: Iterator[Sentence]) -> Iterator[Document]:
    """Yield a document for each token: its label is the tag, and its text lists the features."""
    for sentence in sentences:
        for i, features in enumerate(token_features(sentence.tokens)):
            labels = (sentence.tags[i],) if sentence.tags else ()
            text = " ".join(features).encode()
            yield Document(labels, text, sentence.path, sentence.line + i, i == 0)


def token_features(tokens: Sequence[str]) -> Iterator[list[str]]:
    """Yield the feature names of each token in a sentence.

    The features are the words up to two places away, pairs of neighbors, shapes (``Xx`` for Paris,
    ``0`` for 1984), prefixes and suffixes of up to four characters.
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
    """Return the shape of a token, such as "Xx-0" for "Boeing-747".

    Uppercase letters become X, other letters become x, and digits become 0. A run of equal
    characters in the result is reduced to one character.
    """
    kinds = (
        "0" if c.isdigit() else "X" if c.isupper() else "x" if c.isalpha() else c for c in token
    )
    return "".join(kind for kind, _ in itertools.groupby(kinds))

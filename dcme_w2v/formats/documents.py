"""Documents, one per line, with or without labels, from any source that a corpus can have.

A line is ``label<TAB>text`` (labels joined by ``|``), fastText's ``__label__x text``, or text
alone.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from dcme_w2v.declarations import flag_of
from dcme_w2v.errors import CorpusError, UsageError
from dcme_w2v.files.opening import read_lines

from .columns import Table, Tokenized, check_no_table, read_rows
from .corpus import expand

FORMS = ("auto", "tab", "fasttext", "text")
ENCODING_ERRORS = ("strict", "replace", "skip")
FASTTEXT_LABEL = b"__label__"


class Document(NamedTuple):
    """One line of a file of documents.

    Attributes
    ----------
    labels : tuple of str
        The labels; empty if there are none.
    text : bytes
        The text after the labels, valid UTF-8 without NUL.
    path : str
        The file, ``-`` for standard input.
    line : int
        The line in that file, from 1.
    is_first : bool
        False for the second and later tokens of a sentence, where tokens are documents.
    """

    labels: tuple[str, ...]
    text: bytes
    path: str
    line: int
    is_first: bool = True

    @property
    def words(self) -> list[bytes]:
        r"""The tokens, separated by 0x20 \t \n \r \v \f."""
        return self.text.split()

    @property
    def place(self) -> str:
        """The position for messages: ``FILE:LINE``."""
        return f"{self.path}:{self.line}"


def read_documents(
    corpus: Sequence[str],
    *,
    form: str = "auto",
    encoding_errors: str = "strict",
    strict: bool = False,
) -> Iterator[Document]:
    """Read documents one by one, in order; an empty line is a document without tokens.

    Parameters
    ----------
    corpus : sequence of str
        Files, folders, ``-``, URLs, also compressed; see `dcme_w2v.formats.corpus.expand`. A
        null of a column of a `Table` is a document without tokens.
    form : {"auto", "tab", "fasttext", "text"}
        Format of a line: labels, a TAB and text; tokens that start with ``__label__`` and text;
        text alone. "auto" detects it for each line, by its start, then by its first TAB.
    encoding_errors : {"strict", "replace", "skip"}
        For tokens that are not UTF-8: fail, replace the bytes by U+FFFD, or skip the token.
    strict : bool
        See `dcme_w2v.formats.corpus.expand`.

    Raises
    ------
    CorpusError
        A file cannot be read, or a line is not text; the message has file and line.
    UsageError
        `form` or `encoding_errors` is not one of the choices.
    """
    for name, value, choices in (
        ("form", form, FORMS),
        ("encoding_errors", encoding_errors, ENCODING_ERRORS),
    ):
        if value not in choices:
            raise UsageError(f"{flag_of(name)}={value}: must be one of {', '.join(choices)}")
    return _read(expand(corpus, strict), form, encoding_errors)


def _read(paths: Sequence[str], form: str, encoding_errors: str) -> Iterator[Document]:
    for path in paths:
        if isinstance(path, Table):
            for number, row in read_rows(path):
                text = " ".join(" ".join(row.lines).split()).encode("utf-8", "replace")
                shown = Tokenized(text) if row.is_tokenized else text
                yield Document(row.labels, shown, path, number)
            continue
        for number, line in enumerate(read_lines(path), 1):
            if number == 1:
                check_no_table(path, line)
            checked = checked_line(line.rstrip(b"\r\n"), path, number, encoding_errors)
            yield Document(*_split_line(checked, form, path, number), path, number)


def checked_line(line: bytes, path: str, number: int, encoding_errors: str) -> bytes:
    """Return a line as valid UTF-8, or raise."""
    if b"\0" in line:
        raise CorpusError(
            f"{path}: line {number} has a NUL byte: looks binary or UTF-16; give UTF-8 text"
        )
    try:
        line.decode()
    except UnicodeDecodeError as error:
        if encoding_errors == "strict":
            raise CorpusError(
                f"{path}: byte {error.start} of line {number} is not UTF-8; "
                "convert the file, or use --encoding-errors=replace or skip"
            ) from None
        if encoding_errors == "replace":
            return line.decode(errors="replace").encode()
        # Fields are decoded separately, so that labels keep their position.
        fields = (part.split() for part in line.split(b"\t"))
        return b"\t".join(b" ".join(word for word in part if _is_utf8(word)) for part in fields)
    return line


def _is_utf8(word: bytes) -> bool:
    try:
        word.decode()
    except UnicodeDecodeError:
        return False
    return True


def _split_line(line: bytes, form: str, path: str, number: int) -> tuple[tuple[str, ...], bytes]:
    """Return the labels and the text of a line."""
    if form == "fasttext" or (form == "auto" and line.startswith(FASTTEXT_LABEL)):
        return _fasttext_labels(line)
    if form == "text":
        return (), line
    labels, tab, text = line.partition(b"\t")
    if tab:
        return tuple(label for label in labels.decode().split("|") if label), text
    if form == "tab" and line:
        raise CorpusError(
            f"{path}: line {number} has no TAB between labels and text; "
            "add one, or give text without labels"
        )
    return (), line


def _fasttext_labels(line: bytes) -> tuple[tuple[str, ...], bytes]:
    labels = []
    rest = line.lstrip()
    while rest.startswith(FASTTEXT_LABEL):
        first, *behind = rest.split(None, 1)
        labels.append(first[len(FASTTEXT_LABEL) :].decode())
        rest = behind[0] if behind else b""
    return tuple(labels), rest

"""Warn about probable mistakes in labeled documents, such as a header or markup."""

import re
from collections import Counter

from dcme_w2v.errors import warn
from dcme_w2v.formats.columns import Table
from dcme_w2v.formats.documents import Document
from dcme_w2v.formats.texts import bytes_of

INTEGER = re.compile(r"[+-]?[0-9]+")
MIN_DOUBTED = 20  # probable mistakes are reported only if there are at least this many documents
SHARE_OF_CLASSES, SHARE_OF_MARKUP = 0.5, 0.1
_LOOK_BYTES = 4096  # only this many bytes at the start of each text are searched for markup
# Matches HTML tags, but not stock tickers such as <U> or addresses such as <joe@example.org>.
_TAG = re.compile(
    rb"</?(?:[abipu]|(?i:blockquote|body|br|code|div|em|font|form|h[1-6]|head|hr|html|iframe|img|"
    rb"input|li|link|meta|ol|option|pre|script|span|strong|style|sub|sup|t[dhr]|table|title|ul))"
    rb"(?:\s[^<>]{0,80})?/?>"
)
_HEADERS = frozenset(
    ("label", "labels", "class", "category", "categories", "target", "y", "tag", "tags", "topic")
)
_NULLS = frozenset(("nan", "NaN", "NA", "N/A", "<NA>", "None", "null", "NULL"))


class Doubts:
    """A check for probable mistakes in the input, such as a header or markup.

    Parameters
    ----------
    path : str
        The first file, for messages.
    """

    def __init__(self, path: str) -> None:
        self._path, self._classes = path, Counter[str]()
        self._documents = self._markup = self._label_bytes = self._text_bytes = 0
        self._first: tuple[str, ...] = ()
        self._tag = ""

    def add(self, document: Document) -> None:
        """Check a labeled document for probable mistakes."""
        self._first = self._first if self._documents else document.labels
        self._documents += 1
        self._classes.update(document.labels)
        self._label_bytes += sum(map(len, document.labels))
        self._text_bytes += len(document.text)
        tag = _TAG.search(bytes_of(document.text), 0, _LOOK_BYTES)
        self._markup += tag is not None
        self._tag = self._tag or (tag[0].decode("utf-8", "replace") if tag else "")

    def warn(self, is_by_token: bool) -> None:
        """Warn about probable mistakes in the documents that were checked.

        Signs of mistakes are a header in the first line, almost as many classes as documents,
        labels that are longer than the texts, numbers beside names of labels, and markup.
        """
        if is_by_token:
            return
        for name in sorted(_NULLS & self._classes.keys()):
            warn(
                f"{self._path}: {self._classes[name]:,} documents have the label {name!r}, which "
                "is treated as a class; if this label marks unlabeled documents, leave their "
                "label field empty"
            )
        numbers = sorted(filter(INTEGER.fullmatch, self._classes))
        others = self._classes.keys() - {*numbers}
        if numbers and others and {*numbers} <= {"0", "1"}:
            warn(
                f"{self._path}: labels such as {' and '.join(numbers)} are treated as classes, "
                f"like {min(others)!r:.60}; if 0 and 1 mean no and yes, list the names of the "
                "labels that apply instead"
            )
        if len(self._classes) > 1 and min(self._classes.values()) == self._documents:
            warn(
                f"{self._path}: every document has all {len(self._classes):,} labels, including "
                f"{min(self._classes)!r:.60}; for each document, list only the labels that apply"
            )
        if self._documents < MIN_DOUBTED:
            return
        first = next(iter(self._first), "")
        if first.strip().lower() in _HEADERS and self._classes[first] == 1:
            warn(
                f"{self._path}: the first line has the label {first!r}, which is treated as a "
                "class; if the line is a header, remove it, for example with tail -n +2"
            )
        is_longer = self._label_bytes > self._text_bytes
        if len(self._classes) > SHARE_OF_CLASSES * sum(self._classes.values()) or is_longer:
            why = "have labels that are longer than the texts; " if is_longer else ""
            remedy = (
                "swap the columns"
                if is_longer
                else "remove a leading column of numbers (cut -f 2-)"
            )
            remedy = f"write each line as LABEL<TAB>TEXT, or {remedy}"
            if isinstance(self._path, Table):
                in_file = self._path.rows is None
                swapped = "check whether texts and labels are swapped"
                remedy = "check --text-column and --label-column" if in_file else swapped
            warn(
                f"{self._path}: {self._documents:,} documents in {len(self._classes):,} classes "
                f"{why or 'have almost one class per document; '}{remedy}"
            )
        if self._markup > SHARE_OF_MARKUP * self._documents:
            warn(
                f"{self._path}: {self._markup:,} texts contain markup such as {self._tag:.40}, so "
                "tag names become features; remove the markup"
            )

"""Labelled documents from files of text or vectors, with a held-out share.

Called by `dcme_w2v.classify.pipeline`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from dcme_w2v.classify.features import TextFeatures
from dcme_w2v.classify.model import COLUMNS, Predictor, fitting
from dcme_w2v.errors import CorpusError, UsageError
from dcme_w2v.files.paths import Paths, as_paths
from dcme_w2v.formats.documents import Document, read_documents
from dcme_w2v.formats.sparse_io import Labels, columns_of, is_vectors, join, read_vectors
from dcme_w2v.options import HoldoutOptions


@dataclass(frozen=True)
class DocumentsJob:
    """Inputs and outputs of a training on labelled documents.

    Attributes
    ----------
    docs : sequence of str
        Files, folders or ``-``; or files of vectors, detected by their suffix.
    output : str
        Folder of the model.
    labels : str or None
        Labels of the rows of an .npz file.
    log_json : str or None
        The log of the reporter; only checked here.
    """

    docs: Sequence[str]
    output: str
    labels: str | None = None
    log_json: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "docs", as_paths(self.docs))

    def paths(self, kind: str, holdout: str | None, beside: Sequence[str] = ()) -> Paths:
        """Return the inputs and outputs; `holdout` is a file, `beside` are other outputs."""
        paths = Paths().reads("DOCS", *self.docs).reads("--labels", self.labels)
        paths.reads("--holdout", holdout).model("--output", self.output, kind, beside)
        return paths.log("--log-json", self.log_json)

    def check_classes(self, classes: Sequence[str], hint: str = "") -> None:
        """Raise `CorpusError` for fewer than two classes; `hint` ends the message."""
        if not classes:
            raise CorpusError(no_labels(self.docs) + hint)
        if len(classes) == 1:
            raise CorpusError(
                f"{self.docs[0]}: all documents have the label {classes[0]!r}; give documents of "
                f"two classes or more{hint}"
            )


@dataclass
class Dataset:
    """Documents as read.

    Attributes
    ----------
    matrix : csr_matrix
        Training documents.
    labels : list of tuple of str
        Their labels.
    unlabelled : int
        How many had no label; they were left out, or are there with an empty tuple.
    held_matrix, held_labels
        Held-out documents.
    is_first : list of bool
        Of the training documents as text; see `dcme_w2v.formats.documents.Document`.
    columns : int or None
        Of rows of .npz files; see `dcme_w2v.formats.sparse_io.columns_of`.
    """

    matrix: csr_matrix
    labels: Labels
    unlabelled: int
    held_matrix: csr_matrix
    held_labels: Labels
    is_first: list[bool] = field(default_factory=list)
    columns: int | None = None


def corpus_line(
    read: Dataset, classes: Sequence[str], without_label: str = "", noun: str = "classes"
) -> str:
    """Return one line about documents as read; `without_label` says what became of the others."""
    line = f"{read.matrix.shape[0]:,} documents"
    line += f" of {len(classes):,} {noun}" if classes else ""
    line += f", {read.matrix.shape[1]:,} features"
    for count, what in (
        (len(read.held_labels), "held out"),
        (read.unlabelled if classes else 0, f"without a label{without_label}"),
        (int((np.diff(read.matrix.indptr) == 0).sum()), "without any feature"),
    ):
        if count:
            line += f", {count:,} {what}"
    return line


def are_vectors(docs: Sequence[str]) -> bool:
    """Return whether documents are vectors (True) or text."""
    kinds = {is_vectors(path) for path in docs}
    if len(kinds) > 1:
        raise UsageError("the documents are both text and vectors; give files of one kind")
    return kinds == {True}


def no_labels(docs: Sequence[str]) -> str:
    """Return the error that no document of these files has a label, and where to give them."""
    where = "--labels FILE" if docs[0].endswith(".npz") else "LABEL<TAB>TEXT"
    return f"{docs[0]}: no document has a label; give {where}"


def read_text(
    docs: Sequence[str],
    labels: str | None,
    text: TextFeatures,
    holdout: HoldoutOptions,
    seed: int,
    keep_unlabelled: bool = False,
    advice: str = "give LABEL<TAB>TEXT",
) -> Dataset:
    """Read text once; features are those of the documents that are not held out.

    Documents without a label are left out unless `keep_unlabelled`; none of them is held out.
    Tokens are held out by sentences. A held-out file is read here too, so that no training is in
    vain where it cannot be.
    `advice` ends the error where no document has a label.
    """
    if labels is not None:
        raise UsageError(f"--labels={labels}: is for .npz; text contains its labels")
    random, share = np.random.default_rng(seed), holdout.fraction
    held: list[Document] = []
    kept: Labels = []
    is_first: list[bool] = []
    unlabelled = 0

    def texts(documents: Iterable[Document]) -> Iterator[bytes]:
        nonlocal unlabelled
        is_held = False
        for document in documents:
            if not document.labels:
                unlabelled += 1
                if not keep_unlabelled:
                    continue
            elif document.is_first:
                is_held = share is not None and random.random() < share
            if document.labels and is_held:
                held.append(document)
                continue
            kept.append(document.labels)
            is_first.append(document.is_first)
            yield document.text
        if not kept and not held and not keep_unlabelled:
            raise CorpusError(f"{docs[0]}: {text.without_labels(advice)}")

    matrix = text.fit_transform(texts(text.read(docs, text.options.strict)))
    if holdout.file is not None:
        held = [document for document in text.read([holdout.file]) if document.labels]
    held_matrix = text.transform(document.text for document in held)
    held_labels = [document.labels for document in held]
    return Dataset(matrix, kept, unlabelled, held_matrix, held_labels, is_first)


def read_rows(
    docs: Sequence[str],
    labels: str | None,
    holdout: HoldoutOptions,
    seed: int,
    keep_unlabelled: bool = False,
) -> Dataset:
    """Read vectors; see `read_text`."""
    parts: list[csr_matrix] = []
    names: Labels = []
    for path in docs:
        matrix, found = read_vectors(path, labels)
        parts.append(matrix)
        names += found
    matrix = join(parts)
    has = np.array([bool(one) for one in names], dtype=bool)
    held = has & (np.random.default_rng(seed).random(len(names)) < (holdout.fraction or 0))
    kept = ~held if keep_unlabelled else has & ~held
    read = Dataset(
        csr_matrix(matrix[kept]), _selected(names, kept), int((~has).sum()),
        csr_matrix(matrix[held]), _selected(names, held), columns=columns_of(docs, parts),
    )  # fmt: skip
    if holdout.file is not None:
        matrix, names = read_vectors(holdout.file, None, read.columns)
        has = np.array([bool(one) for one in names], dtype=bool)
        read.held_matrix = csr_matrix(fitting(matrix, read.matrix.shape[1])[has])
        read.held_labels = _selected(names, has)
    return read


def check_held_out(options: HoldoutOptions, read: Dataset) -> None:
    """Raise UsageError if documents are to be held out, and there are none."""
    if options.holdout is not None and not read.held_labels:
        raise UsageError(f"--holdout={options.holdout}: has no document with a label; give more")


def pieces(
    model: Predictor, docs: Sequence[str], labels: str | None, size: int
) -> Iterator[tuple[csr_matrix, Labels]]:
    """Yield the rows and labels of `size` documents at a time, in the form that a model takes."""
    if are_vectors(docs):
        if model.text is not None:
            raise UsageError(
                f"{docs[0]}: contains vectors, but the model classifies text; give text"
            )
        for path in docs:
            yield read_vectors(path, labels, model.record.get(COLUMNS))
        return
    documents = model.text.read(docs) if model.text is not None else read_documents(docs)
    while some := list(itertools.islice(documents, size)):
        yield model.rows([document.text for document in some]), [d.labels for d in some]


def numbers_of(labels: Labels, classes: Sequence[str]) -> list[list[int]]:
    """Return distinct labels as class indices, -1 for unknown labels."""
    number = {name: i for i, name in enumerate(classes)}
    return [[number.get(name, -1) for name in dict.fromkeys(one)] for one in labels]


def _selected(labels: Labels, chosen: NDArray[np.bool_]) -> Labels:
    return [labels[i] for i in np.flatnonzero(chosen)]

"""Read labeled documents from text or vector files, and hold out some of the documents."""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import TYPE_CHECKING

import numpy as np

from dcme_w2v.errors import CorpusError, UsageError
from dcme_w2v.files.atomic import STANDARD
from dcme_w2v.files.opening import check_expansion, head_of, sniff, stored_size
from dcme_w2v.files.paths import as_paths
from dcme_w2v.formats.columns import BINARY, Source, Table, like
from dcme_w2v.formats.corpus import expand
from dcme_w2v.formats.documents import Document
from dcme_w2v.formats.labels import NO_LABEL
from dcme_w2v.formats.sparse_io import Labels, columns_of, is_vectors, join, read_sparse_rows
from dcme_w2v.formats.texts import Text
from dcme_w2v.numeric.arrays import F64, I64, Bools
from dcme_w2v.numeric.sparse_rows import AnyRows, truncate_columns
from dcme_w2v.options import HoldoutOptions

from .constants import SHORT_TEXT
from .doubts import INTEGER, Doubts
from .features import TextFeatures
from .labeled import Labeled, class_weights, of_documents
from .model import Predictor
from .options import FeatureOptions

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
DOCUMENT_BYTES = 100  # estimated minimum memory in bytes per document, in addition to its text


@dataclass(frozen=True)
class DocumentsJob:
    """The inputs and outputs of training on labeled documents.

    Attributes
    ----------
    docs : sequence of str
        Files, folders or ``-``; or files of vectors, detected by their suffix.
    output : str
        File of the model.
    labels : str or None
        File with the labels of the rows of an .npz file.
    log_json : str or None
        File to which the reporter logs; only its name is checked here.
    """

    docs: Sequence[str]
    output: str
    labels: str | None = None
    log_json: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "docs", as_paths(self.docs))

    def check_classes(self, classes: Sequence[str], hint: str = "") -> None:
        """Raise `CorpusError`, with `hint` in its message, if there are fewer than two classes."""
        if not classes:
            raise CorpusError(no_labels(self.docs, hint=hint))
        if len(classes) == 1:
            raise CorpusError(
                f"{self.docs[0]}: all documents have the label {classes[0]!r}, so there is only "
                f"one class; use documents with at least two different labels{hint}"
            )
        broken = [name for name in classes if not INTEGER.fullmatch(name)]
        if (
            broken
            and all(map(_NUMBER.fullmatch, classes))
            and not all(map(_is_typed, expand(self.docs)))
        ):
            raise CorpusError(
                f"{self.docs[0]}: all labels are numbers, but {broken[0]} is not an integer; "
                f"{NO_LABEL}"
            )


@dataclass
class Dataset:
    """The input documents, split into training and held-out documents.

    Attributes
    ----------
    matrix : csr_matrix, or CompressedRows for text
        Training documents.
    labels : list of tuple of str
        Their labels.
    unlabeled : int
        Number of documents without a label, which were left out or have an empty tuple as labels.
    held_matrix, held_labels
        Held-out documents.
    is_first : list of bool
        For text: whether each training document begins a sentence; see
        `dcme_w2v.formats.documents.Document`.
    columns : int or None
        Number of columns of .npz files; see `dcme_w2v.formats.sparse_io.columns_of`.
    text : TextFeatures or None
        The features of text; None for vectors.
    texts, held_texts : list of bytes
        The texts of the training and held-out documents, if they are kept.
    class_weight : mapping, "balanced" or None
        Weights of training documents by label; see `dcme_w2v.classify.fit.class_weights`.
    sample_weight, held_weight : ndarray of float64, shape (documents,), or None
        Weights of the training and held-out documents themselves.
    before : Predictor or None
        A model trained earlier on other documents, whose classes are added.
    """

    matrix: AnyRows
    labels: Labels
    unlabeled: int
    held_matrix: AnyRows
    held_labels: Labels
    is_first: list[bool] = field(default_factory=list)
    columns: int | None = None
    text: TextFeatures | None = None
    texts: list[Text] = field(default_factory=list, repr=False)
    held_texts: list[Text] = field(default_factory=list, repr=False)
    class_weight: Mapping[str, float] | str | None = None
    sample_weight: F64 | None = None
    held_weight: F64 | None = None
    before: Predictor | None = None

    @functools.cached_property
    def counts(self) -> dict[str, int]:
        """Number of training documents with each label, sorted by label."""
        return dict(sorted(Counter(itertools.chain.from_iterable(self.labels)).items()))

    @functools.cached_property
    def classes(self) -> list[str]:
        """The sorted labels of the training documents and of the initial model, if any."""
        return sorted({*self.counts, *(self.before.classes if self.before else ())})

    @functools.cached_property
    def data(self) -> Labeled:
        """The training documents."""
        labels = numbers_of(self.labels, self.classes)
        groups = self.groups if self.text is not None and self.text.is_by_token else None
        return self._weighted(Labeled(self.matrix, labels, groups=groups), self.sample_weight)

    def _weighted(self, data: Labeled, own: F64 | None = None) -> Labeled:
        """Multiply the weights of documents by the weights of their classes."""
        if self.class_weight is not None:
            labels = numbers_of(self.labels, self.classes)
            by_class = class_weights(self.class_weight, self.classes, labels, self.sample_weight)
            if not by_class.all():
                raise UsageError(
                    "--class-weight: weights must be positive; to ignore a label, remove its "
                    "documents"
                )
            by_document = of_documents(by_class, data.labels)
            own = by_document if own is None else own * by_document
        return data if own is None else data.weighted(own)

    @functools.cached_property
    def holdout(self) -> Labeled | None:
        """The held-out documents."""
        if not self.held_labels:
            return None
        held = Labeled(self.held_matrix, numbers_of(self.held_labels, self.classes))
        return self._weighted(held, self.held_weight)

    @functools.cached_property
    def multilabel(self) -> bool:
        """Whether any training document, in this run or an earlier one, has several labels."""
        several = self.before is not None and self.before.multilabel
        return several or any(len(labels) != 1 for labels in self.labels if labels)

    @property
    def none(self) -> int:
        """Number of training documents that are explicitly marked as having no label."""
        return sum(bool(one) and not len(one) for one in self.labels)

    @property
    def groups(self) -> I64:
        """The group of each row; rows of a group, such as a sentence's tokens, share a fold."""
        if not self.is_first:
            return np.arange(len(self.labels))
        return np.cumsum(self.is_first) - 1

    @property
    def has_short_texts(self) -> bool:
        """Whether the texts are in memory and so short that words rarely occur twice in a text."""
        return 0 < sum(map(len, self.texts)) <= SHORT_TEXT * len(self.texts)

    def with_features(self, options: FeatureOptions, most: int | None = None) -> Dataset:
        """Recompute the training documents' features from counts or texts, with other settings."""
        assert self.text is not None
        most = options.features_of(len(self.classes)) if most is None else most
        if self.texts:
            text = TextFeatures(options)
            weights = () if self.sample_weight is None else self.sample_weight
            matrix = text.fit_transform(self.texts, lambda: (most, True), weights)
        else:
            text, matrix = self.text.under(options, most)
        return replace(self, text=text, matrix=matrix)

    def with_held(self) -> Dataset:
        """Return the training documents and, if the texts are in memory, the held-out documents."""
        if self.text is None or not self.held_texts:
            return self
        return replace(self, held_matrix=self.text.transform(self.held_texts))

    def by_label(self) -> tuple[Dataset, AnyRows]:
        """Split the training data into labeled documents and the rows of unlabeled documents."""
        has = np.array([bool(one) for one in self.labels], dtype=bool)
        chosen = np.flatnonzero(has)
        labeled = replace(
            self, matrix=self.matrix[has], labels=[self.labels[i] for i in chosen],
            is_first=[self.is_first[i] for i in chosen] if self.is_first else [],
        )  # fmt: skip
        return labeled, self.matrix[~has]


def _is_typed(path: Source) -> bool:
    """Return whether a source, unlike CSV, distinguishes the string "1.5" from the number 1.5."""
    if not isinstance(path, Table) or path.rows is not None or path.path == STANDARD:
        return isinstance(path, Table) and path.rows is not None
    return sniff(head_of(path.path)) in (*BINARY, "JSON lines")


def corpus_line(
    read: Dataset, classes: Sequence[str], without_label: str = "", noun: str = "classes"
) -> str:
    """Summarize the documents in one line; call unlabeled documents `without_label`."""
    line = f"{read.matrix.shape[0]:,} documents"
    line += f" of {len(classes):,} {noun}" if classes else ""
    line += f", {read.matrix.shape[1]:,} features"
    for count, what in (
        (len(read.held_labels), "held out"),
        (read.none, "with none of the labels"),
        (read.unlabeled if classes else 0, f"without a label{without_label}"),
        (int((np.diff(read.matrix.indptr) == 0).sum()), "without any feature"),
    ):
        if count:
            line += f", {count:,} {what}"
    return line


def are_vectors(docs: Sequence[str]) -> bool:
    """Return whether the input consists of vectors rather than text."""
    kinds = {is_vectors(path) for path in docs}
    if len(kinds) > 1:
        raise UsageError(
            "some input files contain text and others contain vectors; use only text files or "
            "only vector files"
        )
    return kinds == {True}


def no_labels(
    docs: Sequence[str], text: TextFeatures | None = None, hint: str = "", zeros: int = 0
) -> str:
    """Return an error message for files without labels that says where to put the labels.

    Parameters
    ----------
    docs : sequence of str
        The files.
    text : TextFeatures, optional
        Their text features, which may be per token.
    hint : str
        Another remedy, added at the end.
    zeros : int
        Number of labeled documents with weight 0, which are left out.
    """
    path, suffix = docs[0], PurePath(docs[0]).suffix.lower()
    if zeros:
        column = "choose another column with --sample-weight-column"
        return f"{path}: all labeled documents have the weight 0; {column}"
    if text is not None and text.is_by_token:
        return f"{path}: no sentence has tags; write one line TOKEN ... TAG per token"
    advice = "write each line as LABEL<TAB>TEXT"
    if isinstance(path, Table) and path.label:
        advice = f"column {','.join(path.label)!r} is empty in all rows; choose another column "
        advice += "with --label-column"
    elif isinstance(path, Table):
        advice = "select the label column with --label-column"
    elif suffix in (".csv", ".json", ".jsonl"):
        advice = "select the columns with --text-column and --label-column"
    elif suffix == ".npz":
        advice = "use --labels FILE"
    elif is_vectors(path):
        advice = "write each line as LABEL INDEX:VALUE ..."
    return f"{path}: no document has a label; {advice}{hint}"


def read(
    docs: Sequence[str],
    labels: str | None,
    text: TextFeatures | None,
    holdout: HoldoutOptions,
    seed: int,
    keep_unlabeled: bool = False,
    hint: str = "",
    most: Callable[[int], tuple[int, bool]] | None = None,
    *,
    unlabeled: Sequence[str] = (),
    keep: float = 0,
    takes_none: bool = False,
) -> Dataset:
    """Read documents from text or vector files, in one pass.

    Parameters
    ----------
    docs : sequence of str
        Files, folders or ``-``; or files of vectors.
    labels : str or None
        File with the labels of the rows of an .npz file.
    text : TextFeatures or None
        Text features, whose columns are chosen from the documents that are not held out. None: the
        documents are vectors.
    holdout : HoldoutOptions
        A share of the labeled documents (whole sentences if tokens are classified), or a file. The
        file is read before training, so that an unreadable file does not waste the training.
    seed : int
        Seed for the choice of held-out documents.
    keep_unlabeled : bool
        Keep documents without a label, with an empty tuple.
    hint : str
        Added to the end of the error if no text document has a label.
    most : callable, optional
        Takes the number of classes; returns how many features to keep, and whether to keep n-grams.
    unlabeled : sequence of str
        Files of further documents, whose labels are ignored.
    keep : float
        Number of bytes up to which texts are kept.
    takes_none : bool
        Whether documents with none of the labels are trained on; otherwise they count as unlabeled.
    """
    if text is None:
        return _read_rows(docs, labels, holdout, seed, keep_unlabeled, unlabeled, takes_none)
    if labels is not None:
        raise UsageError(f"--labels={labels} is not supported for text documents; omit --labels")
    random, share, held = np.random.default_rng(seed), holdout.fraction, list[_Weighed]()
    kept, is_first, weights = Labels(), list[bool](), list[float]()
    found, without, having, texts, is_held = Doubts(docs[0]), 0, 0, list[Text](), False

    def training() -> Iterator[Text]:
        nonlocal without, having, is_held
        for document in _bounded(docs, text.read(docs)):
            named = document.labels if takes_none else tuple(document.labels)
            without, having = without + (not named), having + bool(named)
            if not (named or keep_unlabeled) or (weight := _weight_of(document)) == [0.0]:
                continue
            if named:
                found.add(document)
                if document.is_first:
                    is_held = share is not None and random.random() < share
                if is_held:
                    held.append((document, weight))
                    continue
            weights.extend(weight)
            kept.append(named)
            is_first.append(document.is_first)
            yield document.text
        if not kept and (held or not keep_unlabeled):
            failed = CorpusError(no_labels(docs, text, hint, having))
            raise _too_few(holdout, 0, len(held)) if held else failed
        for document in text.read(unlabeled) if unlabeled else ():
            kept.append(())
            is_first.append(document.is_first)
            yield document.text

    words = None if most is None else lambda: most(len({*itertools.chain.from_iterable(kept)}))
    matrix = text.fit_transform(_stored(training(), texts, keep), words, weights)
    found.warn(text.is_by_token)
    if holdout.file is not None:
        every = text.read([like(holdout.file, docs[0])])
        labeled = (one for one in every if (one.labels if takes_none else len(one.labels)))
        held = [(one, weight) for one in labeled if (weight := _weight_of(one)) != [0.0]]
    rows, own = text.transform(one.text for one, _ in held), (is_first, None, text, texts)
    names, of_held = [one.labels for one, _ in held], [n for _, some in held for n in some]
    found_held = [one.text for one, _ in held] if texts or text.keeps_counts else []
    mine, others = (np.array(some) if some else None for some in (weights, of_held))
    return Dataset(matrix, kept, without, rows, names, *own, found_held, None, mine, others)


_Weighed = tuple[Document, list[float]]  # see `_weight_of`


def _weight_of(document: Document) -> list[float]:
    """Return a document's weight as a list, which is empty if the file has no weights."""
    if not document.kept:
        return []
    [value] = document.kept
    try:
        weight = float(value)
    except (TypeError, ValueError):
        weight = math.nan
    if not 0 <= weight < math.inf:
        raise CorpusError(
            f"{document.place}: the document weight {value!r:.40} is not a finite nonnegative "
            "number; correct the weight"
        )
    return [weight]


def _bounded(docs: Sequence[str], documents: Iterator[Document]) -> Iterator[Document]:
    """Yield documents; raise an error if they need far more memory than the file sizes suggest."""
    sizes, decoded = [one for one in map(stored_size, docs) if one is not None], 0
    for document in documents:
        decoded += DOCUMENT_BYTES + len(document.text)
        if len(sizes) == len(docs):  # all inputs have known sizes, so all are regular files
            check_expansion(str(docs[0]), sum(sizes), decoded)
        yield document


def _stored(texts: Iterable[Text], found: list[Text], room: float) -> Iterator[Text]:
    """Yield texts and collect them in `found`, unless they have more than `room` bytes in total."""
    for text in texts:
        room -= len(text)
        found.append(text) if room >= 0 else found.clear()
        yield text


def _read_rows(
    docs: Sequence[str],
    labels: str | None,
    holdout: HoldoutOptions,
    seed: int,
    keep_unlabeled: bool,
    unlabeled: Sequence[str],
    takes_none: bool,
) -> Dataset:
    """Read labeled vectors from files."""
    parts: list[csr_matrix] = []
    names: Labels = []
    for path in docs:
        matrix, found = read_sparse_rows(path, labels)
        parts.append(matrix)
        names += found
    for path in unlabeled:
        parts.append(read_sparse_rows(path, None)[0])
        names += [()] * parts[-1].shape[0]
    matrix = join(parts)
    names = names if takes_none else [tuple(one) for one in names]
    has = np.array([bool(one) for one in names], dtype=bool)
    held = has & (np.random.default_rng(seed).random(len(names)) < (holdout.fraction or 0))
    kept = ~held if keep_unlabeled else has & ~held
    data = Dataset(
        matrix[kept], _selected(names, kept), int((~has).sum()),
        matrix[held], _selected(names, held),
        columns=columns_of([*docs, *unlabeled], parts),
    )  # fmt: skip
    if holdout.file is not None:
        matrix, names = read_sparse_rows(holdout.file, None, data.columns)
        has = np.array([bool(one if takes_none else len(one)) for one in names], dtype=bool)
        data.held_matrix = truncate_columns(matrix, data.matrix.shape[1])[has]
        data.held_labels = _selected(names, has)
    return data


def check_held_out(options: HoldoutOptions, read: Dataset, classes: Sequence[str]) -> None:
    """Raise UsageError unless a held-out document has a label that the model can predict.

    Without `classes`, labels are not compared.
    """
    given = f"--holdout={options.holdout}"
    labels = {*classes, *itertools.chain(*read.held_labels)}
    if options.fraction and len(labels) > 1 and (len(classes) == 1 or not read.labels):
        raise _too_few(options, len(read.labels), len(read.held_labels))
    if options.holdout is not None and read.labels and not read.held_labels:
        raise UsageError(f"{given}: no held-out document has a label; hold out labeled documents")
    if options.file and classes and not set(classes) & set(itertools.chain(*read.held_labels)):
        raise UsageError(
            f"{given}: none of the held-out labels occurs in the training documents, which have "
            f"labels such as {classes[0]!r}; hold out documents with these labels"
        )


def _too_few(options: HoldoutOptions, kept: int, held: int) -> UsageError:
    return UsageError(
        f"--holdout={options.holdout}: the {kept} documents that remain for training, out of "
        f"{kept + held:,}, have fewer than two different labels; hold out fewer documents"
    )


def numbers_of(labels: Labels, classes: Sequence[str]) -> list[list[int]]:
    """Return the class index of each distinct label, or -1 if the label is not a class."""
    number = {name: i for i, name in enumerate(classes)}
    return [[number.get(name, -1) for name in dict.fromkeys(one)] for one in labels]


def _selected(labels: Labels, chosen: Bools) -> Labels:
    return [labels[i] for i in np.flatnonzero(chosen)]

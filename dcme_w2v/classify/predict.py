"""Implement the commands ``classify test`` and ``classify predict``."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dcme_w2v.errors import CorpusError, UsageError, warn
from dcme_w2v.files.atomic import STANDARD, atomic_write
from dcme_w2v.formats.columns import Table, kept_types
from dcme_w2v.formats.corpus import expand
from dcme_w2v.formats.documents import Document, arriving_documents, read_documents
from dcme_w2v.formats.records import TABLES, cell, form_of, write_rows
from dcme_w2v.formats.sparse_io import Labels, read_sparse_rows
from dcme_w2v.formats.texts import blocks
from dcme_w2v.numeric.arrays import F64
from dcme_w2v.numeric.sparse_rows import truncate_columns

from . import sequences
from .dataset import are_vectors, no_labels, numbers_of
from .labeled import Labeled
from .metrics import ClusterMeasures, Measures, propensity_gains
from .model import COLUMNS, NONE, Predictor, scored

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

# Measures on held-out documents that progress messages report.
MEASURED = ("accuracy", "top5_accuracy", "precision_at_1", "micro_f1", "log_likelihood")

# Batches are large, because the n-grams of a repeated word are computed only once per batch.
# BYTES_AT_ONCE limits the size of batches that contain long documents.
DOCUMENTS_AT_ONCE, BYTES_AT_ONCE = 1 << 14, 1 << 20
SHARE_OF_EMPTY = 0.1  # warn if at least this fraction of documents has no known features


def main_measure(found: Mapping[str, Any]) -> float:
    """Return the main measure: accuracy, or precision at 1 for multilabel data."""
    return float(found.get("accuracy", found.get("precision_at_1", 0.0)))


def test(
    model: Predictor,
    docs: Sequence[str],
    labels: str | None = None,
    threads: int | None = None,
    clustering: bool = False,
    per_class: bool = False,
    confusion: str | None = None,
    min_probability: float | None = None,
    calibration: bool = False,
) -> dict[str, Any]:
    """Evaluate a model on labeled documents.

    With `clustering`, the (latent) classes are compared with the labels as a clustering, which is
    always done for a model that was fitted without labels. `per_class` adds the measures of each
    class. `confusion` is a file to which the counts of each pair of label and predicted label are
    written, the highest first. `min_probability` adds the share of documents that get a label with
    that probability, and their accuracy. `calibration` adds how well probabilities agree with
    observed frequencies; see `dcme_w2v.classify.metrics.Reliability`.

    Raises
    ------
    CorpusError
        No document has a label.
    UsageError
        A measure is not supported by the model, or requires one label per document.
    """
    is_latent = clustering or getattr(model, "clusters", False)
    given: dict[str, Any] = {"--per-class": per_class or None, "--confusion": confusion}
    given |= {"--min-probability": min_probability, "--calibration": calibration or None}
    if flags := [flag for flag, value in given.items() if value is not None]:
        if is_latent or is_by_token(model):
            raise UsageError(
                f"{flags[0]} is supported only for models that predict the labels of documents; "
                f"omit {flags[0]}"
            )
        if confusion is not None and model.multilabel:
            raise UsageError("--confusion requires one label per document; use --per-class instead")
    if not is_latent and is_by_token(model):
        return sequences.test_tags(model, docs, threads)
    tested = _Tested(model, docs, labels, threads, is_latent, min_probability, confusion)
    try:
        tested.run(model.multilabel)
    except _SeveralLabels:
        if STANDARD in map(str, docs):
            raise UsageError(
                f"{STANDARD}: a later document has several labels, so the input must be read "
                "again; use a file instead of standard input"
            ) from None
        tested.run(True)
    measures, confused, unlabeled = tested.measures, tested.confused, tested.unlabeled
    result = measures.result()
    if not is_latent and not {"log_likelihood", "coverage"} & set(result):
        raise CorpusError(
            f"{docs[0]}: no document has any of the model's labels, such as {model.classes[0]!r}; "
            "use documents with these labels"
        )
    if confusion is not None:
        with atomic_write(confusion) as file:
            lines = [("label", "predicted", "documents")]
            counts = sorted(confused.items(), key=lambda one: (-one[1], one[0]))
            lines += [(*pair, str(n)) for pair, n in counts]
            file.writelines("\t".join(line).encode() + b"\n" for line in lines)
    if calibration and isinstance(measures, Measures):
        result |= measures.reliability.result()
    if per_class and isinstance(measures, Measures):
        names = ("precision", "recall", "f1", "support")
        result["per_class"] = [
            {"label": label, **dict(zip(names, figures, strict=True))}
            for label, figures in zip(model.classes, measures.per_class(), strict=True)
        ]
    return {**result, "unlabeled_documents": unlabeled}


class _SeveralLabels(Exception):
    """Exception that is raised if a document has several labels in single-label evaluation."""


@dataclass
class _Tested:
    """A model's evaluation on the labeled documents that `run` reads."""

    model: Predictor
    docs: Sequence[str]
    labels: str | None
    threads: int | None
    is_latent: bool
    min_probability: float | None
    confusion: str | None

    def run(self, several: bool) -> None:
        """Evaluate in single-label or multilabel mode; raise _SeveralLabels to switch modes."""
        model, self.unlabeled, self.confused = self.model, 0, Counter[tuple[str, str]]()
        self.measures: Measures | ClusterMeasures = ClusterMeasures()
        if not self.is_latent:
            options = (len(model.classes), several, model.threshold, _gains(model))
            least = self.min_probability
            least = model.threshold if least is None and model.record.get(NONE) else least
            self.measures = Measures(*options, least)
        found = pieces(model, self.docs, self.labels, requires_labels=True)
        for matrix, given, _ in found:
            kept = [i for i, own in enumerate(given) if (len(own) if self.is_latent else own)]
            self.unlabeled += len(given) - len(kept)
            names = [given[i] for i in kept]
            if not (several or self.is_latent) and any(len(own) != 1 for own in names):
                raise _SeveralLabels
            self._add(matrix[kept], names)

    def _add(self, matrix: csr_matrix, names: Any) -> None:
        model = self.model
        if self.confusion is not None and any(len(own) != 1 for own in names):
            raise UsageError("--confusion requires one label per document; use --per-class instead")
        own: Any = names if self.is_latent else numbers_of(names, model.classes)
        for rows, log_p in scored(model, matrix, self.threads, self.is_latent):
            self.measures.add(log_p, own[rows])
            if self.confusion is not None:
                best = [model.classes[i] for i in log_p.argmax(axis=1).tolist()]
                self.confused.update(zip((one[0] for one in names[rows]), best, strict=True))


def _gains(model: Predictor) -> F64 | None:
    """Return each label's weight in propensity-scored precision, or None if counts are missing."""
    counts, documents = model.record.get("labels"), model.record.get("documents")
    if not isinstance(counts, dict) or type(documents) is not int:
        return None
    found = [counts.get(name, 0) for name in model.classes]
    return propensity_gains(found, documents) if all(type(n) is int for n in found) else None


def is_by_token(model: Predictor) -> bool:
    """Return whether a model classifies the tokens of sentences."""
    return model.text is not None and model.text.is_by_token


def pieces(
    model: Predictor,
    docs: Sequence[str],
    labels: str | None,
    requires_labels: bool = False,
) -> Iterator[tuple[csr_matrix, Labels, list[Document]]]:
    """Yield batches of rows that a model can classify, with their labels and documents.

    Vectors come without documents. At the end, this raises CorpusError if labels are required and
    no document has one, and warns if at least a tenth of the documents contain none of the model's
    features.
    """
    count = empty = labeled = 0
    for found in _pieces(model, docs, labels):
        count, empty = count + len(found[1]), empty + int((np.diff(found[0].indptr) == 0).sum())
        labeled += sum(map(bool, found[1]))
        yield found
    if requires_labels and not labeled:
        raise CorpusError(no_labels(docs))
    if empty > SHARE_OF_EMPTY * count:
        warn(
            f"{docs[0]}: {empty:,} of {count:,} documents contain none of the model's features; "
            "check the language of the documents, the selected columns and --tokens"
        )


def _pieces(
    model: Predictor, docs: Sequence[str], labels: str | None
) -> Iterator[tuple[csr_matrix, Labels, list[Document]]]:
    if are_vectors(docs):
        if model.text is not None:
            raise UsageError(
                f"{docs[0]} contains vectors, but the model classifies text; use text files"
            )
        for path in docs:
            matrix, names = read_sparse_rows(path, labels, model.record.get(COLUMNS))
            yield known_columns(matrix, model, path), names, []
        return
    text = model.text
    if text is not None and not text.is_by_token and list(docs) == [STANDARD]:
        batches = arriving_documents(text.options.encoding_errors)
    else:
        documents = text.read(docs) if text is not None else read_documents(docs)
        # Rows from standard input are processed as soon as they arrive.
        is_awaited = STANDARD in map(str, docs)
        most = 1 if is_awaited else DOCUMENTS_AT_ONCE
        batches = blocks(documents, BYTES_AT_ONCE, most, lambda one: len(one.text))
    for some in batches:
        rows = model.rows([document.text for document in some])
        yield rows, [document.labels for document in some], some


def known_columns(matrix: csr_matrix, model: Predictor, path: str) -> csr_matrix:
    """Restrict vectors to a model's columns; warn if nonzero values are dropped."""
    unknown = int((matrix.indices >= model.features).sum())
    if unknown:
        warn(
            f"{path}: {unknown:,} of {matrix.nnz:,} values are ignored, because they are not in "
            f"the {model.features:,} columns on which the model was trained"
        )
    return truncate_columns(matrix, model.features)


def predict(
    model: Predictor,
    docs: Sequence[str],
    count: int = 1,
    labels: str | None = None,
    threads: int | None = None,
    min_probability: float | None = None,
) -> Iterator[tuple[tuple[Any, ...], list[Any]]]:
    """Yield the most probable labels of each document, and the columns to keep in the output.

    A model that classifies tokens yields a list of token, tag and probability for each sentence.
    Text is read some lines at a time, and labels of the documents are ignored. If `count` is 0, the
    labels are the most probable label and all labels whose probability is at least the model's
    threshold, as in `test`. With `min_probability`, only labels with at least this probability are
    included, so a document can have no labels.
    """
    if is_by_token(model):
        if count != 1 or min_probability is not None:
            flag = "-k" if count != 1 else "--min-probability"
            raise UsageError(
                f"{flag} is not supported by a token classifier, which predicts one tag per "
                f"token; omit {flag}"
            )
        yield from (((), one) for one in sequences.predict_tags(model, docs, threads))
        return
    for matrix, own, documents in pieces(model, docs, labels):
        kept = [one.kept for one in documents] or [()] * len(own)
        yield from zip(kept, model.predicted(matrix, count, threads, min_probability), strict=True)


def write_predictions(
    model: Predictor,
    docs: Sequence[str],
    output: str | None = None,
    as_json: bool = False,
    count: int = 1,
    **more: Any,
) -> None:
    """Write the predictions for documents to a file, or to standard output.

    Each line of text has the kept columns, and then every label and its probability. JSON objects
    and tables have the kept columns, `label` and `probability`, and also `labels` and
    `probabilities` if `count` is not 1. If no label is predicted, the label fields are empty or
    null. If a kept column has the same name, the prefix ``predicted_`` is added. A sentence is an
    object with `tokens`.
    """
    path, by_token = output or STANDARD, is_by_token(model)
    form = form_of(path, as_json)
    kept = docs[0].keep if isinstance(docs[0], Table) else ()
    if by_token and (kept or form in TABLES):
        what, remedy = f"--output={path}", "choose a .txt or .jsonl file"
        if kept:
            what, remedy = f"--keep={','.join(kept)}", "omit --keep"
        raise UsageError(f"{what} is not supported by a token classifier; {remedy}")
    own = ["label", "probability", *(["labels", "probabilities"] if count != 1 else [])]
    own = ["tokens"] if by_token else own
    columns = [*kept, *(f"predicted_{name}" if name in kept else name for name in own)]

    def row(kept: tuple[Any, ...], found: list[Any]) -> Sequence[Any]:
        if by_token:
            keys = ("token", "tag", "probability")
            return [[dict(zip(keys, (*names, round(p, 6)), strict=True)) for *names, p in found]]
        names, shares = [name for name, _ in found], [round(p, 6) for _, p in found]
        best = (names[0], shares[0]) if found else (None, None)
        return (*kept, *best, names, shares)[: len(columns)]

    def line(kept: tuple[Any, ...], found: list[Any]) -> str:
        cells = [(*names, f"{p:.6f}") for *names, p in found] or [("", "")]
        if by_token:
            return "".join("\t".join(one) + "\n" for one in cells) + "\n"
        return "\t".join([*map(cell, kept), *itertools.chain.from_iterable(cells)]) + "\n"

    write = row if form else line
    rows = (write(*one) for one in predict(model, docs, count, **more))
    types = kept_types(expand(docs)) if kept and form == ".parquet" else {}
    write_rows(path, columns, rows, form, STANDARD in map(str, docs), types)


def measured(model: Predictor, data: Labeled) -> dict[str, Any]:
    """Evaluate a model on held-out documents."""
    several = model.multilabel or any(len(one) != 1 for one in data.labels)
    least = model.threshold if model.record.get(NONE) else None
    measures = Measures(len(model.classes), several, model.threshold, None, least)
    for rows, log_p in scored(model, data.matrix, None):
        weights = None if data.weights is None else data.weights[rows]
        measures.add(log_p, data.labels[rows], weights)
    found = measures.result()
    return {name: found[name] for name in MEASURED if name in found}


def held_out_line(found: Mapping[str, float], documents: int, chose: Sequence[str] = ()) -> str:
    """Format the held-out measures, and mention the settings chosen on the same documents."""
    shown = ", ".join(f"{name.replace('_', ' ')} {value:.4f}" for name, value in found.items())
    also = f", which chose {' and '.join(chose)}" if chose else ""
    return f"held-out: {shown} ({documents:,} documents{also})"

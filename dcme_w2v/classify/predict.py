"""The commands ``classify test`` and ``predict``: labels of documents, and measures of models."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dcme_w2v.errors import CorpusError, UsageError
from dcme_w2v.numeric.arrays import F64

from . import sequences
from .dataset import numbers_of, pieces
from .fit import Labeled
from .metrics import ClusterMeasures, Measures, propensity_gains
from .model import Predictor, scored

DOCUMENTS_AT_ONCE, DOCUMENTS_TESTED = 256, 4096  # read at a time by `predict` and `test`
# figures of held-out documents that are shown
MEASURED = ("accuracy", "top5_accuracy", "precision_at_1", "micro_f1", "log_likelihood")


def main_measure(found: Mapping[str, Any]) -> float:
    """Return the accuracy, or with several labels the precision at 1."""
    return float(found.get("accuracy", found.get("precision_at_1", 0.0)))


def test(
    model: Predictor,
    docs: Sequence[str],
    labels: str | None = None,
    threads: int | None = None,
    clusters: bool = False,
) -> dict[str, Any]:
    """Return the measures of a model on labeled documents.

    With `clusters`, the (latent) classes are compared with the labels as a clustering, as always
    for a model that was fitted without labels.

    Raises
    ------
    CorpusError
        No document has a label.
    """
    is_latent = clusters or getattr(model, "clusters", False)
    if not is_latent and is_by_token(model):
        return sequences.test_tags(model, docs, threads)
    measures: Measures | ClusterMeasures | None = ClusterMeasures() if is_latent else None
    unlabeled = 0
    for matrix, found, _ in pieces(model, docs, labels, DOCUMENTS_TESTED, requires_labels=True):
        if measures is None:
            multilabel = model.multilabel or any(len(one) > 1 for one in found)
            measures = Measures(len(model.classes), multilabel, model.threshold, _gains(model))
        kept = [i for i, one in enumerate(found) if one]
        unlabeled += len(found) - len(kept)
        own: Any = [found[i] for i in kept]
        own = own if is_latent else numbers_of(own, model.classes)
        for rows, log_p in scored(model, matrix[kept], threads, is_latent):
            measures.add(log_p, own[rows])
    assert measures is not None  # there are labels
    result = measures.result()
    if not is_latent and not {"log_likelihood", "coverage"} & set(result):
        raise CorpusError(
            f"{docs[0]}: no label is a class of the model, such as {model.classes[0]!r}; give "
            "documents with its labels"
        )
    return {**result, "unlabelled_documents": unlabeled}


def _gains(model: Predictor) -> F64 | None:
    """Return what each label counts in the propensity-scored precision; None if unknown."""
    counts, documents = model.record.get("labels"), model.record.get("documents")
    if not isinstance(counts, dict) or type(documents) is not int:
        return None
    found = [counts.get(name, 0) for name in model.classes]
    return propensity_gains(found, documents) if all(type(n) is int for n in found) else None


def is_by_token(model: Predictor) -> bool:
    """Return whether a model classifies the tokens of sentences."""
    return model.text is not None and model.text.is_by_token


def predict(
    model: Predictor,
    docs: Sequence[str],
    count: int = 1,
    labels: str | None = None,
    threads: int | None = None,
) -> Iterator[list[Any]]:
    """Yield the most probable labels of each document, in order, with their probabilities.

    A model by token yields token, tag and its probability, a list for each sentence. Text is read
    some lines at a time. Labels of the documents are ignored. With `count` 0, the labels are those
    whose probability is at least the model's threshold, and the most probable one, as in `test`.
    """
    if is_by_token(model):
        if count != 1:
            raise UsageError(f"--top-k={count}: a model --by token has one tag per token; omit it")
        yield from sequences.predict_tags(model, docs, threads)
        return
    for matrix, _, _ in pieces(model, docs, labels, DOCUMENTS_AT_ONCE):
        yield from model.predicted(matrix, count, threads)


def measured(model: Predictor, data: Labeled) -> dict[str, Any]:
    """Return the measures of a model on held-out documents."""
    several = model.multilabel or any(len(one) > 1 for one in data.labels)
    measures = Measures(len(model.classes), several, model.threshold)
    for rows, log_p in scored(model, data.matrix, None):
        measures.add(log_p, data.labels[rows])
    found = measures.result()
    return {name: found[name] for name in MEASURED if name in found}


def held_out_line(found: Mapping[str, float], documents: int, chose: Sequence[str] = ()) -> str:
    """Return one line with the measures of held-out documents, and what they chose."""
    shown = ", ".join(f"{name.replace('_', ' ')} {value:.4f}" for name, value in found.items())
    also = f", which chose {' and '.join(chose)}" if chose else ""
    return f"held-out: {shown} ({documents:,} documents{also})"

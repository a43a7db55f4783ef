"""Implement the commands `latent fit` and `latent show`."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dcme_w2v.classify.dataset import (
    Dataset,
    DocumentsJob,
    are_vectors,
    check_held_out,
    corpus_line,
)
from dcme_w2v.classify.dataset import read as read_documents
from dcme_w2v.classify.features import TextFeatures
from dcme_w2v.classify.model import COLUMNS
from dcme_w2v.classify.options import FeatureOptions
from dcme_w2v.classify.predict import held_out_line, measured, pieces
from dcme_w2v.errors import UsageError
from dcme_w2v.files.space import write_with_fallback
from dcme_w2v.formats.artifact import check_model_target
from dcme_w2v.formats.texts import bytes_of
from dcme_w2v.numeric.sparse_rows import as_matrix
from dcme_w2v.options import HoldoutOptions
from dcme_w2v.training.progress import ProgressLike, Reporter, reporting_to

from .model import KIND, LatentClassifier
from .options import LatentOptions, resolved

OR_CLUSTER = ", or --unsupervised"


@dataclass(frozen=True)
class LatentJob(DocumentsJob):
    """The inputs and outputs of ``latent fit``.

    Attributes
    ----------
    holdout : str or None
        The held-out documents: a share of the labeled documents, or a file.
    choose : str or None
        Numbers of latent classes, such as "10,20,40", of which the held-out log-likelihood chooses
        one.
    """

    holdout: str | None = None
    choose: str | None = None


def fit_files(
    job: LatentJob,
    features: FeatureOptions,
    options: LatentOptions,
    progress: ProgressLike = False,
) -> LatentClassifier:
    """Fit a latent-class model to document files, and save it.

    Raises
    ------
    CorpusError
        There is nothing to learn from.
    UsageError
        Options contradict each other, or do not fit the documents.
    """
    check_model_target(job.output, KIND)
    wanted = [replace(options, latent=size) for size in _sizes(job, options)]
    with reporting_to(progress, job.log_json) as reporter:
        start = time.monotonic()
        reporter.stage("reading", None, "documents")
        text = None if are_vectors(job.docs) else TextFeatures(features)
        read = _read(job, options, text)
        read_seconds = time.monotonic() - start
        classes = [] if options.unsupervised else read.classes
        if not options.unsupervised:
            job.check_classes(classes, OR_CLUSTER)
        reporter.message(corpus_line(read, classes, " left out", "labels"))
        check_held_out(HoldoutOptions(job.holdout), read, classes)
        rows = read.matrix.shape[0]
        if job.choose and max(one.latent or 0 for one in wanted) > rows:
            raise UsageError(
                f"--choose={job.choose}: every number must be at most {rows}, the number of "
                "documents; use smaller numbers, or more documents"
            )
        for one in wanted:
            resolved(one, len(classes), *read.matrix.shape)
        chose = ["the number of latent classes"] if job.choose else []
        models = [_fitted(one, read, classes, chose, reporter) for one in wanted]
        best = max(models, key=lambda one: one.record["heldout"].get("log_likelihood", 0.0))
        best.record.update({
            "tried": [
                {"latent": one.latent, **one.record["heldout"]}
                for one in models
                if read.holdout is not None
            ],
            "documents": read.matrix.shape[0],
            "unlabeled": read.unlabeled,
            "labels": read.counts if classes else {},
            "read_seconds": round(read_seconds, 3),
            "fit_seconds": round(time.monotonic() - start - read_seconds, 3),
        })  # fmt: skip
        reporter.message(_fit_line(best))
        write_with_fallback((job.output, "model", best.save))
        reporter.message(f"model: {job.output}")
        return best


def _fitted(
    options: LatentOptions, read: Dataset, classes: list[str], chose: list[str], reporter: Reporter
) -> LatentClassifier:
    """Fit a model with the given options; add the held-out measures to the model's record.

    `chose` names the settings that the held-out documents chose, for the message.
    """
    from .fit import learn

    labels = read.data.labels if classes else None
    multilabel = bool(classes) and read.multilabel
    model = learn(as_matrix(read.matrix), labels, classes, options, reporter, read.text, multilabel)
    model.record.update({COLUMNS: read.columns, "heldout": {}})
    if read.holdout is not None:
        found = model.record["heldout"] = measured(model, read.holdout)
        line = held_out_line(found, len(read.holdout.labels), chose)
        reporter.message(f"{model.latent:,} latent classes, {line}")
    return model


def typical_documents(
    model: LatentClassifier, docs: Sequence[str], count: int, threads: int | None
) -> list[list[dict[str, Any]]]:
    """Return the documents with the highest probability for each latent class.

    Returns
    -------
    list of list of dict
        `document` (from 1, in the order of `docs`), `probability`, `labels`, and for text also
        `text`.
    """
    best: list[list[dict[str, Any]]] = [[] for _ in range(model.latent)]
    number = 0
    for matrix, own, documents in pieces(model, docs, None):
        at = 0
        for log_p in model.latent_log_probabilities(matrix, threads):
            for k in range(model.latent):
                order = np.argsort(-log_p[:, k], kind="stable")[:count]
                best[k] += [
                    {
                        "document": number + at + int(i) + 1,
                        "probability": float(np.exp(log_p[i, k])),
                        "labels": list(own[at + i]),
                        **(
                            {"text": bytes_of(documents[at + i].text).decode()} if documents else {}
                        ),
                    }
                    for i in order
                ]
                best[k] = sorted(best[k], key=lambda one: -one["probability"])[:count]
            at += len(log_p)
        number += matrix.shape[0]
    return best


def _sizes(job: LatentJob, options: LatentOptions) -> list[int | None]:
    """Return the candidate numbers of latent classes; [None] stands for the default number."""
    if options.unsupervised and job.holdout is not None:
        raise UsageError(
            "--unsupervised is not supported with --holdout, which requires labels; omit one of "
            "the two options"
        )
    if job.choose is None:
        return [options.latent]
    if job.holdout is None:
        raise UsageError("--choose requires held-out documents; add --holdout")
    if options.latent is not None:
        raise UsageError("--choose is not supported with --latent; omit one of the two options")
    try:
        found = [int(one) for one in job.choose.split(",")]
    except ValueError:
        raise UsageError(
            f"--choose={job.choose} must consist of integers separated by commas, such as 10,20,40"
        ) from None
    if min(found) < 2:
        raise UsageError(f"--choose={job.choose}: every number must be at least 2")
    return list(dict.fromkeys(found))


def _read(job: LatentJob, options: LatentOptions, text: TextFeatures | None) -> Dataset:
    holdout = HoldoutOptions(job.holdout)
    return read_documents(
        job.docs, job.labels, text, holdout, options.seed, options.unsupervised, OR_CLUSTER
    )


def _fit_line(model: LatentClassifier) -> str:
    line = f"{model.latent:,} latent classes, cost {model.record['cost']:.6g}"
    empty = model.latent - model.record["active"]
    return line + (f", {empty:,} of them empty" if empty else "")

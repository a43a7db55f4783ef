"""Implement the command `fuse fit`, which reads files, fits a model and saves it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dcme_w2v.classify.choose import Problem, Search, Stage, like_svm, of_features
from dcme_w2v.classify.constants import KEPT_BYTES
from dcme_w2v.classify.dataset import (
    Dataset,
    DocumentsJob,
    are_vectors,
    corpus_line,
    no_labels,
    numbers_of,
)
from dcme_w2v.classify.dataset import read as read_documents
from dcme_w2v.classify.features import TextFeatures
from dcme_w2v.classify.labeled import instances_of
from dcme_w2v.classify.model import COLUMNS
from dcme_w2v.classify.options import SUBWORDS, ClassifyOptions, FeatureOptions
from dcme_w2v.classify.sequences import tag_pairs
from dcme_w2v.declarations import filled
from dcme_w2v.errors import CorpusError, UsageError
from dcme_w2v.files.atomic import STANDARD
from dcme_w2v.files.paths import as_paths
from dcme_w2v.files.space import write_with_fallback
from dcme_w2v.formats.artifact import check_model_target
from dcme_w2v.numeric.arrays import I64
from dcme_w2v.numeric.sparse_rows import as_matrix
from dcme_w2v.options import HoldoutOptions
from dcme_w2v.training.progress import ProgressLike, Reporter, reporting_to

from .choose import fit_chosen
from .fit import TrainingRows, check_data
from .model import KIND, FusedModel
from .options import FusedOptions, resolved


@dataclass(frozen=True)
class FuseJob(DocumentsJob):
    """The inputs and outputs of `fuse fit`, including the labeled documents of `DocumentsJob`.

    Attributes
    ----------
    unlabeled : sequence of str
        Files, folders or ``-``; or files of vectors, detected by their suffix.
    """

    unlabeled: Sequence[str] = ()

    def __post_init__(self) -> None:
        for name in ("docs", "unlabeled"):
            object.__setattr__(self, name, as_paths(getattr(self, name)))


def fit_files(
    job: FuseJob, features: FeatureOptions, options: FusedOptions, progress: ProgressLike = False
) -> FusedModel:
    """Fit a model to files of labeled and unlabeled documents, and save it.

    Raises
    ------
    CorpusError
        There is nothing to learn from.
    ResourceError
        There is not enough disk space for the model.
    UsageError
        Options contradict each other, or do not fit the files.
    """
    check_model_target(job.output, KIND)
    if [*map(str, (*job.docs, *job.unlabeled))].count(STANDARD) > 1:
        raise UsageError("-: standard input can be read only once; replace one - with a file")
    with reporting_to(progress, job.log_json) as reporter:
        reporter.stage("reading", None, "documents")
        text = None
        if not are_vectors([*job.docs, *job.unlabeled]):
            # Unlike `classify train`, omit word pairs, because few documents rarely repeat them.
            text = TextFeatures(filled(features, {"lead_ngrams": 1}).with_lead())
        is_open = text is not None and not text.is_by_token
        is_open &= features.subwords is None and features.ngrams is None
        everything = read_documents(
            job.docs, job.labels, text, HoldoutOptions(), 0, True, unlabeled=job.unlabeled,
            keep=KEPT_BYTES if is_open and (options.choose is not False or options.preset) else 0,
        )  # fmt: skip
        read, _ = everything.by_label()
        classes, numbers, rows = _numbered(job, read, text)
        if text is not None and text.is_by_token:
            text.tag_pairs = tag_pairs(read.labels, read.is_first, classes)
        options = resolved(options)

        if everything.texts:
            everything = _chosen(everything, options, reporter)
            text = everything.text
        read, unlabeled = everything.by_label()
        matrix, groups = as_matrix(read.matrix[rows]), read.groups[rows]
        own = matrix, numbers, as_matrix(unlabeled), len(classes), options, rows, groups
        data = TrainingRows(*own)
        counted = replace(everything, unlabeled=unlabeled.shape[0])
        reporter.message(corpus_line(counted, classes))
        for warning in check_data(data, classes):
            reporter.message(warning)
        found = fit_chosen(data, reporter)
        model = FusedModel(
            classes, text, options, read.multilabel, record=found.record, weights=found.weights,
            evidence=found.evidence,
        )  # fmt: skip
        model.record.update({
            "final": found.final,
            "labeled_documents": len(read.labels),
            "unlabeled_documents": len(data.unlabeled),
            COLUMNS: read.columns,
            "labels": read.counts,
        })  # fmt: skip
        write_with_fallback((job.output, "model", model.save))
        reporter.message(f"model ({found.final}): {job.output}")
        return model


def _chosen(read: Dataset, options: FusedOptions, reporter: Reporter) -> Dataset:
    """Return the documents, with character n-grams as additional features if they help.

    Short texts always get character n-grams. Longer texts get them only if they improve a
    classifier in cross-validation.
    """
    assert read.text is not None
    own = replace(read.text.options, subwords=SUBWORDS)
    wide = read.with_features(own, own.most_features)
    if read.has_short_texts:
        reporter.message("the texts are short, so character n-grams are also used as features")
        return wide
    labeled = {"none": read.by_label()[0], SUBWORDS: wide.by_label()[0]}
    words = labeled["none"]
    given = ClassifyOptions(threads=options.threads, seed=options.seed)
    problem = Problem(
        words.data, len(words.classes), given, words.multilabel,
        [{"subwords": name} for name in labeled], lambda one: labeled[one["subwords"]].matrix,
    )  # fmt: skip
    stage = Stage(of_features, problem.measure, clearly=1.0)
    found = Search(problem).run([stage], like_svm(problem, problem.features[0]))
    reporter.message(f"features: {found.line}")
    return wide if found.setting["subwords"] == SUBWORDS else read


def _numbered(job: FuseJob, read: Dataset, text: TextFeatures | None) -> tuple[list[str], I64, I64]:
    """Return the class names, and a class index and a document index for each label."""
    if not read.labels:
        raise CorpusError(no_labels(job.docs, text))
    job.check_classes(read.classes)
    documents, numbers = instances_of(numbers_of(read.labels, read.classes))
    return list(read.classes), numbers.astype(np.int64), documents

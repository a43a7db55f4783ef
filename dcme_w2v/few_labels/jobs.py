"""`fuse fit` and `fuse statistics`: from files to files."""

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
    pieces,
)
from dcme_w2v.classify.dataset import read as read_documents
from dcme_w2v.classify.features import TextFeatures
from dcme_w2v.classify.labeled import Labeled
from dcme_w2v.classify.model import COLUMNS, Predictor, load_classifier
from dcme_w2v.classify.options import SUBWORDS, ClassifyOptions, FeatureOptions
from dcme_w2v.classify.sequences import tag_pairs
from dcme_w2v.declarations import filled, threads_of
from dcme_w2v.errors import CorpusError, UsageError
from dcme_w2v.files.atomic import STANDARD
from dcme_w2v.files.paths import as_paths
from dcme_w2v.files.space import Result, write_with_fallback
from dcme_w2v.formats.artifact import check_model_target
from dcme_w2v.numeric.arrays import I64
from dcme_w2v.numeric.sparse_rows import fit_columns, ones
from dcme_w2v.options import HoldoutOptions
from dcme_w2v.training.progress import ProgressLike, Reporter, reporting_to

from .fit import Fitted, TrainingRows, check_data, fit, fit_from
from .model import KIND, FusedModel
from .options import FusedOptions, resolved
from .statistics import (
    Statistics,
    check_values,
    identity_of,
    read_parts,
    write_part,
)

DOCUMENTS_AT_ONCE = 4096


@dataclass(frozen=True)
class FuseJob(DocumentsJob):
    """Inputs and outputs of `fuse fit`; the documents of `DocumentsJob` are the labeled ones.

    Attributes
    ----------
    unlabeled : sequence of str
        Files, folders or ``-``; or files of vectors, detected by their suffix.
    reference : str or None
        File of a classifier: the initial model.
    statistics : str or None
        File that the statistics of the first round are written to.
    resume_statistics : sequence of str
        Files of statistics that are added.
    """

    unlabeled: Sequence[str] = ()
    reference: str | None = None
    statistics: str | None = None
    resume_statistics: Sequence[str] = ()

    def __post_init__(self) -> None:
        for name in ("docs", "unlabeled", "resume_statistics"):
            object.__setattr__(self, name, as_paths(getattr(self, name)))


def fit_files(
    job: FuseJob, features: FeatureOptions, options: FusedOptions, progress: ProgressLike = False
) -> FusedModel:
    """Fit a model to files and save it.

    Raises
    ------
    CorpusError
        There is nothing to learn.
    ResourceError
        The disk has no room for the model.
    UsageError
        Options contradict each other or the files.
    """
    check_model_target(job.output, KIND)
    _check_job(job, options)
    with reporting_to(progress, job.log_json) as reporter:
        reporter.stage("reading", None, "documents")
        reference = load_classifier(job.reference) if job.reference else None
        text = _features(job, features, reference)
        open_features = (features.subwords, features.ngrams, reference)
        is_open = text is not None and not text.is_by_token and open_features == (None,) * 3
        everything = read_documents(
            job.docs, job.labels, text, HoldoutOptions(), 0, True, unlabeled=job.unlabeled,
            trained=reference, keep=KEPT_BYTES if is_open and options.choose is not False else 0,
        )  # fmt: skip
        read, _ = everything.by_label()
        classes, numbers, rows = _numbered(job, read, text, reference)
        if text is not None and text.is_by_token:
            text.tag_pairs = tag_pairs(read.labels, read.is_first, classes)
        if job.resume_statistics and not options.is_paper:
            options = replace(options, initial="supervised", rounds=1)
        if reference is not None or job.statistics:
            if options.choose:
                raise UsageError("--choose: --statistics and --reference have one initial model")
            options = replace(options, choose=False)
        options = resolved(options)

        if everything.texts:
            everything = _chosen(everything, options, reporter)
            text = everything.text
        read, unlabeled = everything.by_label()
        matrix, groups = read.matrix[rows], read.groups[rows]
        data = TrainingRows(matrix, numbers, unlabeled, len(classes), options, rows, groups)
        counted = replace(everything, unlabeled=unlabeled.shape[0])
        reporter.message(corpus_line(counted, classes))
        for warning in check_data(data, classes, bool(job.resume_statistics)):
            reporter.message(warning)
        found = _fitted(job, data, text, classes, reference, reporter)
        model = FusedModel(
            classes, text, options, read.multilabel, record=found.record, weights=found.weights,
            evidence=found.evidence,
        )  # fmt: skip
        model.record |= {
            "final": found.final,
            "labelled_documents": len(read.labels),
            "unlabelled_documents": len(data.unlabeled),
            COLUMNS: read.columns,
            "labels": read.counts,
        }
        write_with_fallback([Result(job.output, "model", model.save)])
        reporter.message(f"model ({found.final}): {job.output}")
        return model


def _chosen(read: Dataset, options: FusedOptions, reporter: Reporter) -> Dataset:
    """Return the documents with words as features, or also with character n-grams.

    Short texts have them. Of longer ones a classifier has to be better with them on folds.
    """
    assert read.text is not None
    own = replace(read.text.options, subwords=SUBWORDS)
    wide = read.with_features(own, own.most_features)
    if read.has_short_texts:
        reporter.message("short texts: character n-grams are features")
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


def _fitted(
    job: FuseJob,
    data: TrainingRows,
    text: TextFeatures | None,
    classes: list[str],
    reference: Predictor | None,
    reporter: Reporter,
) -> Fitted:
    """Fit with the initial model and the statistics of a job."""
    if reference is None and not job.statistics:
        return fit(data, reporter)
    columns = data.labeled.matrix.shape[1]
    identity = identity_of(text, columns, classes, job.reference, data.options.is_paper)
    if reference is None:
        found = fit(data, reporter)
    else:
        parts = read_parts(job.resume_statistics, identity) if job.resume_statistics else None
        reporter.message(
            "warning: without folds the weights of the levels may be optimistic, since the "
            "initial model may have seen the labeled documents"
        )
        found = fit_from(data, reference, parts, reporter)
    if job.statistics:
        assert found.sums is not None
        write_part(job.statistics, found.sums, identity)
    return found


def _check_job(job: FuseJob, options: FusedOptions) -> None:
    if [*map(str, (*job.docs, *job.unlabeled))].count(STANDARD) > 1:
        raise UsageError("-: standard input can be read once; name a file for the other")
    if job.resume_statistics and not job.reference:
        raise UsageError(
            "--resume-statistics: parts belong to an initial model; give it by --reference"
        )
    if job.reference and options.final == "beside":
        raise UsageError("--final=beside: needs scores out of fold; leave out --reference")
    if job.resume_statistics and options.final is not None:
        raise UsageError(
            f"--final={options.final}: needs the unlabeled documents themselves; leave it out, or "
            "--resume-statistics"
        )


def _features(
    job: FuseJob, features: FeatureOptions, reference: Predictor | None
) -> TextFeatures | None:
    if are_vectors([*job.docs, *job.unlabeled]):
        if reference is not None and reference.text is not None:
            raise UsageError(f"{job.docs[0]}: is vectors, and --reference classifies text")
        return None
    if reference is not None:
        if reference.text is None:
            raise UsageError(f"{job.docs[0]}: is text, and --reference classifies vectors")
        return reference.text
    # as classify train, except for pairs of words, which few documents seldom share
    return TextFeatures(filled(features, {"lead_ngrams": 1}).with_lead())


def _numbered(
    job: FuseJob, read: Dataset, text: TextFeatures | None, reference: Predictor | None
) -> tuple[list[str], I64, I64]:
    """Return the classes; for each label of a document its class, and the document's number."""
    if not read.labels:
        raise CorpusError(no_labels(job.docs, text))
    classes = reference.classes if reference is not None else read.classes
    if unknown := [name for name in read.classes if name not in set(classes)]:
        raise UsageError(
            f"{job.docs[0]}: has the label {unknown[0]!r}, which --reference does not have"
        )
    job.check_classes(read.classes)
    labeled = Labeled(read.matrix, numbers_of(read.labels, classes))
    documents, numbers = labeled.instances()
    return list(classes), numbers.astype(np.int64), documents


def statistics_of_files(
    model: str,
    docs: Sequence[str],
    output: str,
    binary: bool = False,
    threads: int | None = None,
    progress: ProgressLike = False,
) -> Statistics:
    """Write the statistics of unlabeled documents by an initial model: the map step.

    The documents are read once, in batches.
    """
    loaded = load_classifier(model)
    columns = loaded.features
    threads = threads_of(threads)
    sums = Statistics.zeros(columns, len(loaded.classes))
    with reporting_to(progress) as reporter:
        reporter.stage("counting", None, "documents")
        for matrix, _, _ in pieces(loaded, docs, None, DOCUMENTS_AT_ONCE):
            rows = fit_columns(matrix, columns)
            check_values(rows)
            found = list(loaded.log_probabilities(rows, threads))
            if found:
                counted = ones(rows) if binary else rows
                sums.add(counted, np.concatenate(found))
            reporter.advance(sums.documents)
        if not sums.documents:
            raise CorpusError(f"{docs[0]}: has no documents; give others")
        identity = identity_of(loaded.text, columns, loaded.classes, model, binary)
        write_part(output, sums, identity)
        return sums

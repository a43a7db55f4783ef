"""The command ``classify train``, from files to a saved model."""

import contextlib
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from dcme_w2v.declarations import filled
from dcme_w2v.errors import UsageError
from dcme_w2v.files.disk import Result, disk_plan, require_disk, write_with_fallback
from dcme_w2v.files.paths import PARTIAL, Paths
from dcme_w2v.options import CheckpointOptions, HoldoutOptions
from dcme_w2v.text.split import check_file
from dcme_w2v.training.checkpoint_folder import find_checkpoint, open_folder, paths_in
from dcme_w2v.training.interrupts import Interrupted, ReceivedSignal
from dcme_w2v.training.progress import QUIET, Reporter
from dcme_w2v.training.run import Checkpointer, interruptible

from . import sequences
from .calibration import Calibrated, calibration_data, calibration_on
from .dataset import (
    Dataset,
    DocumentsJob,
    are_vectors,
    check_held_out,
    corpus_line,
)
from .dataset import read as read_documents
from .feature_sets import FeatureSets, KeptText
from .features import TextFeatures
from .fit import Fit, Labeled, RemoteTraining
from .loss import LossSearch, is_loss_open, loss_line
from .model import COLUMNS, KIND, Classifier
from .options import (
    NO_SUBWORDS,
    ClassifyOptions,
    FeatureOptions,
    TuneOptions,
    resolved,
)
from .predict import held_out_line
from .resources import resource_estimate, resource_shortage
from .trainer import Weights, warn_of_short_rows
from .tree_model import TreeClassifier, trained
from .tune import HINGE_CLASSES, Rows, Search, Tuned

# a resumed run has these from its start
OF_RUN = ("threads", "loss", "lr", "min_lr", "epochs", "l2", "batch", "bias")


Compress = Callable[[Classifier, Labeled | None, Reporter], tuple[Classifier, Labeled | None]]


@dataclass(frozen=True)
class TrainJob(DocumentsJob):
    """Inputs and outputs of ``classify train``.

    Attributes
    ----------
    holdout : HoldoutOptions
        Held-out documents: a share of the documents, or a file.
    tune : TuneOptions
        Whether settings are searched.
    fixed : frozenset of str
        Options of features that are not searched.
    checkpoints : CheckpointOptions
        Folder for checkpoints, by default the folder of `resume`, and their interval; and the
        folder to resume from.
    compress : callable, optional
        Gets the classifier, the held-out documents or None, and the reporter; returns the model
        that is written instead, and the documents for it; see
        `dcme_w2v.small_models.job.compressed`.
    """

    holdout: HoldoutOptions = field(default_factory=HoldoutOptions)
    tune: TuneOptions = field(default_factory=TuneOptions)
    fixed: frozenset[str] = frozenset()
    checkpoints: CheckpointOptions = field(default_factory=CheckpointOptions)
    compress: Compress | None = None


def paths_of(job: TrainJob) -> Paths:
    """Return the inputs and outputs of a training run."""
    paths = job.paths(KIND, job.holdout.file)
    return paths_in(paths, job.checkpoints)


def train(
    job: TrainJob,
    features: FeatureOptions,
    options: ClassifyOptions,
    reporter: Reporter = QUIET,
    signals: AbstractContextManager[ReceivedSignal] | None = None,
    remote: RemoteTraining | None = None,
) -> Classifier | TreeClassifier:
    """Train a classifier on files and save it.

    Parameters
    ----------
    job : TrainJob
        Inputs and outputs.
    features : FeatureOptions
        Options of the features of text.
    options : ClassifyOptions
        Options of the training.
    reporter : Reporter, optional
        Receives the progress.
    signals : context manager, optional
        Records signals while training. Without it, no handler is installed.
    remote : RemoteTraining, optional
        Trains on the workers of an executor, see `dcme_w2v.cluster.distribute`.

    Raises
    ------
    CorpusError
        There are no labels, only one class, or no words.
    Interrupted
        A signal arrived; the state or the model so far is saved, see `dcme_w2v.training.run`.
    KeyboardInterrupt
        While training; its attribute `partial` is the `Classifier` so far.
    """
    _check(job, options, remote)
    if remote is not None:
        options = remote.prepare(options, job.checkpoints)
    start = time.monotonic()
    found = find_checkpoint(job.checkpoints, Fit.kind)
    if found is not None:
        options = found.with_run_values(options, *OF_RUN)
        own = ("lead", "lead_ngrams", "tokens", "ngrams", "subwords")
        features = found.with_run_values(features, *own)
        features = filled(features, {"lead": 0, "lead_ngrams": 1, "subwords": NO_SUBWORDS})
    features = features.with_lead()
    with open_folder(job.checkpoints) as folder, contextlib.ExitStack() as stack:
        corpus = _read_documents(job, features, options, reporter, remote is None)
        received = stack.enter_context(signals or contextlib.nullcontext(ReceivedSignal()))
        _resolved(job, options, corpus, remote)  # raises before a search
        tuned, corpus = _searched(job, features, options, corpus, remote, reporter, received)
        if tuned is not None:
            options = tuned.options(options, len(corpus.classes), corpus.multilabel)
        features = features if corpus.text is None else corpus.text.options
        given, options = options, _resolved(job, options, corpus, remote)
        if given.objective == "auto" and options.solver == "sgd":
            reporter.message(_objective_line(given, options, len(corpus.classes)))
        if options.objective == "tree":
            return _train_trees(job, options, corpus, reporter, received, start)
        data, calibration = _divided(options, corpus, remote, reporter)
        task = _Fit(job, features, options, corpus, data, remote)
        checkpointer = None
        if options.solver != "lbfgs" and remote is None:
            checkpointer = Checkpointer(task, reporter, folder, job.checkpoints, found)
        read_seconds = time.monotonic() - start
        with interruptible(task, contextlib.nullcontext(received)) as received:
            task.train(reporter, received, checkpointer)
            model = task.current_model()
            seconds = time.monotonic() - start - read_seconds
            seconds = checkpointer.position.seconds if checkpointer else seconds
            model.record |= _record(job, read_seconds, seconds, tuned)
            if remote is not None:
                model.record["cluster"] = remote.finish(task.weights, corpus.holdout)
            return _saved(job, model, corpus.holdout, calibration(model.weights), reporter)


def _check(job: TrainJob, options: ClassifyOptions, remote: RemoteTraining | None) -> None:
    """Raise if paths or options exclude each other, before anything is read."""
    paths_of(job).check()
    check_file(job.holdout, job.docs)
    if options.patience is not None and job.holdout.holdout is None:
        raise UsageError("--patience: requires held-out documents; give --holdout")
    _check_solver(options, job.checkpoints)
    _check_trees(job, options, remote)
    _check_tune(job, remote)


def _resolved(
    job: TrainJob, given: ClassifyOptions, corpus: Dataset, remote: RemoteTraining | None
) -> ClassifyOptions:
    """Return the options with every default; raise if the memory or the disk is too small."""
    options = resolved(given, len(corpus.classes), corpus.multilabel)
    _check_trees(job, options, remote)
    plan = _plan(job, corpus, options)
    if shortage := resource_shortage(plan):
        raise shortage
    columns = corpus.matrix.shape[1]
    table, idf, counts = plan["output_bytes"] - 12 * columns, 4 * columns, 8 * columns
    require_disk(job.output, table + idf + counts, max(table, counts))
    return options


def _divided(
    options: ClassifyOptions,
    corpus: Dataset,
    remote: RemoteTraining | None,
    reporter: Reporter,
) -> tuple[Labeled, Callable[[Weights], Calibrated | None]]:
    """Return the documents to train on, and what makes the calibration of the trained weights.

    Without held-out documents, some are left out for the calibration of the hinge loss.
    """
    data, left_out, by = corpus.data, corpus.holdout, None
    multilabel, classes = corpus.multilabel, len(corpus.classes)
    if options.loss != "hinge" and not multilabel:
        return data, lambda _: None
    counts = np.bincount(data.instances()[1], minlength=classes) if multilabel else None
    if options.loss == "hinge" and left_out is None and remote is None:
        data, left_out, by = calibration_data(data, classes, options, reporter, counts)

    def calibration(weights: Weights) -> Calibrated | None:
        found = by
        if left_out is not None:
            found = calibration_on(weights, left_out, options, counts)
        if found is not None:
            found.adjust(weights)
        return found

    return data, calibration


def _saved(
    job: TrainJob,
    model: Classifier,
    holdout: Labeled | None,
    calibration: Calibrated | None,
    reporter: Reporter,
) -> Classifier:
    """Complete a trained model, report its held-out measures, and save and return it."""
    if calibration is not None:
        model.calibration = calibration.by
        model.threshold = calibration.threshold if model.multilabel else model.threshold
    if job.compress is not None:
        try:
            model, holdout = job.compress(model, holdout, reporter)
        except UsageError as error:  # the training shall not be lost
            whole = Result(job.output + PARTIAL, "model", model.save)
            write_with_fallback([whole])
            raise UsageError(f"{error.message}; the whole model is in {whole.path}") from None
    if holdout is not None:
        reporter.message(held_out_line(model, holdout))
    write_with_fallback([Result(job.output, "model", model.save)])
    return model


def _corpus_record(corpus: Dataset) -> dict[str, Any]:
    """Return what a model's JSON file contains about the documents."""
    return {
        "documents": len(corpus.labels), "labels": corpus.counts, COLUMNS: corpus.columns,
    }  # fmt: skip


def _record(
    job: TrainJob,
    read_seconds: float,
    train_seconds: float,
    tuned: Tuned | None,
) -> dict[str, Any]:
    """Return what a model's JSON file says of its training."""
    found: dict[str, Any] = {
        "read_seconds": round(read_seconds, 3),
        "train_seconds": round(train_seconds, 3),
    }
    if tuned is not None:
        found["loss" if job.tune.tune is None else "tune"] = tuned.record
    return found


def _train_trees(
    job: TrainJob,
    options: ClassifyOptions,
    corpus: Dataset,
    reporter: Reporter,
    received: ReceivedSignal,
    start: float,
) -> TreeClassifier:
    """Train trees of labels and save them; a signal ends the training between two nodes."""
    read_seconds = time.monotonic() - start
    reporter.stage("training", None, "documents of nodes")

    def watch(done: int) -> None:
        reporter.advance(done)
        if received.number is not None:
            raise Interrupted(f"stopped by {received.name}; nothing was written", received.number)

    model = trained(
        corpus.data, corpus.classes, corpus.text, options, corpus.multilabel, corpus.holdout, watch
    )
    seconds = time.monotonic() - start - read_seconds
    model.record = {**_corpus_record(corpus), **_record(job, read_seconds, seconds, None)}
    if corpus.holdout is not None:
        reporter.message(held_out_line(model, corpus.holdout))
    write_with_fallback([Result(job.output, "model", model.save)])
    return model


def dry_run(
    job: TrainJob,
    features: FeatureOptions,
    options: ClassifyOptions,
    reporter: Reporter = QUIET,
) -> dict[str, Any]:
    """Read the documents and return the resources that training requires; see `train`.

    Returns
    -------
    dict
        See `dcme_w2v.classify.resources.resource_estimate`; "disk" is the folder that is written
        to, "refused" the error if there is not enough memory.
    """
    paths_of(job).check()
    check_file(job.holdout, job.docs)
    _check_solver(options, job.checkpoints)
    features = features.with_lead()
    corpus = _read_documents(job, features, options, reporter)
    sets = _feature_sets(job, features, corpus)
    if sets is not None and is_loss_open(options, corpus.data, len(corpus.classes)):
        largest = max(sets.choices(), key=lambda one: sets.matrix(one).shape[1])
        corpus = sets.dataset(corpus, largest)
    plan = _plan(job, corpus, resolved(options, len(corpus.classes), corpus.multilabel))
    return {
        **plan,
        "disk": disk_plan(job.output, plan["output_bytes"]),
        "refused": resource_shortage(plan),
    }


def _plan(job: TrainJob, corpus: Dataset, options: ClassifyOptions) -> dict[str, Any]:
    labels, holdout = sum(map(len, corpus.labels)), job.holdout.holdout is not None
    return resource_estimate(corpus.matrix, labels, len(corpus.classes), options, holdout)


class _Fit(Fit):
    """Training of a `Classifier` on `data`, documents of `corpus`."""

    def __init__(
        self,
        job: TrainJob,
        features: FeatureOptions,
        options: ClassifyOptions,
        corpus: Dataset,
        data: Labeled,
        remote: RemoteTraining | None = None,
    ) -> None:
        self._job, self._corpus, self.multilabel = job, corpus, corpus.multilabel
        documents, classes = len(corpus.labels), len(corpus.classes)
        described = f"{documents:,} documents of {classes:,} classes in {', '.join(job.docs[:3])}"
        super().__init__(
            data, classes, options, corpus.holdout, corpus.multilabel,
            asdict(features), described, remote,
        )  # fmt: skip

    def current_model(self) -> Classifier:
        """Return the classifier so far."""
        corpus = self._corpus
        return Classifier(
            corpus.classes, corpus.text, self._options, self.multilabel,
            record={**_corpus_record(corpus), "epochs": self.records}, weights=self.weights,
        )  # fmt: skip

    def save_partial(self) -> str | None:
        """Save the classifier so far beside the output."""
        if not self.records and self._remote is not None:
            return None  # the weights are still on the workers
        result = Result(self._job.output + PARTIAL, "model", self.current_model().save)
        write_with_fallback([result])
        return f"the model so far is in {result.path}"


def _read_documents(
    job: TrainJob,
    features: FeatureOptions,
    options: ClassifyOptions,
    reporter: Reporter,
    searches: bool = True,
) -> Dataset:
    """Read the documents and report their number; they are kept if features are searched."""
    reporter.stage("reading", None, "documents")
    text: TextFeatures | None = None
    if not are_vectors(job.docs):
        is_open = features.ngrams is None and features.by == "document"
        if job.tune.tune is not None:
            text = KeptText(FeatureSets.widest(features, job.fixed))
        elif searches and is_open and features.hashing is None:
            text = KeptText(features, keeps_all=False)
        else:
            text = TextFeatures(features)
    most = features.features_of if job.tune.tune is None else None
    read = read_documents(job.docs, job.labels, text, job.holdout, options.seed, most=most)
    check_held_out(job.holdout, read, read.classes)
    job.check_classes(read.classes)
    warn_of_short_rows(read.matrix, options.bias)
    if text is not None and text.is_by_token:
        text.tag_pairs = sequences.tag_pairs(read.labels, read.is_first, read.classes)
    reporter.message(corpus_line(read, read.classes, " left out"))
    return read


def _searched(
    job: TrainJob,
    features: FeatureOptions,
    options: ClassifyOptions,
    corpus: Dataset,
    remote: RemoteTraining | None,
    reporter: Reporter,
    received: ReceivedSignal,
) -> tuple[Tuned | None, Dataset]:
    """Search settings, or only loss and learning rate; returns them and the documents with them."""
    data, text, number = corpus.data, corpus.text, len(corpus.classes)
    sets, tuned = _feature_sets(job, features, corpus), None
    if job.tune.tune is not None:
        seconds = job.tune.tune
        found = sets or Rows(data.matrix)
        tuned = Search(found, data.labels, number, options, seconds, None, reporter, received).run()
        reporter.message(tuned.line)
    else:
        if remote is not None or (text is not None and text.is_by_token):
            options = replace(options, loss=resolved(options, number, corpus.multilabel).loss)
        if is_loss_open(options, data, number):
            tuned = LossSearch(data, number, options, reporter, received, sets).run()
            reporter.message(loss_line(tuned))
    if sets is not None:
        # pairs lose up to 5 points of P@1 with very many labels, where nothing is measured
        setting = {"lead_ngrams": 1} if number > HINGE_CLASSES else {}
        corpus = sets.dataset(corpus, setting if tuned is None else tuned.setting)
        if corpus.matrix.shape != data.matrix.shape:
            reporter.message(f"{corpus.matrix.shape[1]:,} features with these")
    return tuned, corpus


def _feature_sets(job: TrainJob, features: FeatureOptions, corpus: Dataset) -> FeatureSets | None:
    """Return the settings of the features to choose from; None if there is no choice."""
    if not isinstance(corpus.text, KeptText):
        return None
    fixed = job.fixed | ({"features", "weighting"} if job.tune.tune is None else set())
    return FeatureSets(corpus.text, features, fixed, len(corpus.classes))


def _check_trees(job: TrainJob, options: ClassifyOptions, remote: RemoteTraining | None) -> None:
    """Raise if something excludes trees of labels."""
    others = {
        "--cluster": remote, "--checkpoint": job.checkpoints.checkpoint,
        "--resume": job.checkpoints.resume, "--tune": job.tune.tune, "--max-bytes": job.compress,
    }  # fmt: skip
    given = [name for name, value in others.items() if value is not None]
    if options.objective == "tree" and given:
        raise UsageError(
            f"{given[0]}: is not supported with trees of labels (--objective tree); omit it, or "
            "give --loss hinge"
        )


def _check_tune(job: TrainJob, remote: RemoteTraining | None) -> None:
    """Raise if something excludes a search."""
    if job.tune.tune is None:
        return
    folder, other = job.checkpoints.folder, None
    if folder is not None:
        other = "--resume" if job.checkpoints.checkpoint is None else "--checkpoint"
    if remote is not None:
        other = "--cluster"
    if other is not None:
        raise UsageError(
            f"--tune={job.tune.tune:g}: is not supported with {other}; choose without it first, "
            "and give what was chosen"
        )


def _check_solver(options: ClassifyOptions, checkpoints: CheckpointOptions) -> None:
    if options.solver == "lbfgs" and checkpoints.folder is not None:
        flag = "--resume" if checkpoints.checkpoint is None else "--checkpoint"
        raise UsageError(
            f"{flag}={checkpoints.folder}: is not supported with --solver=lbfgs; omit it, or "
            "give --solver=sgd"
        )


def _objective_line(given: ClassifyOptions, options: ClassifyOptions, classes: int) -> str:
    chosen = options.objective
    if chosen == "tree":
        chosen = f"{options.trees} trees of labels"
    elif options.loss != given.loss and options.loss == "hinge":
        return f"several labels a document: --loss hinge, for {classes:,} classes"
    if chosen == "dcme" and options.dcme_update == "robust":
        chosen += f" with {options.class_clusters} clusters"
    return f"--objective auto: {chosen}, for {classes:,} classes"

"""The command ``classify train``, from files to a saved model."""

import contextlib
import math
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from dcme_w2v.declarations import filled
from dcme_w2v.errors import UsageError
from dcme_w2v.files.paths import PARTIAL
from dcme_w2v.files.space import Result, write_with_fallback
from dcme_w2v.formats.artifact import check_model_target
from dcme_w2v.options import CheckpointOptions, HoldoutOptions
from dcme_w2v.text.split import check_file
from dcme_w2v.training.checkpoint_folder import find_checkpoint, open_folder
from dcme_w2v.training.interrupts import ReceivedSignal
from dcme_w2v.training.progress import ProgressLike, Reporter, reporting_to
from dcme_w2v.training.run import Checkpointer, interruptible

from . import sequences
from .calibration import PLAIN, Calibrated, calibration_data, calibration_on, left_out_of
from .choose import MIN_COMPARED, Choice, OutOfFold, Problem, Setting, choose
from .constants import FEW, KEPT_BYTES, TABLE_CLASSES
from .dataset import (
    Dataset,
    DocumentsJob,
    are_vectors,
    check_held_out,
    corpus_line,
)
from .dataset import read as read_documents
from .features import TextFeatures
from .fit import Fit, Labeled, RemoteTraining
from .model import COLUMNS, KIND, Classifier
from .options import (
    NO_SUBWORDS,
    SUBWORDS,
    TREES,
    ClassifyOptions,
    FeatureOptions,
    TuneOptions,
    resolved,
)
from .predict import held_out_line, measured
from .resources import resource_estimate
from .trainer import Scorer, warn_of_short_rows

# a resumed run has these from its start
OF_RUN = ("threads", "loss", "lr", "min_lr", "epochs", "l2", "batch", "bias")

Compress = Callable[
    [Classifier, Labeled, Labeled | None, Reporter, int | None],
    tuple[Classifier, Labeled | None],
]


@dataclass(frozen=True)
class TrainJob(DocumentsJob):
    """Inputs and outputs of ``classify train``.

    Attributes
    ----------
    holdout : HoldoutOptions
        Held-out documents: a share of the documents, or a file.
    tune : TuneOptions
        Whether settings are searched.
    checkpoints : CheckpointOptions
        Folder for checkpoints, by default the folder of `resume`, and their interval; and the
        folder to resume from.
    compress : callable, optional
        Returns the model that is written instead; see `dcme_w2v.small_models.job.compressed`.
    max_bytes : int, optional
        The bytes that it may have.
    class_weight : mapping, "balanced" or None
        Factors of the loss of documents by label; see `dcme_w2v.classify.fit.class_weights`.
    """

    holdout: HoldoutOptions = field(default_factory=HoldoutOptions)
    tune: TuneOptions = field(default_factory=TuneOptions)
    checkpoints: CheckpointOptions = field(default_factory=CheckpointOptions)
    compress: Compress | None = None
    max_bytes: int | None = None
    class_weight: Mapping[str, float] | str | None = None


def train(
    job: TrainJob,
    features: FeatureOptions,
    options: ClassifyOptions,
    *,
    progress: ProgressLike = False,
    signals: AbstractContextManager[ReceivedSignal] | None = None,
    remote: RemoteTraining | None = None,
    dry_run: bool = False,
) -> Any:
    """Train a classifier on files, or rows in memory, and save it.

    Parameters
    ----------
    job : TrainJob
        Inputs and outputs; an empty output is none.
    features : FeatureOptions
        Options of the features of text.
    options : ClassifyOptions
        Options of the training.
    progress : bool or callable
        As in `dcme_w2v.train`.
    signals : context manager, optional
        Records signals while training. Without it, no handler is installed.
    remote : RemoteTraining, optional
        Trains on the workers of an executor, see `dcme_w2v.cluster.distribute`.
    dry_run : bool
        Only read the documents.

    Returns
    -------
    Classifier, or dict for a dry run
        Its `record` has the counts, the epochs and, as "heldout", the measures; or the resources of
        `dcme_w2v.classify.resources.resource_estimate`, as "refused" the error if there is not
        enough memory.

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
    with (
        reporting_to(progress, job.log_json, found is not None) as reporter,
        contextlib.nullcontext() if dry_run else open_folder(job.checkpoints) as folder,
        contextlib.ExitStack() as stack,
    ):
        corpus = _read_documents(job, features, options, reporter, remote is None)
        sets = FeatureSets(corpus, features, job.tune.tune is not None)
        if dry_run:
            return _resources(job, options, sets)
        received = stack.enter_context(signals or contextlib.nullcontext(ReceivedSignal()))
        _resolved(job, options, corpus, remote)  # raises before a search
        choice = None
        if remote is None:
            choice = _chosen(job, options, sets, reporter, received)
            corpus = sets.under(choice.setting if choice else {}).with_held()
            if choice is not None:
                options = sets.problem(options).options(choice.setting)
        features = features.with_lead() if corpus.text is None else corpus.text.options
        given, options = options, _resolved(job, options, corpus, remote)
        if given.objective == "auto" and options.solver == "sgd":
            reporter.message(_objective_line(given, options, len(corpus.classes)))
        scores = choice.scores if choice else None
        data, calibration = _divided(options, corpus, scores, remote, reporter)
        task = _Fit(job, features, options, corpus, data, remote)
        checkpointer = None
        if options.learner == "sgd" and remote is None:
            checkpointer = Checkpointer(task, reporter, folder, job.checkpoints, found)
        read_seconds = time.monotonic() - start
        with interruptible(task, contextlib.nullcontext(received)) as received:
            task.train(reporter, received, checkpointer)
            model = task.current_model()
            seconds = time.monotonic() - start - read_seconds
            seconds = checkpointer.position.seconds if checkpointer else seconds
            model.record["read_seconds"] = round(read_seconds, 3)
            model.record["train_seconds"] = round(seconds, 3)
            if choice is not None:
                model.record["choice"] = choice.record
            if remote is not None:
                model.record["cluster"] = remote.finish(task.weights, corpus.holdout)
            return _saved(job, model, corpus, calibration(model.weights), remote, reporter)


def _check(job: TrainJob, options: ClassifyOptions, remote: RemoteTraining | None) -> None:
    """Raise if options exclude each other or the output, before anything is read."""
    if job.output:
        check_model_target(job.output, KIND)
    if job.holdout.file is not None:
        check_file(job.holdout.file, job.docs)
    if options.patience is not None and job.holdout.holdout is None:
        raise UsageError("--patience: requires held-out documents; give --holdout")
    _check_learner(job, options, remote)


def _resolved(
    job: TrainJob, given: ClassifyOptions, corpus: Dataset, remote: RemoteTraining | None
) -> ClassifyOptions:
    """Return the options with every default; raise if the memory is too small."""
    classes = len(corpus.classes)
    options = resolved(given, classes, corpus.multilabel)
    _check_learner(job, options, remote)
    plan = resource_estimate(corpus.matrix, corpus.labels, classes, options)
    if plan["refused"]:
        raise plan["refused"]
    return options


def _divided(
    options: ClassifyOptions,
    corpus: Dataset,
    scores: OutOfFold | None,
    remote: RemoteTraining | None,
    reporter: Reporter,
) -> tuple[Labeled, Callable[[Scorer], Calibrated | None]]:
    """Return the documents to train on, and what makes the calibration of the trained weights.

    The hinge loss is calibrated by scores out of fold, or by documents that are left out, which
    trees always do; on a cluster, by the held-out documents.
    """
    data, multilabel, classes = corpus.data, corpus.multilabel, len(corpus.classes)
    if options.loss != "hinge":
        return data, lambda _: None
    counts = np.bincount(data.instances()[1], minlength=classes) if multilabel else None
    left_out, by = corpus.holdout, None
    if options.objective == "tree":
        by = Calibrated(by=PLAIN if multilabel else PLAIN._replace(kind="normalized"))
        data, left_out = _with_left_out(data, options.seed)
    elif remote is None:
        data, left_out, by = calibration_data(
            data, classes, options, reporter, counts, scores=scores
        )

    def calibration(weights: Scorer) -> Calibrated | None:
        found = by
        if left_out is not None:
            found = calibration_on(weights, left_out, options, counts)
        if found is not None:
            found.adjust(weights)
        return found

    return data, calibration


def _with_left_out(data: Labeled, seed: int) -> tuple[Labeled, Labeled | None]:
    """Return documents to train trees on, and others for their calibration."""
    order = np.random.default_rng(seed).permutation(len(data.labels))
    if len(order) < MIN_COMPARED:
        return data, None
    count = left_out_of(len(order))
    return data.some(np.sort(order[count:])), data.some(np.sort(order[:count]))


def _saved(
    job: TrainJob,
    model: Classifier,
    corpus: Dataset,
    calibration: Calibrated | None,
    remote: RemoteTraining | None,
    reporter: Reporter,
) -> Classifier:
    """Complete a trained model, report its held-out measures, and save and return it."""
    if calibration is not None:
        model.calibration = calibration.by
        model.threshold = calibration.threshold if model.multilabel else model.threshold
    patience, holdout = model.options.patience, corpus.holdout
    if job.compress is not None:
        try:
            model, holdout = job.compress(model, corpus.data, holdout, reporter, job.max_bytes)
        except UsageError as error:  # the training shall not be lost
            whole = Result(job.output + PARTIAL, "model", model.save)
            write_with_fallback([whole])
            raise UsageError(f"{error.message}; the whole model is in {whole.path}") from None
    found = {} if holdout is None else measured(model, holdout)
    if holdout is not None:
        chose = {
            "the epoch": patience, "the size of levels": job.max_bytes,
            "the calibration": remote and model.calibration,
        }  # fmt: skip
        own = [name for name, value in chose.items() if value is not None]
        reporter.message(held_out_line(found, len(holdout.labels), own))
    if job.output:
        write_with_fallback([Result(job.output, "model", model.save)])
        reporter.message(f"model: {job.output}")
    model.record["heldout"] = found  # not in the file, whose bytes may be limited
    return model


def _resources(job: TrainJob, options: ClassifyOptions, sets: "FeatureSets") -> dict[str, Any]:
    """Return the resources that training requires, with the most features."""
    corpus = max(map(sets.under, sets.settings), key=lambda one: one.matrix.shape[1])
    classes = len(corpus.classes)
    options = resolved(options, classes, corpus.multilabel)
    return resource_estimate(corpus.matrix, corpus.labels, classes, options)


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
        described = (
            f"{documents:,} documents of {classes:,} classes in {', '.join(map(str, job.docs[:3]))}"
        )
        super().__init__(
            data, classes, options, corpus.holdout, corpus.multilabel,
            {**asdict(features), "class_weight": job.class_weight}, described, remote,
        )  # fmt: skip

    def current_model(self) -> Classifier:
        """Return the classifier so far."""
        corpus = self._corpus
        record = {
            "documents": len(corpus.labels), "labels": corpus.counts, COLUMNS: corpus.columns,
            "epochs": self.records,
        }  # fmt: skip
        if corpus.class_weight is not None:
            record["class_weight"] = corpus.class_weight
        own = (corpus.classes, corpus.text, self.resolved, self.multilabel)
        return Classifier(*own, record=record, weights=self.scorer)

    def save_partial(self) -> str | None:
        """Save the classifier so far beside the output."""
        if not self.records and (self._remote or self.resolved.learner == "tree"):
            return None  # the weights are on the workers, or in nodes
        result = Result(self._job.output + PARTIAL, "model", self.current_model().save)
        write_with_fallback([result])
        return f"the model so far is in {result.path}"


class FeatureSets:
    """The same documents under several settings of their features, if their texts are kept.

    Parameters
    ----------
    corpus : Dataset
        With the default features.
    given : FeatureOptions
        As given.
    tuned : bool
        Whether pairs of all words are compared, too.

    Attributes
    ----------
    settings : list of dict
        What is compared; few documents have single words first, or n-grams of characters.
    """

    def __init__(self, corpus: Dataset, given: FeatureOptions, tuned: bool) -> None:
        self._corpus, self._options = corpus, given.with_lead()
        self._found: dict[tuple[Any, ...], Dataset] = {}
        self.settings: list[Setting] = [{}]
        self._simple: Setting | None = None
        if not corpus.texts:
            return
        few, lead = len(corpus.labels) < FEW, self._options.lead_ngrams
        pairs: Setting = {"lead_ngrams": lead}
        pairs |= {"subwords": NO_SUBWORDS} if given.subwords is None else {}
        self.settings = [pairs]
        if given.lead_ngrams is None and lead != 1:
            words = {**pairs, "lead_ngrams": 1}
            self.settings = [words, pairs] if few else [pairs, words]
            self._simple = None if few else words
        if given.subwords is None:
            own = {**pairs, "subwords": SUBWORDS}
            first = few and corpus.has_short_texts
            self.settings = [own, *self.settings] if first else [*self.settings, own]
        if tuned:
            self.settings.append({**pairs, "ngrams": 2})

    def under(self, setting: Setting) -> Dataset:
        """Return the training documents under a setting, which may have other names as well."""
        own = {k: v for k, v in setting.items() if k in ("ngrams", "lead_ngrams", "subwords")}
        options = replace(self._options, **own)
        text, key = self._corpus.text, tuple(sorted(own.items()))
        if not own or (text is not None and options.resolved() == text.options):
            return self._corpus
        if key not in self._found:
            most = options.features_of(len(self._corpus.classes))
            self._found[key] = self._corpus.with_features(options, most)
        return self._found[key]

    def problem(self, options: ClassifyOptions) -> Problem:
        """Return the problem of choosing settings."""
        data = self._corpus.data
        return Problem(
            data.labels, len(self._corpus.classes), options, lambda one: self.under(one).matrix,
            self.settings, data.weights, self._corpus.groups, self._simple,
        )  # fmt: skip


def _read_documents(
    job: TrainJob,
    given: FeatureOptions,
    options: ClassifyOptions,
    reporter: Reporter,
    chooses: bool = True,
) -> Dataset:
    """Read the documents and report their number; their texts are kept if features are compared."""
    reporter.stage("reading", None, "documents")
    features, is_open = given.with_lead(), given.ngrams is None and given.hashing is None
    text = None if are_vectors(job.docs) else TextFeatures(features)
    is_pairs = given.ngrams is not None or given.lead_ngrams is not None
    keep = KEPT_BYTES if job.tune.tune is None else math.inf
    read = read_documents(
        job.docs, job.labels, text, job.holdout, options.seed,
        most=lambda count: (features.features_of(count), is_pairs or count <= TABLE_CLASSES),
        keep=keep if chooses and is_open and features.by == "document" else 0,
    )  # fmt: skip
    read.class_weight = job.class_weight
    check_held_out(job.holdout, read, read.classes)
    job.check_classes(read.classes)
    warn_of_short_rows(read.matrix, options.bias)
    if text is not None and text.is_by_token:
        text.tag_pairs = sequences.tag_pairs(read.labels, read.is_first, read.classes)
    reporter.message(corpus_line(read, read.classes, " left out"))
    return read


def _chosen(
    job: TrainJob,
    options: ClassifyOptions,
    sets: FeatureSets,
    reporter: Reporter,
    received: ReceivedSignal,
) -> Choice | None:
    """Choose settings by held-out documents; tags of tokens are chosen by --tune only."""
    corpus = sets.under({})
    if job.tune.tune is None and corpus.text is not None and corpus.text.is_by_token:
        return None
    found = choose(sets.problem(options), job.tune.tune, reporter, received)
    if found is not None:
        reporter.message(f"settings: {found.line}")
        columns = sets.under(found.setting).matrix.shape[1]
        if columns != corpus.matrix.shape[1]:
            reporter.message(f"{columns:,} features with these")
    return found


def _check_learner(job: TrainJob, options: ClassifyOptions, remote: RemoteTraining | None) -> None:
    """Raise if something excludes what learns: the one list of what learners do not do."""
    kept, tuned = job.checkpoints, job.tune.tune
    given = {
        "--checkpoint": kept.checkpoint, "--resume": kept.resume, "--cluster": remote,
        "--tune": tuned, "--max-bytes": job.max_bytes, "--class-weight": job.class_weight,
    }  # fmt: skip
    resumed = ("--checkpoint", "--resume")
    for what, applies, excluded, remedy in (
        ("trees of labels (--objective tree)", options.objective == "tree", given,
         "omit it, or give --loss hinge"),
        ("--solver lbfgs", options.solver == "lbfgs", resumed, "omit it, or give --solver sgd"),
        ("--tune", tuned is not None, (*resumed, "--cluster"),
         "choose settings without it first, and give what was chosen"),
    ):  # fmt: skip
        flags = [flag for flag in excluded if applies and given[flag] is not None]
        if flags:
            raise UsageError(f"{flags[0]}: is not supported with {what}; {remedy}")


def _objective_line(given: ClassifyOptions, options: ClassifyOptions, classes: int) -> str:
    chosen = options.objective
    if chosen == "tree":
        chosen = f"{TREES} trees of labels"
    elif options.loss != given.loss and options.loss == "hinge":
        return f"several labels a document: --loss hinge, for {classes:,} classes"
    if chosen == "dcme" and options.dcme_update == "robust":
        chosen += f" with {options.clusters} clusters"
    return f"--objective auto: {chosen}, for {classes:,} classes"

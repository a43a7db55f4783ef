"""Implement the command ``classify train``, which trains a classifier on files and saves it."""

import contextlib
import math
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from dcme_w2v.declarations import filled
from dcme_w2v.errors import UsageError, warn
from dcme_w2v.files.paths import PARTIAL
from dcme_w2v.files.space import write_with_fallback
from dcme_w2v.formats.artifact import check_model_target
from dcme_w2v.formats.corpus import check_file
from dcme_w2v.options import CheckpointOptions, HoldoutOptions
from dcme_w2v.platform import PathLike, ReceivedSignal
from dcme_w2v.training.checkpoint_folder import find_checkpoint, open_folder
from dcme_w2v.training.progress import ProgressLike, Reporter, reporting_to

from . import sequences
from .calibration import Calibration
from .choose import Problem, Setting, flags_of
from .constants import KEPT_BYTES, TABLE_CLASSES
from .continued import Continued
from .dataset import Dataset, DocumentsJob, are_vectors, check_held_out, corpus_line
from .dataset import read as read_documents
from .features import TextFeatures
from .fit import Fitted, Job, RemoteTraining, SgdTask, fit_linear, resource_estimate
from .labeled import Labeled
from .model import COLUMNS, KIND, NONE, THRESHOLD, Classifier, Predictor
from .options import NO_SUBWORDS, TREES, ClassifyOptions, FeatureOptions, TuneOptions, resolved
from .predict import held_out_line, measured
from .small import compressed
from .trainer import warn_of_short_rows

# A resumed run takes these settings from its checkpoint.
OF_RUN = ("threads", "loss", "solver", "lr", "min_lr", "epochs", "l2", "batch", "bias")


@dataclass(frozen=True)
class TrainJob(DocumentsJob):
    """The inputs, outputs and options of ``classify train``.

    Attributes
    ----------
    holdout : HoldoutOptions
        The held-out documents: a share of the documents, or a file.
    tune : TuneOptions
        Whether to search for settings.
    checkpoints : CheckpointOptions
        Folder and interval of checkpoints, and the folder to resume from, which is also the default
        folder.
    max_bytes : int, optional
        Maximum size of the model file in bytes.
    class_weight : mapping, "balanced" or None
        Weights of documents by label; see `dcme_w2v.classify.labeled.class_weights`.
    init : path or Predictor, optional
        A trained model whose training continues on these documents.
    fade : float
        The share of that model that is forgotten, see `ContinueOptions`.
    label_kind : str, optional
        The Python type of labels, see `Predictor` (default: as in `init`, or text).
    """

    holdout: HoldoutOptions = field(default_factory=HoldoutOptions)
    tune: TuneOptions = field(default_factory=TuneOptions)
    checkpoints: CheckpointOptions = field(default_factory=CheckpointOptions)
    max_bytes: int | None = None
    class_weight: Mapping[str, float] | str | None = None
    init: PathLike | Predictor | None = None
    fade: float = 0.0
    label_kind: str | None = None


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
    """Train a classifier on files or on texts in memory, and save it.

    Parameters
    ----------
    job : TrainJob
        Inputs and outputs; if the output is empty, nothing is saved.
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
        Whether to stop after reading the documents.

    Returns
    -------
    Classifier, or dict for a dry run
        The `record` of the classifier has the counts, the epochs and, as "heldout", the measures.
        The dict has the resources of `dcme_w2v.classify.fit.resource_estimate`; its entry "refused"
        is the error if there is not enough memory.

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
    before = None if job.init is None else Continued(job.init, job.fade)
    if before is not None:
        options, features = before.settings(options, features)
    start = time.monotonic()
    found = find_checkpoint(job.checkpoints, SgdTask.kind)
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
        corpus = _read_documents(job, features, options, reporter, remote is None, before)
        sets = FeatureSets(corpus, features)
        if dry_run:
            most = max(map(sets.under, sets.settings), key=lambda one: one.matrix.shape[1])
            return _plan(job, options, most, remote)
        received = stack.enter_context(signals or contextlib.nullcontext(ReceivedSignal()))
        # Report invalid options and lack of memory before the search for settings starts.
        if refused := _plan(job, options, corpus, remote)["refused"]:
            raise refused
        by_token = corpus.text is not None and corpus.text.is_by_token
        models = _Models(job, sets, remote, before)
        work = Job(
            reporter, received, job.tune.tune,
            # for token classification, settings are chosen only with --tune
            chooses=before is None and (bool(job.tune.tune) or not by_token),
            calibrates=before is None, start=None if before is None else before.start(corpus),
            holdout=lambda setting: sets.under(setting).with_held().holdout,
            begin=lambda setting, chosen: models.begin(setting, chosen, reporter),
            partial=models.save_partial, checkpoints=job.checkpoints, folder=folder, found=found,
            recorded=lambda: models.options_of(features) | {"class_weight": job.class_weight},
            described=f"{len(corpus.labels):,} documents of {len(corpus.classes):,} classes in "
            + ", ".join(map(str, job.docs[:3])),
            remote=remote,
        )  # fmt: skip
        trained = _trained(job, models, sets.problem(options), work, time.monotonic() - start)
        return _saved(job, *trained, reporter)


def _check(job: TrainJob, options: ClassifyOptions, remote: RemoteTraining | None) -> None:
    """Raise an error if options conflict or the output is invalid, before any input is read."""
    if job.output:
        check_model_target(job.output, KIND)
    if job.holdout.file is not None:
        check_file(job.holdout.file, job.docs)
    if options.patience is not None and job.holdout.holdout is None:
        raise UsageError("--patience requires held-out documents; add --holdout")
    _check_learner(job, options, remote)


def _plan(
    job: TrainJob, given: ClassifyOptions, corpus: Dataset, remote: RemoteTraining | None
) -> dict[str, Any]:
    """Check that the learner supports the options, and estimate the resources for training."""
    classes = len(corpus.classes)
    options = resolved(given, classes, corpus.multilabel)
    _check_learner(job, options, remote)
    return resource_estimate(corpus.matrix, corpus.labels, classes, options)


def _trained(
    job: TrainJob, models: "_Models", problem: Problem, work: Job, read_seconds: float
) -> tuple[Classifier, Labeled | None, list[str]]:
    """Return a trained model, its held-out documents, and the names of the chosen settings.

    A `KeyboardInterrupt` gets the current model as its attribute `partial`. The table of all
    weights is freed, because the next steps may take as much memory.
    """
    try:
        fitted = fit_linear(problem, work)
    except KeyboardInterrupt as error:
        if isinstance(partial := getattr(error, "partial", None), Fitted):
            error.partial = models.model(partial)  # type: ignore[attr-defined]
        raise
    corpus = models.corpus
    if models.before is not None and work.start is not None:
        models.before.calibrate(fitted, work.start, corpus, work.reporter)
    model = models.model(fitted)
    model.record["read_seconds"] = round(read_seconds, 3)
    model.record["train_seconds"] = round(fitted.seconds, 3)
    cluster = fitted.cluster or {}
    chose = {
        "the epoch": fitted.options.patience is not None,
        "the number of levels": job.max_bytes is not None,
        "the calibration": bool(cluster) and model.calibration != Calibration(),
        "the scale of the scores": "score_factor" in cluster,
    }  # fmt: skip
    names = [name for name, is_so in chose.items() if is_so]
    if job.tune.tune == 0 and not job.output:
        return model, corpus.holdout, names  # the model is not saved, so skip slow compression
    try:
        own = (model, corpus.data, corpus.holdout, work.reporter, job.max_bytes)
        return *compressed(*own), names
    except UsageError as error:  # if compression fails, save the trained model uncompressed
        path = job.output + PARTIAL
        write_with_fallback((path, "model", model.save))
        raise UsageError(f"{error.message}; the uncompressed model was saved as {path}") from None


def _saved(
    job: TrainJob, model: Classifier, holdout: Labeled | None, chose: list[str], reporter: Reporter
) -> Classifier:
    """Save and return a trained model, and report its held-out measures."""
    found = {} if holdout is None else measured(model, holdout)
    if holdout is not None:
        reporter.message(held_out_line(found, len(holdout.labels), chose))
    if job.output:
        write_with_fallback((job.output, "model", model.save))
        reporter.message(f"model: {job.output}")
    # The model file omits the held-out measures, because its size may be limited.
    model.record["heldout"] = found
    return model


class _Models:
    """A factory that creates models from fitted weights and the chosen features."""

    def __init__(
        self,
        job: TrainJob,
        sets: "FeatureSets",
        remote: RemoteTraining | None,
        before: Continued | None,
    ) -> None:
        self._job, self._sets, self._remote, self.before = job, sets, remote, before
        self.corpus = sets.under({})

    def begin(self, setting: Setting, options: ClassifyOptions, reporter: Reporter) -> None:
        """Store the chosen features; raise an error if they need too much memory."""
        columns = self.corpus.matrix.shape[1]
        self.corpus = self._sets.under(setting).with_held()
        if self.corpus.matrix.shape[1] != columns:
            reporter.message(
                f"{self.corpus.matrix.shape[1]:,} features are used with the chosen settings"
            )
        if refused := _plan(self._job, options, self.corpus, self._remote)["refused"]:
            raise refused
        names = ["loss", *SHOWN[options.learner], "epochs", "l2", "bias"]
        names += ["clusters"] if options.objective == "dcme" else []
        shown, text = {name: getattr(options, name) for name in names}, self.corpus.text
        if text is not None and not text.is_by_token:
            names = ["ngrams", "lead", "lead_ngrams", "subwords"]
            shown |= {name: getattr(text.options, name) for name in names}
        trees = f" {TREES} label trees," if options.learner == "tree" else ""
        count = len(self.corpus.classes)
        reporter.message(f"training:{trees} {flags_of(shown)}, for {count:,} classes")
        if self.corpus.none and (options.loss != "hinge" or options.objective == "tree"):
            warn(
                f"{self.corpus.none:,} documents have no label and are ignored; to train on them "
                "as well, use --loss hinge"
            )

    def options_of(self, features: FeatureOptions) -> dict[str, Any]:
        """Return the chosen feature options, or the user's options if the input is not text."""
        text = self.corpus.text
        return asdict(features.with_lead() if text is None else text.options)

    def model(self, fitted: Fitted) -> Classifier:
        """Create a model from fitted weights."""
        corpus = self.corpus
        record = {
            "documents": len(corpus.labels), "labels": corpus.counts, COLUMNS: corpus.columns,
            "epochs": fitted.records, NONE: corpus.none,
        }  # fmt: skip
        if corpus.class_weight is not None:
            record["class_weight"] = corpus.class_weight
        if fitted.choice is not None:
            record["choice"] = fitted.choice.record
        if fitted.cluster is not None:
            record["cluster"] = fitted.cluster
        if self.before is not None:
            record = self.before.added(record)
        threshold = THRESHOLD if fitted.threshold is None else fitted.threshold
        own = (corpus.classes, corpus.text, fitted.options, corpus.multilabel, threshold, record)
        before = self.before
        kind = self._job.label_kind or (before.model.label_kind if before else "text")
        return Classifier(*own, fitted.calibration, kind, weights=fitted.scorer)

    def save_partial(self, fitted: Fitted) -> str:
        """Save the unfinished classifier in a file beside the output."""
        path = self._job.output + PARTIAL
        write_with_fallback((path, "model", self.model(fitted).save))
        return f"the model so far is in {path}"


class FeatureSets:
    """Documents that can be converted to rows with different feature settings.

    Parameters
    ----------
    corpus : Dataset
        The documents with the default features.
    given : FeatureOptions
        The feature options as given.

    Attributes
    ----------
    settings : list of dict
        The feature settings that are compared: single words, and words plus word pairs.
    """

    def __init__(self, corpus: Dataset, given: FeatureOptions) -> None:
        self._corpus, self._options = corpus, given.with_lead()
        self._found: dict[tuple[Any, ...], Dataset] = {}
        self.settings: list[Setting] = [{}]
        text = corpus.text
        if text is None or not text.keeps_counts:
            return
        pairs: Setting = {"lead_ngrams": self._options.lead_ngrams}
        if given.subwords is None:
            pairs["subwords"] = text.options.subwords
        self.settings = [pairs]
        if given.lead_ngrams is None and text.options.lead_ngrams != 1:
            self.settings.insert(0, {**pairs, "lead_ngrams": 1})
        if corpus.texts:
            self.settings.append({**pairs, "ngrams": 2})

    def under(self, setting: Setting) -> Dataset:
        """Return the training documents as rows of the features that a setting specifies."""
        own = {k: v for k, v in setting.items() if k in ("ngrams", "lead_ngrams", "subwords")}
        options = replace(self._options, **own)
        text, key = self._corpus.text, tuple(sorted(own.items()))
        if not own or (text is not None and options.resolved() == text.options):
            return self._corpus
        if key not in self._found:
            self._found[key] = self._corpus.with_features(options)
        return self._found[key]

    def problem(self, options: ClassifyOptions) -> Problem:
        """Return the classification problem that the search for settings solves."""
        corpus, text = self._corpus, self._corpus.text
        return Problem(
            corpus.data, len(corpus.classes), options, corpus.multilabel, self.settings,
            lambda one: self.under(one).data.matrix,
            text is not None and (text.options.hashing, text.options.norm) == (None, "l2"),
            None if text is None else lambda one: self._text(one).is_subword,
        )  # fmt: skip

    def _text(self, setting: Setting) -> TextFeatures:
        """Return the text features that a setting specifies."""
        text = self.under(setting).text
        assert text is not None
        return text


def _read_documents(
    job: TrainJob,
    given: FeatureOptions,
    options: ClassifyOptions,
    reporter: Reporter,
    chooses: bool = True,
    before: Continued | None = None,
) -> Dataset:
    """Read the documents; keep counts or texts in memory if feature settings will be compared."""
    reporter.stage("reading", None, "documents")
    features, is_open = given.with_lead(), given.ngrams is None and given.hashing is None
    chooses = chooses and is_open and before is None and job.tune.tune != 0
    room = (math.inf if job.tune.tune else KEPT_BYTES) if chooses else 0
    text = None if are_vectors(job.docs) else TextFeatures(features, room)
    text = text if before is None else before.features(features, text)
    is_pairs = given.ngrams is not None or given.lead_ngrams is not None
    read = read_documents(
        job.docs, job.labels, text, job.holdout, options.seed,
        most=lambda count: (features.features_of(count), is_pairs or count <= TABLE_CLASSES),
        keep=room if job.tune.tune and features.by == "document" else 0,
        takes_none=True,
    )  # fmt: skip
    read = read if before is None else before.joined(read, job.label_kind)
    read.class_weight = job.class_weight
    check_held_out(job.holdout, read, read.classes)
    job.check_classes(read.classes)
    warn_of_short_rows(read.matrix, options.bias)
    if text is not None and text.is_by_token:
        text.tag_pairs = sequences.tag_pairs(read.labels, read.is_first, read.classes)
    reporter.message(corpus_line(read, read.classes, " left out"))
    return read


def _check_learner(job: TrainJob, options: ClassifyOptions, remote: RemoteTraining | None) -> None:
    """Raise an error if a learner does not support one of the user's options."""
    kept, tuned = job.checkpoints, job.tune.tune or None
    given = {
        "--checkpoint": kept.checkpoint, "--resume": kept.resume, "--cluster": remote,
        "--tune": tuned, "--max-bytes": job.max_bytes, "--init": job.init,
    }  # fmt: skip
    resumed = ("--checkpoint", "--resume")
    searched = (*resumed, "--cluster", "--tune")
    for what, applies, excluded, remedy in (
        ("label trees (--objective tree)", options.objective == "tree", given,
         "omit {}, or use --loss hinge"),
        ("--solver lbfgs", options.solver == "lbfgs", resumed,
         "omit {}, or use --solver sgd"),
        ("--init, which takes the settings of its "
            "model", job.init is not None, searched, "omit {}"),
        ("--tune", tuned is not None, (*resumed, "--cluster"),
         "first run --tune without {}, and then pass the settings that --tune chose"),
    ):  # fmt: skip
        flags = [flag for flag in excluded if applies and given[flag] is not None]
        if flags:
            flag = flags[0]
            raise UsageError(f"{flag} is not supported with {what}; {remedy.format(flag)}")


SHOWN = {"sgd": ("solver", "objective", "lr"), "dual": ("solver",), "lbfgs": ("solver",),
         "tree": ("objective", "lr")}  # fmt: skip

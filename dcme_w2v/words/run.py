"""Trains word vectors: from text to vectors, vocabulary and manifest; the command ``train``."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dcme_w2v.errors import CorpusError
from dcme_w2v.files.atomic import is_stream
from dcme_w2v.files.disk import Result, write_with_fallback
from dcme_w2v.files.paths import PARTIAL
from dcme_w2v.formats.artifact import words_arrays
from dcme_w2v.formats.vectors.fasttext import save_model
from dcme_w2v.formats.vectors.manifest import manifest_of, sidecars_of
from dcme_w2v.formats.vectors.subwords import WordNgrams
from dcme_w2v.formats.vectors.vectors_io import CombinedRows, Matrix, format_of, save_vectors
from dcme_w2v.formats.vocabulary import Vocabulary
from dcme_w2v.numeric.arrays import F32, Array
from dcme_w2v.options import HoldoutOptions
from dcme_w2v.text.encode import EncodedCorpus, encode
from dcme_w2v.text.select_vocabulary import Given
from dcme_w2v.text.split import HeldOutLines, check_file
from dcme_w2v.text.tokenizer import Tokenizer
from dcme_w2v.training.checkpoint_folder import Checkpoint, find_checkpoint, open_folder
from dcme_w2v.training.interrupts import ReceivedSignal
from dcme_w2v.training.progress import Reporter
from dcme_w2v.training.run import Checkpointer, interruptible, run_epochs
from dcme_w2v.training.trainer import Fingerprint, Progress, TrainingRun, hash_of

from .classes import check_classes, save_classes, word_classes
from .defaults import has_context, resolved, vectors_of
from .heldout import HeldOut, prepared
from .job import TrainJob, counts_path, paths_of
from .options import ClassesOptions, OutputOptions, TrainOptions
from .resources import (
    corpus_line,
    plan_line,
    resource_estimate,
    resource_shortage,
    unk_line,
)
from .start import Initial, Trained, load_initial, start_from
from .tables import combine_in_place, save_tables
from .trainer import Trainer
from .vectors import Vectors


class Machine:
    """Where word vectors are trained: on this machine, or on a cluster by a subclass."""

    kind = "words"

    def encode(self, job: TrainJob, known: Given, reporter: Reporter) -> EncodedCorpus:
        """Read the corpus; `known` are words that the vocabulary has."""
        return encode(
            job.corpus if job.sentences is None else job.sentences,
            job.vocabulary,
            vocabulary=known,
            unk=job.new_words.unk,
            cache_dir=job.cache_dir,
            threads=job.options.threads or 1,
            reporter=reporter,
            holdout=None if job.fraction is None else HeldOutLines(job.fraction, job.options.seed),
        )

    def resolved(self, options: TrainOptions, words: int) -> TrainOptions:
        """Return the options with all defaults."""
        return resolved(options, words)

    def plan(
        self, job: TrainJob, corpus: EncodedCorpus, options: TrainOptions, ngrams: WordNgrams | None
    ) -> dict[str, Any]:
        """Return the resources of the training."""
        return resource_estimate(job, corpus, options, ngrams)

    def run(
        self,
        job: TrainJob,
        corpus: EncodedCorpus,
        options: TrainOptions,
        ngrams: WordNgrams | None,
        reporter: Reporter,
    ) -> WordsRun:
        """Return the training."""
        training = Trainer(corpus.ids, corpus.vocabulary.counts, options, ngrams=ngrams)
        return WordsRun(job, corpus, training, prepared(job, corpus, training, reporter))


def train(
    job: TrainJob,
    reporter: Reporter,
    signals: AbstractContextManager[ReceivedSignal] | None = None,
    machine: Machine | None = None,
) -> Vectors:
    """Train word vectors and write them.

    Parameters
    ----------
    job : TrainJob
        Inputs, outputs and options; an option that is None has a default of
        `dcme_w2v.words.defaults`. `cluster` is for `dcme_w2v.cluster.train`.
    reporter : Reporter
        Receives the progress.
    signals : context manager, optional
        Records signals while training. Without it, no handler is installed.
    machine : Machine, optional
        Where to train, by default on this machine.

    Returns
    -------
    Vectors
        With counts, context vectors and the manifest, see `dcme_w2v.formats.vectors.manifest`.

    Raises
    ------
    UsageError, CorpusError, ResourceError
        Options are inconsistent; the corpus cannot be read, or has no token to train on; there is
        not enough memory or disk space, or a file cannot be written.
    DivergedError
        A parameter is NaN or infinite.
    Interrupted
        A signal arrived; the state or the result so far is saved, see `dcme_w2v.training.run`.
    KeyboardInterrupt
        While training; its attribute `partial` is the `Vectors` so far.
    """
    start, machine = time.monotonic(), machine or Machine()
    job, found = _resolved(job, machine)
    initial = _initial(job, found)
    with (
        open_folder(job.checkpoints) as folder,
        _encoded(job, reporter, initial, machine) as corpus,
    ):
        words = corpus.vocabulary
        options, ngrams, plan = _planned(job, corpus, machine)
        begin(job, plan, words, reporter)
        run = machine.run(job, corpus, options, ngrams, reporter)
        checkpointer = Checkpointer(run, reporter, folder, job.checkpoints, found)
        if found is None and initial is not None:
            start_from(initial, job.init_context, run.training, words)
        del initial
        with interruptible(run, signals) as received:
            last = run_epochs(run, checkpointer, reporter, received)
            check_trained(last)
            seconds = checkpointer.position.seconds, time.monotonic() - start
            more = run.final_figures()
            manifest = manifest_for(job, corpus, run.training, last, *seconds, more)
            save_results(job, run.training, corpus, checkpointer, manifest=manifest)
        return as_vectors(job, run.training, words, manifest)


def dry_run(job: TrainJob, reporter: Reporter, machine: Machine | None = None) -> dict[str, Any]:
    """Read the corpus and return the resources that training requires; see `train`.

    Returns
    -------
    dict
        See `dcme_w2v.words.resources.resource_estimate`; "refused" is the error if they are not
        available.
    """
    machine = machine or Machine()
    job, found = _resolved(job, machine)
    with _encoded(job, reporter, _initial(job, found), machine) as corpus:
        _, _, plan = _planned(job, corpus, machine)
        return {**plan, "refused": resource_shortage(plan)}


def _planned(
    job: TrainJob, corpus: EncodedCorpus, machine: Machine
) -> tuple[TrainOptions, WordNgrams | None, dict[str, Any]]:
    """Return the resolved options, the n-grams and the resources of a run."""
    options = machine.resolved(job.options, len(corpus.vocabulary))
    ngrams = WordNgrams.of_words(job.subwords, corpus.vocabulary)
    return options, ngrams, machine.plan(job, corpus, options, ngrams)


def begin(job: TrainJob, plan: dict[str, Any], words: Vocabulary, reporter: Reporter) -> None:
    """Report the resources, or raise if they are not there; save the vocabulary."""
    if shortage := resource_shortage(plan):
        raise shortage
    reporter.message(plan_line(plan))
    if job.save_vocab:
        words.save(job.save_vocab)


def check_trained(progress: Progress) -> None:
    """Raise if no token was trained on."""
    if progress.trained:
        return
    raise CorpusError(
        f"no token was trained: {progress.subsampled:,} were dropped by subsampling (raise "
        f"--sample, or give --sample=0) and {progress.without_context:,} have no context in their "
        "line (lower --min-count, or give longer lines)"
    )


def as_vectors(
    job: TrainJob,
    training: Trained,
    vocabulary: Vocabulary,
    manifest: dict[str, Any] | None = None,
) -> Vectors:
    """Return the word vectors with the context vectors; ends the training."""
    assert job.vectors is not None
    counts = vocabulary.counts
    context = None
    if has_context(training.options):
        context = Vectors(vocabulary, training.output, counts)
    subwords = training.subwords
    if subwords is None:
        matrix = combine_in_place(training.input, training.output, job.vectors)
    else:
        matrix = subwords.vectors_of(vocabulary, training.input)
    return Vectors(
        vocabulary, matrix, counts, context=context, manifest=manifest, subwords=subwords
    )


def with_counts(job: TrainJob) -> TrainJob:
    """Also save the vocabulary if both tables are saved without counts."""
    path = counts_path(job)
    return job if path is None else dataclasses.replace(job, save_vocab=path)


def _resolved(job: TrainJob, machine: Machine) -> tuple[TrainJob, Checkpoint | None]:
    """Check files and options; some default to the values of the checkpoint."""
    paths_of(job).check()
    job, options = with_counts(job), job.options
    found = find_checkpoint(job.checkpoints, machine.kind)
    if found is not None:
        options = found.with_run_values(options, "threads", "sample", "lr", "min_lr")
    checked = resolved(options)
    vectors = "input"
    if job.subwords.subwords is None:
        vectors = vectors_of(job.vectors, options, job.output_context)
    if found is not None:
        found.check_options(_named(job, checked), _free(checked))
    options = dataclasses.replace(options, threads=checked.threads)
    check_file(job, job.corpus)
    return dataclasses.replace(job, vectors=vectors, options=options), found


def _initial(job: TrainJob, found: Checkpoint | None) -> Initial | None:
    """Return the vectors to start from, or whose words a resumed run has."""
    if job.init is None or (found is not None and job.new_words.init_vocab == "new"):
        return None
    return load_initial(job.init, "--init")


def _encoded(
    job: TrainJob, reporter: Reporter, initial: Initial | None, machine: Machine
) -> EncodedCorpus:
    """Read the corpus and report its size."""
    known: Given = None if initial is None else initial.words(job.new_words.init_vocab)
    if job.read_vocab is not None:
        given = job.read_vocab
        known = given if isinstance(given, Vocabulary) else Vocabulary.load(given)
    corpus = machine.encode(job, known, reporter)
    report_corpus(job, corpus, reporter)
    return corpus


def report_corpus(job: TrainJob, corpus: EncodedCorpus, reporter: Reporter) -> None:
    """Report the size of a corpus; raise if it has fewer words than classes are wanted."""
    reporter.message(corpus_line(corpus))
    check_classes(job.classes, len(corpus.vocabulary))
    if job.new_words.unk is not None:
        reporter.message(unk_line(corpus, job.new_words.unk))
    for place in corpus.truncated:
        reporter.message(f"warning: {place}: read up to there")


def manifest_for(
    job: TrainJob,
    corpus: EncodedCorpus,
    training: Trained,
    last: Progress,
    train_seconds: float,
    total_seconds: float,
    more: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the manifest of a run, with `more` keys."""
    output = OutputOptions(
        job.format or (None if job.output is None else format_of(job.output)), job.vectors
    )
    epochs = training.options.epochs
    return manifest_of(
        options=(
            job.vocabulary,
            training.options,
            job.subwords,
            job.new_words,
            HoldoutOptions(job.holdout),
            output,
            ClassesOptions(job.classes),
        ),
        corpus=[(file["path"], file["size"]) for file in corpus.files],
        vocabulary=len(corpus.vocabulary),
        tokens={
            "corpus": corpus.tokens,
            "trained": last.trained,
            "out_of_vocabulary": corpus.out_of_vocabulary * epochs,
            "subsampled": last.subsampled,
            "without_context": last.without_context,
            "held_out": corpus.held_out_tokens * epochs,
        },
        seconds={"count": corpus.seconds, "train": train_seconds, "total": total_seconds},
        loss=last.loss if np.isfinite(last.loss) else None,
        kernels=training.kernels,
        unk_tokens=corpus.unk_tokens,
        **Tokenizer(job.vocabulary).entry(),
        **more,
    )


class WordsRun(TrainingRun):
    """Training of word vectors, for the run engine."""

    kind, unit = "words", "words"

    def __init__(
        self,
        job: TrainJob,
        corpus: EncodedCorpus,
        training: Any,
        held_out: HeldOut | None,
    ) -> None:
        options = training.options
        super().__init__(training, _named(job, options), corpus.tokens * options.epochs)
        self.free = _free(options)
        self.training: Trained = training
        self._job, self._corpus, self._held_out = job, corpus, held_out

    def fingerprint(self) -> Fingerprint:
        """Return hashes of the ids and of the words."""
        corpus = self._corpus
        files = [str(file["path"]) for file in corpus.files]
        return fingerprint_of(hash_of([corpus.ids]), corpus.vocabulary, corpus.tokens, files)

    def done(self, progress: Progress) -> int:
        """Return the progress in tokens of the corpus."""
        # out-of-vocabulary tokens are not in the cache: counted in proportion
        return progress.done * self._corpus.tokens // len(self._corpus.ids)

    def scores(self) -> dict[str, float]:
        """Return the scores of the held-out text."""
        return self._held_out.score() if self._held_out else {}

    def final_figures(self) -> dict[str, Any]:
        """Return further figures for the manifest."""
        return self._held_out.figures or self._held_out.score() if self._held_out else {}

    def arrays(self) -> dict[str, Array]:
        """Return the vocabulary, with which the input table can be read as word vectors."""
        words = self._corpus.vocabulary
        return {**words_arrays(words), "counts": words.counts}

    def start_hint(self, checkpoint: Path) -> str:
        """Return that the vectors can be used as initial values."""
        return f", whose vectors --init={checkpoint} reads"

    def current_model(self) -> Vectors:
        """Return the vectors so far."""
        return as_vectors(self._job, self.training, self._corpus.vocabulary)

    def save_partial(self) -> str | None:
        """Save the vectors so far beside the outputs, except streams."""
        written = save_results(self._job, self.training, self._corpus, suffix=PARTIAL)
        return f"the vectors so far are in {' and '.join(written)}" if written else None


def fingerprint_of(ids: str, words: Vocabulary, tokens: int, files: Sequence[str]) -> Fingerprint:
    """Return hashes of a text, from the hash of its ids, and a description of the text."""
    vocabulary = hash_of((words.text, words.offsets, words.counts))
    described = f"{tokens:,} tokens and {len(words):,} words of {', '.join(files[:3])}"
    return Fingerprint({"ids": ids, "vocabulary": vocabulary}, described)


def _named(job: TrainJob, options: TrainOptions) -> dict[str, Any]:
    parts = (job.vocabulary, options, job.subwords, job.new_words)
    return {name: value for part in parts for name, value in dataclasses.asdict(part).items()}


def _free(options: TrainOptions) -> tuple[str, ...]:
    """Return the options that a resumed run may change."""
    return ("threads",) if options.deterministic else ()


def save_results(
    job: TrainJob,
    training: Trained,
    corpus: EncodedCorpus,
    checkpointer: Checkpointer | None = None,
    suffix: str = "",
    manifest: Mapping[str, Any] | None = None,
) -> list[str]:
    """Write the vectors and return the paths; with a suffix, streams are not written.

    The manifest is written beside `job.output`.

    If a file cannot be written, a checkpoint is saved, or see `dcme_w2v.files.disk`.
    """
    if manifest is not None:
        manifest = {**manifest, **sidecars_of(job.output, job.output_context, job.save_vocab)}
    words, options = corpus.vocabulary, training.options
    results = []

    def add(path: str | None, name: str, write: Callable[..., None], **content: Any) -> None:
        if path is not None and not (suffix and is_stream(path)):
            results.append(Result(path + suffix, name, partial(write, **content)))

    def add_vectors(path: str | None, name: str, rows: Matrix, **more: Any) -> None:
        format = job.format or format_of(path or "")
        add(path, name, save_vectors, words=words, matrix=rows, counts=words.counts,
            format=format, **more)  # fmt: skip

    assert job.vectors is not None
    ngrams = training.subwords
    matrix: F32 | CombinedRows = CombinedRows(training.input, training.output, job.vectors)
    if ngrams is not None:
        matrix = ngrams.vectors_of(words, training.input)
    if job.classes and not suffix:
        found = word_classes(
            matrix[: len(words)], job.classes, seed=options.seed, threads=options.threads
        )
        add(job.output, "classes", save_classes, words=words, classes=found, manifest=manifest)
    else:
        add_vectors(job.output, "vectors", matrix, manifest=manifest)
    add_vectors(job.output_context, "context", training.output)
    inputs = [training.input] if ngrams is None else [training.input, ngrams.rows]
    add(
        job.output_fasttext, "model", save_model, vocabulary=words, options=options,
        tables=(inputs, [training.output]), subwords=job.subwords, tokens=corpus.tokens,
    )  # fmt: skip
    if not suffix:
        add(
            job.output_tables, "tables", save_tables, vocabulary=words, input=training.input,
            output=training.output, neighbors=training.neighbors,
            options=dataclasses.asdict(options) | Tokenizer(job.vocabulary).entry(),
        )  # fmt: skip
    write_with_fallback(results, partial(_checkpoint, checkpointer))
    return [one.path for one in results]


def _checkpoint(checkpointer: Checkpointer | None) -> str | None:
    """Write a checkpoint, if there is a folder for them, and return a message."""
    saved = checkpointer.save() if checkpointer is not None else None
    if saved is None:
        return None
    return f"nothing is lost: free some space, and resume with --resume={saved.parent}"

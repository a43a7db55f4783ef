"""Trains word vectors: from text to vectors, vocabulary and manifest; the command ``train``."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dcme_w2v._core.text import format_counts
from dcme_w2v.errors import CorpusError
from dcme_w2v.files.atomic import is_stream
from dcme_w2v.files.fallback import Result, write_with_fallback
from dcme_w2v.files.paths import PARTIAL
from dcme_w2v.formats.vectors.combined import CombinedRows
from dcme_w2v.formats.vectors.fasttext_writer import save_model
from dcme_w2v.formats.vectors.manifest import (
    Seconds,
    TokenCounts,
    manifest_of,
    sidecars_of,
)
from dcme_w2v.formats.vectors.subwords import Subwords, WordNgrams
from dcme_w2v.formats.vectors.vectors_io import Matrix, format_of, save_vectors
from dcme_w2v.formats.vocabulary import Vocabulary
from dcme_w2v.options import (
    HoldoutOptions,
    OutputOptions,
    SubwordOptions,
    TrainOptions,
    VocabularyOptions,
)
from dcme_w2v.text.encode import EncodedCorpus, encode
from dcme_w2v.text.select_vocabulary import Given
from dcme_w2v.text.split import check_file
from dcme_w2v.text.tokenizer import Tokenizer
from dcme_w2v.training.checkpoint_folder import Checkpoint, find_checkpoint, open_folder
from dcme_w2v.training.checkpoint_schedule import Checkpointer
from dcme_w2v.training.interrupts import ReceivedSignal
from dcme_w2v.training.progress import Reporter
from dcme_w2v.training.run import interruptible, run_epochs
from dcme_w2v.training.trainer import Progress
from dcme_w2v.training.training_run import Fingerprint, TrainingRun, hash_of
from dcme_w2v.words.classes import check_classes, save_classes, word_classes
from dcme_w2v.words.defaults import has_context, resolved, vectors_of
from dcme_w2v.words.heldout import HeldOut, lines_of, prepared, scores_of
from dcme_w2v.words.job import (
    TrainJob,
    counts_path,
    paths_of,
)
from dcme_w2v.words.likelihood import Neighbours
from dcme_w2v.words.neighbour_classes import NeighbourClasses
from dcme_w2v.words.options import ClassesOptions
from dcme_w2v.words.resources import (
    corpus_line,
    plan_line,
    resource_estimate,
    resource_shortage,
    unk_line,
)
from dcme_w2v.words.start import Initial, load_initial, start_from
from dcme_w2v.words.tables import combine_in_place, save_tables
from dcme_w2v.words.trainer import Trainer
from dcme_w2v.words.vectors import Vectors


def train(
    job: TrainJob,
    vocabulary: VocabularyOptions,
    options: TrainOptions,
    reporter: Reporter,
    signals: AbstractContextManager[ReceivedSignal] | None = None,
) -> Vectors:
    """Train word vectors on this machine and write them.

    Parameters
    ----------
    job : TrainJob
        Inputs and outputs; `cluster` is for `dcme_w2v.cluster.train`.
    vocabulary : VocabularyOptions
        Options of the vocabulary.
    options : TrainOptions
        Options of the training; None: the default, see `dcme_w2v.words.defaults`.
    reporter : Reporter
        Receives the progress.
    signals : context manager, optional
        Records signals while training. Without it, no handler is installed.

    Returns
    -------
    Vectors
        With counts, context vectors and the manifest, see `dcme_w2v.formats.vectors.manifest`.

    Raises
    ------
    UsageError
        Options are inconsistent, or a file cannot be written.
    CorpusError
        The corpus cannot be read, or has no token to train on.
    ResourceError
        There is not enough memory or disk space.
    DivergedError
        A parameter is NaN or infinite.
    Interrupted
        A signal arrived; the state or the result so far is saved, see `dcme_w2v.training.run`.
    KeyboardInterrupt
        While training; its attribute `partial` is the `Vectors` so far.
    """
    start = time.monotonic()
    job, options, found = _resolved(job, vocabulary, options)
    holdout, initial = HoldoutOptions(job.holdout), _initial(job, found)
    with (
        open_folder(job.checkpoints) as folder,
        _encoded(job, vocabulary, options, reporter, initial) as corpus,
    ):
        options = resolved(options, len(corpus.vocabulary))
        ngrams = WordNgrams.of_words(job.subwords, corpus.vocabulary)
        plan = resource_estimate(job, corpus, options, ngrams)
        if shortage := resource_shortage(plan):
            raise shortage
        reporter.message(plan_line(plan))
        if job.save_vocab:
            corpus.vocabulary.save(job.save_vocab)
        training = Trainer(corpus.ids, corpus.vocabulary.counts, options, ngrams=ngrams)
        held_out = prepared(holdout, corpus, vocabulary, training, job.new_words.unk)
        if held_out is not None:
            reporter.message(held_out.line)
        run = WordsRun(job, vocabulary, corpus, training, held_out)
        checkpointer = Checkpointer(run, reporter, folder, job.checkpoints, found)
        if found is None and initial is not None:
            start_from(initial, job.init_context, training, corpus.vocabulary)
        del initial
        with interruptible(run, signals) as received:
            last = run_epochs(run, checkpointer, reporter, received)
            check_trained(last)
            trained = checkpointer.position.seconds
            seconds = Seconds(corpus.seconds, trained, time.monotonic() - start)
            manifest = manifest_for(job, vocabulary, corpus, training, last, seconds, held_out)
            save_results(job, training, corpus, checkpointer, manifest=manifest)
        return as_vectors(job, training, corpus.vocabulary, manifest)


def dry_run(
    job: TrainJob, vocabulary: VocabularyOptions, options: TrainOptions, reporter: Reporter
) -> dict[str, Any]:
    """Read the corpus and return the resources that training requires; see `train`.

    Returns
    -------
    dict
        See `dcme_w2v.words.resources.resource_estimate`; "refused" is the error if they are not
        available.
    """
    job, options, found = _resolved(job, vocabulary, options)
    with _encoded(job, vocabulary, options, reporter, _initial(job, found)) as corpus:
        ngrams = WordNgrams.of_words(job.subwords, corpus.vocabulary)
        plan = resource_estimate(job, corpus, resolved(options, len(corpus.vocabulary)), ngrams)
        return {**plan, "refused": resource_shortage(plan)}


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


def _resolved(
    job: TrainJob, vocabulary: VocabularyOptions, options: TrainOptions
) -> tuple[TrainJob, TrainOptions, Checkpoint | None]:
    """Check files and options; threads and sample default to the values of the checkpoint."""
    paths_of(job).check()
    job = with_counts(job)
    found = find_checkpoint(job.checkpoints, WordsRun.kind)
    if found is not None:
        options = found.with_run_values(options, "threads", "sample")
    checked = resolved(options)
    vectors = "input"
    if job.subwords.subwords is None:
        vectors = vectors_of(job.vectors, options, job.output_context)
    job = dataclasses.replace(job, vectors=vectors)
    if found is not None:
        found.check_options(_named(job, vocabulary, checked), _free(checked))
    options = dataclasses.replace(options, threads=checked.threads)
    check_file(HoldoutOptions(job.holdout), job.corpus)
    return job, options, found


def _initial(job: TrainJob, found: Checkpoint | None) -> Initial | None:
    """Return the vectors to start from, or whose words a resumed run has."""
    if job.init is None or (found is not None and job.new_words.init_vocab == "new"):
        return None
    return load_initial(job.init, "--init")


def _encoded(
    job: TrainJob,
    vocabulary: VocabularyOptions,
    options: TrainOptions,
    reporter: Reporter,
    initial: Initial | None,
) -> EncodedCorpus:
    """Read the corpus and report its size."""
    known: Given = None if initial is None else initial.words(job.new_words.init_vocab)
    if job.read_vocab is not None:
        given = job.read_vocab
        known = given if isinstance(given, Vocabulary) else Vocabulary.load(given)
    corpus = encode(
        job.corpus if job.sentences is None else job.sentences,
        vocabulary,
        vocabulary=known,
        unk=job.new_words.unk,
        cache_dir=job.cache_dir,
        threads=options.threads or 1,
        reporter=reporter,
        holdout=lines_of(HoldoutOptions(job.holdout), options.seed),
    )
    reporter.message(corpus_line(corpus))
    check_classes(job.classes, len(corpus.vocabulary))
    if job.new_words.unk is not None:
        reporter.message(unk_line(corpus, job.new_words.unk))
    for place in corpus.truncated:
        reporter.message(f"warning: {place}: read up to there")
    return corpus


def manifest_for(
    job: TrainJob,
    vocabulary: VocabularyOptions,
    corpus: EncodedCorpus,
    training: Trained,
    last: Progress,
    seconds: Seconds,
    held_out: HeldOut | None,
) -> dict[str, Any]:
    """Return the manifest of a run."""
    holdout, output = HoldoutOptions(job.holdout), OutputOptions(_format(job), job.vectors)
    tokens = TokenCounts(
        corpus=corpus.tokens,
        trained=last.trained,
        out_of_vocabulary=corpus.out_of_vocabulary * training.options.epochs,
        subsampled=last.subsampled,
        without_context=last.without_context,
        held_out=corpus.held_out_tokens * training.options.epochs,
    )
    return manifest_of(
        options=(
            vocabulary,
            training.options,
            job.subwords,
            job.new_words,
            holdout,
            output,
            ClassesOptions(job.classes),
        ),
        corpus=[(file["path"], file["size"]) for file in corpus.files],
        vocabulary=len(corpus.vocabulary),
        tokens=tokens,
        seconds=seconds,
        loss=last.loss if np.isfinite(last.loss) else None,
        kernels=training.kernels,
        unk_tokens=corpus.unk_tokens,
        **Tokenizer(vocabulary).entry(),
        **scores_of(held_out),
    )


def _format(job: TrainJob) -> str | None:
    """Return the format of the vectors: the given one, or by the suffix."""
    return job.format or (format_of(job.output) if job.output is not None else None)


class Trained(Protocol):
    """Tables that were learned: a `Trainer`, or the tables of a cluster."""

    options: TrainOptions
    input: NDArray[np.float32]
    output: NDArray[np.float32]
    neighbours: Neighbours | None
    classes: NeighbourClasses | None
    kernels: str
    subwords: Subwords | None


class WordsRun(TrainingRun):
    """Training of word vectors, for the run engine."""

    kind, unit = "words", "words"

    def __init__(
        self,
        job: TrainJob,
        vocabulary: VocabularyOptions,
        corpus: EncodedCorpus,
        training: Trainer,
        held_out: HeldOut | None,
    ) -> None:
        options = training.options
        super().__init__(training, _named(job, vocabulary, options), corpus.tokens * options.epochs)
        self.free = _free(options)
        self._job, self._corpus, self._training, self._held_out = job, corpus, training, held_out

    def fingerprint(self) -> Fingerprint:
        """Return hashes of the ids and of the words."""
        corpus, words = self._corpus, self._corpus.vocabulary
        vocabulary = hash_of((words.text, words.offsets, words.counts))
        files = ", ".join(str(file["path"]) for file in corpus.files[:3])
        return Fingerprint(
            {"ids": hash_of([corpus.ids]), "vocabulary": vocabulary},
            f"{corpus.tokens:,} tokens and {len(words):,} words of {files}",
        )

    def done(self, progress: Progress) -> int:
        """Return the progress in tokens of the corpus."""
        # out-of-vocabulary tokens are not in the cache: counted in proportion
        return progress.done * self._corpus.tokens // len(self._corpus.ids)

    def scores(self) -> dict[str, float]:
        """Return the scores of the held-out text."""
        return self._held_out.score() if self._held_out else {}

    def texts(self) -> dict[str, Any]:
        """Return the vocabulary, with which the input table can be read as word vectors."""
        words = self._corpus.vocabulary
        return {"vectors.vocab": format_counts(words.text, words.offsets, words.counts).data}

    def start_hint(self, checkpoint: Path) -> str:
        """Return that the vectors can be used as initial values."""
        return f", whose vectors --init={checkpoint}/vectors.npy reads"

    def current_model(self) -> Vectors:
        """Return the vectors so far."""
        return as_vectors(self._job, self._training, self._corpus.vocabulary)

    def save_partial(self) -> str | None:
        """Save the vectors so far beside the outputs, except streams."""
        written = save_results(self._job, self._training, self._corpus, suffix=PARTIAL)
        return f"the vectors so far are in {' and '.join(written)}" if written else None


def _named(job: TrainJob, vocabulary: VocabularyOptions, options: TrainOptions) -> dict[str, Any]:
    parts = (vocabulary, options, job.subwords, job.new_words)
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

    If a file cannot be written, a checkpoint is saved, or see `dcme_w2v.files.fallback`.
    """
    if manifest is not None:
        manifest = {**manifest, **sidecars_of(job.output, job.output_context, job.save_vocab)}
    tables = (
        (job.output, "vectors", _word_rows(job, training, corpus.vocabulary), manifest),
        (job.output_context, "context", training.output, None),
    )
    results = [
        Result(
            path + suffix,
            name,
            partial(_write, corpus.vocabulary, matrix, job.format or format_of(path), beside),
        )
        for path, name, matrix, beside in tables
        if path is not None and not (suffix and is_stream(path))
    ]
    if job.output_fasttext is not None and not (suffix and is_stream(job.output_fasttext)):
        write = partial(_write_fasttext, job.subwords, corpus, training)
        results.append(Result(job.output_fasttext + suffix, "model", write))
    if job.output_tables is not None and not suffix:
        options = dataclasses.asdict(training.options) | Tokenizer(job.vocabulary).entry()
        write = partial(_write_tables, corpus, training, options)
        results.append(Result(job.output_tables, "tables", write))
    if job.classes and not suffix:
        results[0] = Result(
            results[0].path,
            "classes",
            partial(_write_classes, job, training, corpus.vocabulary, manifest),
        )
    write_with_fallback(results, partial(_checkpoint, checkpointer))
    return [one.path for one in results]


def _word_rows(job: TrainJob, training: Trained, vocabulary: Vocabulary) -> Matrix:
    assert job.vectors is not None
    if training.subwords is None:
        return CombinedRows(training.input, training.output, job.vectors)
    return training.subwords.vectors_of(vocabulary, training.input)


def _write_fasttext(
    subwords: SubwordOptions, corpus: EncodedCorpus, training: Trained, path: str
) -> None:
    rows = [training.input]
    if training.subwords is not None:
        rows.append(training.subwords.rows)
    tables = rows, [training.output]
    save_model(path, corpus.vocabulary, tables, training.options, subwords, corpus.tokens)


def _write(
    vocabulary: Vocabulary,
    matrix: Matrix,
    format: str,
    manifest: Mapping[str, Any] | None,
    path: str,
) -> None:
    counts = vocabulary.counts
    save_vectors(path, vocabulary, matrix, counts=counts, format=format, manifest=manifest)


def _write_classes(
    job: TrainJob,
    training: Trained,
    vocabulary: Vocabulary,
    manifest: Mapping[str, Any] | None,
    path: str,
) -> None:
    rows = _word_rows(job, training, vocabulary)[: len(vocabulary)]
    seed, threads = training.options.seed, training.options.threads
    found = word_classes(rows, job.classes, seed=seed, threads=threads)
    save_classes(path, vocabulary, found, manifest)


def _write_tables(
    corpus: EncodedCorpus, training: Trained, options: dict[str, Any], path: str
) -> None:
    near = training.neighbours, training.classes
    tables = training.input, training.output
    save_tables(path, corpus.vocabulary, *tables, options, corpus.counts, *near)


def _checkpoint(checkpointer: Checkpointer | None) -> str | None:
    """Write a checkpoint, if there is a folder for them, and return a message."""
    saved = checkpointer.save() if checkpointer is not None else None
    if saved is None:
        return None
    return f"nothing is lost: free some space, and resume with --resume={saved.parent}"

"""The train job: text in, vectors, vocabulary and manifest out; what `dcme-w2v train` calls."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dcme_w2v.checkpoints.folder import Checkpoint, CheckpointFolder, generations_in
from dcme_w2v.checkpoints.schedule import Keeper
from dcme_w2v.errors import DivergedError, ResourceError, UsageError
from dcme_w2v.files import is_stream
from dcme_w2v.interrupts import Interrupted, Noted
from dcme_w2v.options import (
    CheckpointOptions,
    HoldoutOptions,
    OutputOptions,
    TrainOptions,
    VocabularyOptions,
)
from dcme_w2v.progress import Reporter
from dcme_w2v.rescue import Result, write_or_keep
from dcme_w2v.text.encode import EncodedCorpus, encode
from dcme_w2v.text.sentences import Sentences
from dcme_w2v.text.vocabulary import Vocabulary
from dcme_w2v.words.beside import PARTIAL, counts_path, paths_of
from dcme_w2v.words.defaults import resolved, vectors_of
from dcme_w2v.words.heldout import HeldOut, check_file, lines_of, prepared, scores_of
from dcme_w2v.words.manifest import (
    Seconds,
    TokenCounts,
    files_beside,
    manifest_of,
    write_manifest,
)
from dcme_w2v.words.resources import needs, plan_line, reason_against
from dcme_w2v.words.start import start_from
from dcme_w2v.words.tables import CombinedRows, combine_in_place, save_tables
from dcme_w2v.words.trainer import Progress, Trainer
from dcme_w2v.words.vectors import Vectors
from dcme_w2v.words.vectors_io import Matrix, format_of, save_vectors


@dataclass(frozen=True)
class TrainJob:
    """The files of a training run.

    Attributes
    ----------
    corpus : tuple of str
        Files, folders, URLs, or ``-`` for standard input.
    output, output_context : str, optional
        Where the word vectors and the context vectors go; ``-`` is standard output.
    output_tables : str, optional
        Folder that both tables go to, see `dcme_w2v.words.tables`.
    save_vocab : str, optional
        Where the vocabulary goes.
    read_vocab : str or Vocabulary, optional
        Where it comes from instead of from the corpus.
    init, init_context : str or Vectors, optional
        Vectors to start from, see `dcme_w2v.words.start`; words that are not among them start at
        random.
    cache_dir : str, optional
        Folder for the encoded corpus, 4 bytes a token.
    log_json : str, optional
        Where the reporter writes its log; checked here, written there.
    format : str, optional
        "text", "binary" or "npy"; by the suffix of the output otherwise.
    vectors : str, optional
        Which vectors are written, see `dcme_w2v.words.tables`; by default what
        `dcme_w2v.words.defaults.vectors_of` says.
    checkpoint : str, optional
        Folder for checkpoints, see `dcme_w2v.checkpoints.folder`; by default that of `resume`.
    checkpoint_every : str
        How often: a number of epochs, or a time as "10m".
    resume : str, optional
        Folder of checkpoints to go on from. Where it is also `checkpoint`, and has none yet, the
        run starts from the beginning.
    holdout : str, optional
        Share of the lines to be held out, or a file; see `dcme_w2v.words.heldout`.
    sentences : Sentences, optional
        The corpus where it is not in files.
    """

    corpus: tuple[str, ...]
    output: str | None = None
    output_context: str | None = None
    output_tables: str | None = None
    save_vocab: str | None = None
    read_vocab: str | Vocabulary | None = None
    init: str | Vectors | None = None
    init_context: str | Vectors | None = None
    cache_dir: str | None = None
    log_json: str | None = None
    format: str | None = None
    vectors: str | None = None
    checkpoint: str | None = None
    checkpoint_every: str = CheckpointOptions().checkpoint_every
    resume: str | None = None
    holdout: str | None = None
    sentences: Sentences | None = None


def train(
    job: TrainJob,
    vocabulary: VocabularyOptions,
    options: TrainOptions,
    reporter: Reporter,
    signals: AbstractContextManager[Noted] | None = None,
) -> Vectors:
    """Train word vectors and write them.

    Parameters
    ----------
    job : TrainJob
        What to read and to write.
    vocabulary : VocabularyOptions
        Which words are kept.
    options : TrainOptions
        How to train; what is None gets its default, see `dcme_w2v.words.defaults`.
    reporter : Reporter
        Hears of the progress.
    signals : context manager, optional
        Open while training; notes signals. No handler is installed without.

    Returns
    -------
    Vectors
        With counts, context vectors and the manifest, see `dcme_w2v.words.manifest`.

    Raises
    ------
    UsageError
        Options contradict each other, or a file cannot be written.
    CorpusError
        The corpus cannot be read, or nothing in it can be trained on.
    ResourceError
        Memory or disk does not suffice.
    DivergedError
        Training left the finite numbers.
    Interrupted
        `signals` noted one; what there was has been saved, see `dcme_w2v.checkpoints.schedule`.
    KeyboardInterrupt
        Where it came while training, its attribute `partial` is the `Vectors` so far.
    """
    start = time.monotonic()
    job, options, found = _settled(job, vocabulary, options)
    holdout = HoldoutOptions(job.holdout)
    with _folder(job) as folder, _encoded(job, vocabulary, options, reporter) as corpus:
        options = resolved(options, len(corpus.vocabulary))
        plan = needs(job, corpus, options)
        if refused := reason_against(plan):
            raise refused
        reporter.talk(plan_line(plan))
        if job.save_vocab:
            corpus.vocabulary.save(job.save_vocab)
        training = Trainer(corpus.ids, corpus.vocabulary.counts, options)
        held_out = prepared(holdout, corpus, vocabulary, training)
        if held_out is not None:
            reporter.talk(held_out.line)
        every = CheckpointOptions(job.checkpoint_every)
        keeper = Keeper(folder, every, (vocabulary, options), corpus, training, reporter)
        if found is not None:
            keeper.resume(found)
        elif job.init:
            start_from(job.init, job.init_context, training, corpus.vocabulary)
        with signals or contextlib.nullcontext(Noted()) as noted:
            try:
                last = _run(job, training, corpus, reporter, keeper, noted, held_out)
            except KeyboardInterrupt as error:
                error.partial = _vectors(job, training, corpus.vocabulary)  # type: ignore[attr-defined]
                raise
            _save(job, training, corpus.vocabulary, keeper)
        seconds = Seconds(corpus.seconds, keeper.position.seconds, time.monotonic() - start)
        manifest = _manifest(job, vocabulary, corpus, training, last, seconds, held_out)
        if job.output is not None:
            beside = files_beside(job.output, job.output_context, job.save_vocab)
            write_manifest({**manifest, **beside}, job.output)
        return _vectors(job, training, corpus.vocabulary, manifest)


def dry_run(
    job: TrainJob, vocabulary: VocabularyOptions, options: TrainOptions, reporter: Reporter
) -> dict[str, Any]:
    """Read the corpus and return what training would need; see `train`.

    Returns
    -------
    dict
        See `dcme_w2v.words.resources.needs`; and under "refused" the error if it cannot be had.
    """
    job, options, _ = _settled(job, vocabulary, options)
    with _encoded(job, vocabulary, options, reporter) as corpus:
        plan = needs(job, corpus, resolved(options, len(corpus.vocabulary)))
        return {**plan, "refused": reason_against(plan)}


def _vectors(
    job: TrainJob,
    training: Trainer,
    vocabulary: Vocabulary,
    manifest: dict[str, Any] | None = None,
) -> Vectors:
    """Return the vectors, which end the training, and the context vectors."""
    assert job.vectors is not None
    counts = vocabulary.counts
    context = Vectors(vocabulary, training.output, counts)
    matrix = combine_in_place(training.input, training.output, job.vectors)
    return Vectors(vocabulary, matrix, counts, context=context, manifest=manifest)


def _with_counts(job: TrainJob) -> TrainJob:
    """Save the vocabulary where both tables are, but no counts."""
    path = counts_path(job)
    return job if path is None else dataclasses.replace(job, save_vocab=path)


def _settled(
    job: TrainJob, vocabulary: VocabularyOptions, options: TrainOptions
) -> tuple[TrainJob, TrainOptions, Checkpoint | None]:
    """Check files and options; those that a checkpoint has and that are not given are its own."""
    paths_of(job).check()
    job = _with_counts(job)
    found = _checkpoint_of(job)
    if found is not None:
        options = found.with_its_own(options)
    if job.init_context is not None and job.init is None:
        raise UsageError("--init-context: needs --init, the word vectors that belong to it")
    checked = resolved(options)
    vectors = vectors_of(job.vectors, options.model, job.output_context)
    job = dataclasses.replace(job, vectors=vectors)
    if found is not None:
        found.check_options(vocabulary, checked)
    options = dataclasses.replace(options, threads=checked.threads)
    check_file(HoldoutOptions(job.holdout), job.corpus)
    return job, options, found


def _encoded(
    job: TrainJob, vocabulary: VocabularyOptions, options: TrainOptions, reporter: Reporter
) -> EncodedCorpus:
    """Read the corpus and say what is in it."""
    known = job.read_vocab
    if isinstance(known, str):
        known = Vocabulary.load(known)
    reporter.stage("reading", None, "bytes")
    corpus = encode(
        job.corpus if job.sentences is None else job.sentences,
        vocabulary,
        vocabulary=known,
        cache_dir=job.cache_dir,
        threads=options.threads or 1,
        progress=lambda done, total: reporter.advance(done),
        holdout=lines_of(HoldoutOptions(job.holdout), options.seed),
    )
    reporter.talk(_corpus_line(corpus))
    for place in corpus.truncated:
        reporter.talk(f"warning: {place}: read as far as it goes")
    return corpus


def _manifest(
    job: TrainJob,
    vocabulary: VocabularyOptions,
    corpus: EncodedCorpus,
    training: Trainer,
    last: Progress,
    seconds: Seconds,
    held_out: HeldOut | None,
) -> dict[str, Any]:
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
        options=(vocabulary, training.options, holdout, output),
        corpus=[(file["path"], file["size"]) for file in corpus.files],
        vocabulary=len(corpus.vocabulary),
        tokens=tokens,
        seconds=seconds,
        loss=last.loss if np.isfinite(last.loss) else None,
        kernels=training.kernels,
        **scores_of(held_out),
    )


def _format(job: TrainJob) -> str | None:
    """Return the format of the vectors: the one asked for, or the suffix's."""
    return job.format or (format_of(job.output) if job.output is not None else None)


def _corpus_line(corpus: EncodedCorpus) -> str:
    kept = f"{len(corpus.vocabulary):,} words in the vocabulary"
    line = f"{corpus.tokens:,} tokens in {corpus.lines:,} lines, {kept}"
    for name, count in (("replaced", corpus.replaced), ("skipped", corpus.skipped)):
        if count:
            line += f", {count:,} tokens that are not UTF-8 {name}"
    return line


def _checkpoint_of(job: TrainJob) -> Checkpoint | None:
    """Return the checkpoint to go on from; a folder that is both source and target may be empty."""
    if job.resume is None:
        return None
    found = generations_in(Path(job.resume))
    if found:
        return Checkpoint.load(found[-1])
    if job.resume == job.checkpoint:
        return None
    raise UsageError(f"{job.resume}: has no checkpoint; give --resume its folder, or leave it out")


@contextlib.contextmanager
def _folder(job: TrainJob) -> Iterator[CheckpointFolder | None]:
    """Open the folder of checkpoints, if there is to be one."""
    path = job.checkpoint or job.resume
    if path is None:
        yield None
        return
    folder = CheckpointFolder(path, resuming=path == job.resume)
    try:
        yield folder
    finally:
        folder.close()


def _run(
    job: TrainJob,
    training: Trainer,
    corpus: EncodedCorpus,
    reporter: Reporter,
    keeper: Keeper,
    noted: Noted,
    held_out: HeldOut | None,
) -> Progress:
    """Train all epochs that are left, saving and telling, and return the progress at the end."""
    epochs, position = training.options.epochs, keeper.position
    reporter.stage("training", corpus.tokens * epochs, "words")

    def watch(progress: Progress) -> bool:
        # out-of-vocabulary tokens are not in the cache: counted in proportion
        done = progress.done * corpus.tokens // len(corpus.ids)
        reporter.advance(done, loss=progress.loss, lr=progress.lr)
        return noted.number is not None or keeper.is_time()

    progress = training.progress()
    while position.epoch < epochs:
        try:
            with keeper.timing():
                progress = training.epoch(position.epoch, watch)
            if training.unfinished is None:
                seconds = round(position.epoch_seconds, 3)
                figures = {"seconds": seconds, "loss": progress.loss, "lr": progress.lr}
                scores = held_out.score() if held_out else {}
                reporter.epoch({"epoch": position.epoch + 1, **figures, **scores})
                keeper.end_epoch()
            if noted.number is not None and position.epoch < epochs:
                raise _interrupted(job, training, corpus.vocabulary, keeper, noted)
            keeper.save_if_due()
        except DivergedError as error:
            raise DivergedError(f"{error.message}; {keeper.last_state()}") from error
    return progress


def _interrupted(
    job: TrainJob, training: Trainer, vocabulary: Vocabulary, keeper: Keeper, noted: Noted
) -> Interrupted:
    """Save what there is after a signal: a checkpoint, or else the vectors so far."""
    assert noted.number is not None
    said = f"stopped by {noted.name} in epoch {keeper.position.epoch + 1}: "
    try:
        if (saved := keeper.save()) is not None:
            said += f"the state is in {saved}; go on with --resume={saved.parent}"
            return Interrupted(said, noted.number)
    except ResourceError as error:
        said += f"{error.message}; "
    try:
        written = _save(job, training, vocabulary, suffix=PARTIAL)
    except ResourceError as error:
        return Interrupted(f"{said}{error.message}", noted.number)
    said += f"the vectors so far are in {' and '.join(written)}" if written else "nothing saved"
    return Interrupted(said, noted.number)


def _save(
    job: TrainJob,
    training: Trainer,
    vocabulary: Vocabulary,
    keeper: Keeper | None = None,
    suffix: str = "",
) -> list[str]:
    """Write the vectors and return where; with a suffix only what goes to files.

    What cannot be written is kept as a checkpoint of `keeper`, or see `dcme_w2v.rescue`.
    """
    assert job.vectors is not None
    tables = (
        (job.output, "vectors", CombinedRows(training.input, training.output, job.vectors)),
        (job.output_context, "context", training.output),
    )
    results = [
        Result(
            path + suffix, name, partial(_write, vocabulary, matrix, job.format or format_of(path))
        )
        for path, name, matrix in tables
        if path is not None and not (suffix and is_stream(path))
    ]
    if job.output_tables is not None and not suffix:
        options = dataclasses.asdict(training.options)
        write = partial(_write_tables, vocabulary, training, options)
        results.append(Result(job.output_tables, "tables", write))
    write_or_keep(results, partial(_checkpoint, keeper))
    return [one.path for one in results]


def _write(vocabulary: Vocabulary, matrix: Matrix, format: str, path: str) -> None:
    save_vectors(path, vocabulary, matrix, counts=vocabulary.counts, format=format)


def _write_tables(
    vocabulary: Vocabulary, training: Trainer, options: dict[str, Any], path: str
) -> None:
    save_tables(path, vocabulary, training.input, training.output, options)


def _checkpoint(keeper: Keeper | None) -> str | None:
    """Save the state if checkpoints are kept, and say where."""
    saved = keeper.save() if keeper is not None else None
    if saved is None:
        return None
    return f"nothing is lost: make room, and go on with --resume={saved.parent}"

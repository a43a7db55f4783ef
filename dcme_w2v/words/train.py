"""`dcme_w2v.train`: train word vectors, and write them with a vocabulary and a manifest."""

from __future__ import annotations

import contextlib
import inspect
import numbers
import os
import textwrap
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dcme_w2v._core.models import row_stride
from dcme_w2v.declarations import (
    check_conflicts,
    check_names,
    described,
    filled,
    options_in,
    paths_in,
    values_of,
    with_preset,
)
from dcme_w2v.errors import CorpusError, UnknownOptionError
from dcme_w2v.files.atomic import is_stream
from dcme_w2v.files.paths import PARTIAL, READS, guard
from dcme_w2v.files.space import Result, shortage, write_with_fallback
from dcme_w2v.formats.artifact import words_arrays
from dcme_w2v.formats.columns import Source
from dcme_w2v.formats.corpus import CorpusLike, Sentences, check_file, paths_or_sentences
from dcme_w2v.formats.vectors.subwords import WordNgrams
from dcme_w2v.formats.vectors.vectors_io import audit_line, check_target, manifest_of, save_vectors
from dcme_w2v.formats.vocabulary import Vocabulary
from dcme_w2v.numeric.arrays import Array
from dcme_w2v.options import (
    CheckpointOptions,
    ClusterOptions,
    HoldoutOptions,
    LogOptions,
    SubwordOptions,
    VocabularyOptions,
)
from dcme_w2v.platform import ReceivedSignal, default_threads, memory_limit
from dcme_w2v.text.cache import HeldOutLines
from dcme_w2v.text.encode import EncodedCorpus, encode
from dcme_w2v.text.select_vocabulary import Given
from dcme_w2v.text.tokenizer import Tokenizer
from dcme_w2v.training.checkpoint_folder import Checkpoint, find_checkpoint, open_folder
from dcme_w2v.training.executor import on_cluster
from dcme_w2v.training.progress import ProgressLike, Reporter, reporting_to
from dcme_w2v.training.run import Checkpointer, TrainingRun, interruptible, run_epochs
from dcme_w2v.training.trainer import Fingerprint, Progress, hash_of

from .options import (
    FileOptions,
    NewWordsOptions,
    OutputOptions,
    PresetOptions,
    RoundsOptions,
    TrainOptions,
    has_context,
    resolved,
)
from .start import Initial, Trained, load_initial, start_from
from .trainer import Trainer, combined
from .vectors import Vectors

if TYPE_CHECKING:
    from .heldout import HeldOut


# Options that checkpoints and manifests record, and that a resumed run must not change.
CHECKPOINTED = (VocabularyOptions, TrainOptions, SubwordOptions, NewWordsOptions)
RECORDED = (*CHECKPOINTED, PresetOptions, HoldoutOptions, OutputOptions)

PROCESS_BYTES = 24 << 20  # bytes of memory for Python, NumPy and this package
WORD_BYTES = 28  # bytes per word for the count, offset, keep probability and noise probability
SAVED_BYTES = 22  # maximum number of bytes that a word's count takes in a text file
TREE_BYTES_A_WORD = 120  # bytes per word for building and storing a Huffman path of about 20 steps
# Below FEW_TOKENS tokens, WordSim-353 correlations are below 0.4 (benchmark suite `few_tokens`).
FEW_TOKENS, FEW_A_WORD = 1_000_000, 100


@dataclass(frozen=True)
class TrainJob(
    PresetOptions,
    VocabularyOptions,
    TrainOptions,
    SubwordOptions,
    NewWordsOptions,
    HoldoutOptions,
    OutputOptions,
    ClusterOptions,
    RoundsOptions,
    CheckpointOptions,
    FileOptions,
    LogOptions,
):
    """The options and the corpus of a word-vector training run.

    Attributes
    ----------
    corpus : tuple of str
        Files, folders, URLs, or ``-`` for standard input.
    text : Sentences, optional
        The corpus if it is not in files.
    read_vocab : str or Vocabulary, optional
        The vocabulary, instead of counting the corpus.
    init : str or Vectors, optional
        Vectors to start from, see `dcme_w2v.words.start`.
    """

    corpus: tuple[Source, ...] = ()
    text: Sentences | None = None


OPTIONS = TrainJob.__bases__
FIELDS = {item.name: item for cls in OPTIONS for item in options_in(cls)}


# ---- the function ----


def train(
    corpus: CorpusLike | None = None,
    *,
    progress: ProgressLike = False,
    signals: AbstractContextManager[ReceivedSignal] | None = None,
    dry_run: bool = False,
    **options: Any,
) -> Any:
    """Train word vectors.

    Parameters
    ----------
    corpus : path, paths, or iterable of sentences
        Files, folders, URLs or ``-``, or an iterable of sentences. A sentence is a list of tokens,
        or a line, which is split at whitespace. Files may be compressed. The strings in a list or
        tuple are read as paths if all of the paths exist, or if each string has a slash or a suffix
        and no whitespace. Otherwise, the strings are read as lines. Lines without whitespace, as in
        Japanese, cause an error: pass lists of tokens instead. The corpus is read once, and an
        iterable is not kept in memory.
    progress : bool or callable
        If True, show progress bars with tqdm, also in notebooks. A function is called with a
        `ProgressUpdate` about five times per second.
    signals, dry_run
        Used by the command-line program: see `dcme_w2v.words.train.train_job`.
    **options
        See Other Parameters. The page on the command `train` also describes the options for
        research. Paths may be `pathlib.Path` objects. In addition, `read_vocab` may be a mapping of
        words to counts, `init` may be `Vectors`, and `holdout` may be a float.

    Returns
    -------
    Vectors
        Words in descending order of count, with their counts, float32 vectors of shape (n, dim),
        and context vectors (`context`). The `manifest` records the values of all options, token
        counts, seconds and loss.

    Raises
    ------
    TypeError
        An option does not exist; the message suggests the most similar option.
    ValueError
        An option is out of bounds, or the corpus has no tokens to train on.
    OSError, MemoryError
        A file cannot be read or written, or there is not enough memory.
    FloatingPointError
        Training diverged.
    KeyboardInterrupt
        Training was interrupted. The attribute `partial` of the exception contains the `Vectors`
        trained so far, or None if the corpus was still being read. `train` does not install a
        signal handler.

    Examples
    --------
    >>> import dcme_w2v as dw
    >>> sentences = [["tea", "with", "milk"], ["coffee", "with", "sugar"]] * 50
    >>> v = dw.train(sentences, dim=8, threads=1)
    >>> v
    Vectors(5 words, 8 dimensions)
    >>> v.manifest["tokens"]["corpus"], v.manifest["options"]["dim"]
    (300, 8)
    >>> dw.train(sentences, dim=0)
    Traceback (most recent call last):
      ...
    dcme_w2v.errors.UsageError: dim=0 must be at least 1
    """
    check_names(options, [*FIELDS, "progress"])
    if corpus is None:
        raise UnknownOptionError(
            "no corpus was given; pass paths or sentences as the first argument"
        )
    given = {name: _plain(name, value) for name, value in options.items()}
    paths, sentences = paths_or_sentences(corpus)
    values = with_preset(options_in(PresetOptions), given)
    if isinstance(values.get("read_vocab"), Mapping):
        values["read_vocab"] = Vocabulary.from_counts(values["read_vocab"])
    job = TrainJob(corpus=tuple(paths), text=sentences, **values)
    check_conflicts(FIELDS.values(), vars(job), given)
    if job.output is not None:
        job = filled(job, {"format": check_target(job.output, job.format)})
    with reporting_to(progress, job.log_json, job.resume is not None) as reporter:
        try:
            if job.cluster is None:
                return train_job(job, reporter, signals, dry_run)
            with on_cluster("word_training:cluster_of")(job, reporter, dry_run) as (job, cluster):
                return train_job(job, reporter, signals, dry_run, cluster)
        except KeyboardInterrupt as error:
            error.partial = getattr(error, "partial", None)  # type: ignore[attr-defined]
            raise


def _plain(name: str, value: Any) -> Any:
    """Convert a path, or a number for an option of type str, to a string."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    return str(value) if number and name in ("holdout", "checkpoint_every") else value


_SIGNATURE = inspect.signature(train)
_CORPUS, _PROGRESS = (_SIGNATURE.parameters[name] for name in ("corpus", "progress"))
_OPTIONS = [
    _PROGRESS.replace(
        name=item.name,
        default=item.default,
        annotation=item.type | None if item.optional else item.type,
    )
    for item in FIELDS.values()
]
train.__signature__ = _SIGNATURE.replace(  # type: ignore[attr-defined]
    parameters=[_CORPUS.replace(default=inspect.Parameter.empty), _PROGRESS, *_OPTIONS],
    return_annotation=Vectors,
)
# The options that `dcme-w2v train --help` lists.
_SHOWN = [item for item in FIELDS.values() if not item.advanced]
train.__doc__ = (train.__doc__ or "").rstrip() + textwrap.indent(
    "\n\nOther Parameters\n----------------\n" + described(_SHOWN), "    "
)


# ---- training on this machine or on a cluster ----


class Machine:
    """Train word vectors on this machine; a subclass trains them on a cluster."""

    kind = "words"

    def encode(self, job: TrainJob, known: Given, reporter: Reporter) -> EncodedCorpus:
        """Encode the corpus; the vocabulary includes the words in `known` regardless of counts."""
        return encode(
            job.corpus if job.text is None else job.text,
            job,
            vocabulary=known,
            unk=job.unk,
            threads=job.threads or default_threads(),
            reporter=reporter,
            holdout=None if job.fraction is None else HeldOutLines(job.fraction, job.seed),
        )

    def resolved(self, job: TrainJob, words: int) -> TrainJob:
        """Return the options with all defaults filled in."""
        return resolved(job, words)

    def plan(
        self, job: TrainJob, corpus: EncodedCorpus, ngrams: WordNgrams | None
    ) -> dict[str, Any]:
        """Return a run's numbers of threads, words and tokens, and its memory and disk usage."""
        words, text = len(corpus.vocabulary), len(corpus.vocabulary.text)
        state = words * TREE_BYTES_A_WORD if job.objective == "hs" else 0
        if job.objective == "dcme":
            state = 5 * job.clusters * words
        buckets, lists = 0, 0
        # The additional table of n-gram vectors, whose means are the word vectors.
        if ngrams is not None:
            buckets = job.buckets
            lists = ngrams.starts.nbytes + ngrams.numbers.nbytes + words * job.dim * 4
        rows = (4 if job.word_order else 2) * words + buckets
        # With --output-tables, sums of input and context vectors need an additional table.
        rows += words * (job.output_tables is not None)
        tables = 0 if job.cluster else rows * row_stride(words + buckets, job.dim) * 4
        memory = tables + state + lists + words * (WORD_BYTES + SAVED_BYTES) + 2 * text
        return {
            "threads": job.threads,
            "vocabulary": words,
            "tokens": corpus.tokens,
            "distinct_words": corpus.types,
            "out_of_vocabulary": corpus.out_of_vocabulary,
            "memory_bytes": PROCESS_BYTES + max(memory, corpus.counting_bytes),
            "memory_available_bytes": memory_limit(),
            "cache_bytes": len(corpus.ids) * 4,
        }

    def run(
        self, job: TrainJob, corpus: EncodedCorpus, ngrams: WordNgrams | None, reporter: Reporter
    ) -> WordsRun:
        """Create the training run that `run_epochs` executes."""
        words = corpus.vocabulary
        training = Trainer(corpus.ids, words.counts, job, ngrams=ngrams)
        if job.holdout is None:
            return WordsRun(job, corpus, training)
        from .heldout import HeldOut
        from .language_model import ids_of

        ids = corpus.held_out
        if job.file is not None:
            ids = ids_of([job.file], words, job, job.threads or 1, job.unk)
        held_out = HeldOut(ids, words, training)
        reporter.message(held_out.line)
        return WordsRun(job, corpus, training, held_out)


def train_job(
    job: TrainJob,
    reporter: Reporter,
    signals: AbstractContextManager[ReceivedSignal] | None,
    dry_run: bool,
    machine: Machine | None = None,
) -> Any:
    """Train and write word vectors as a job specifies.

    Parameters
    ----------
    job : TrainJob
        Inputs, outputs and options; an option that is None has a default of
        `dcme_w2v.words.options`.
    reporter : Reporter
        Receives the progress.
    signals : context manager, optional
        Records signals while training. Without it, no handler is installed.
    dry_run : bool
        Only read the corpus.
    machine : Machine, optional
        Where to train, by default on this machine.

    Returns
    -------
    Vectors, or dict for a dry run
        With counts, context vectors and the manifest, see `dcme_w2v.formats.vectors.vectors_io`; or
        the plan of the machine, and as "refused" the error if there is not enough memory.

    Raises
    ------
    UsageError, CorpusError, ResourceError
        Options are inconsistent; the corpus cannot be read, or has no token to train on; there is
        not enough memory, or a file cannot be written.
    DivergedError
        A parameter is NaN or infinite.
    Interrupted
        A signal arrived; the state or the result so far is saved, see `dcme_w2v.training.run`.
    KeyboardInterrupt
        While training; its attribute `partial` is the `Vectors` so far.
    """
    start, machine = time.monotonic(), machine or Machine()
    job, found = _prepared(job, machine)
    initial = None if job.init is None else load_initial(job.init)
    start_hash = None if initial is None else initial.hash
    if found is not None and job.init_vocab == "new":
        initial = None  # a resumed run gets its tables from the checkpoint
    with contextlib.nullcontext() if dry_run else open_folder(job) as folder:
        corpus = _encoded(job, reporter, initial, machine)
        words = corpus.vocabulary
        job = machine.resolved(job, len(words))
        ngrams = None if job.subwords is None else WordNgrams.of_words(job, words)
        plan = machine.plan(job, corpus, ngrams)
        remedy = "lower --dim, --max-vocab, --clusters or --buckets, or raise --min-count"
        refused = shortage(plan["memory_bytes"], "training", remedy)
        if dry_run:
            return {**plan, "refused": refused}
        if refused:
            raise refused
        threads = f"{job.threads} thread" + "s" * (job.threads != 1)
        megabytes = plan["memory_bytes"] / 1e6
        reporter.message(f"training with {threads} and {megabytes:,.0f} MB of memory")
        if job.word_order and job.output_tables is None and job.format != "safetensors":
            reporter.message(
                "--word-order: the output format omits word-order vectors; to score text later, "
                "choose a .safetensors file"
            )
        run = machine.run(job, corpus, ngrams, reporter)
        run.settings = {**run.settings, "init": start_hash}
        checkpoints = None
        if folder is not None:
            checkpoints = Checkpointer(run, reporter, folder, job, found)
        if found is None and initial is not None:
            start_from(initial, run.training, words)
        del initial
        with interruptible(run, signals) as received:
            last = run_epochs(run, reporter, received, checkpoints)
            seconds = run.position.seconds, time.monotonic() - start
            manifest = run.manifest(last, *seconds)
            if checkpoints is not None:
                checkpoints.save_end()
            saved = checkpoints.where_saved() if checkpoints else None
            result, _ = save_results(job, run.training, words, manifest, saved=saved)
        reporter.message(audit_line(manifest))
        if job.output is not None:
            reporter.message(f"vectors: {job.output}")
        return result


def _prepared(job: TrainJob, machine: Machine) -> tuple[TrainJob, Checkpoint | None]:
    """Check the paths, and set unset options to their values in the checkpoint, if there is one."""
    guard((READS, "CORPUS", job.corpus), *paths_in(job))
    if job.output_tables is not None:
        check_target(job.output_tables, "safetensors")
    if job.file is not None:
        check_file(job.file, job.corpus)
    found = find_checkpoint(job, machine.kind)
    if found is not None:
        found.check_options(values_of(job, VocabularyOptions))
        job = found.with_run_values(job, "threads", "sample", "lr")
    return job, found


def _encoded(
    job: TrainJob, reporter: Reporter, initial: Initial | None, machine: Machine
) -> EncodedCorpus:
    """Read and encode the corpus, and report the size of the corpus."""
    known: Given = None if initial is None else initial.words(job.init_vocab)
    if job.read_vocab is not None:
        given = job.read_vocab
        known = given if isinstance(given, Vocabulary) else Vocabulary.load(given)
    corpus = machine.encode(job, known, reporter)
    words = len(corpus.vocabulary)
    line = f"{corpus.tokens:,} tokens in {corpus.lines:,} lines, {words:,} words in the vocabulary"
    for name, count in (("replaced", corpus.replaced), ("skipped", corpus.skipped)):
        line += f", {count:,} tokens that are not UTF-8 {name}" * (count > 0)
    reporter.message(line)
    if initial is None and corpus.tokens < min(FEW_TOKENS, FEW_A_WORD * words):
        reporter.message(
            f"note: fewer than {FEW_TOKENS:,} tokens are rarely enough for good vectors; add more "
            "text, or raise --epochs"
        )
    if job.unk is not None and job.unk in corpus.vocabulary:
        reporter.message(f"{corpus.unk_tokens:,} out-of-vocabulary tokens are trained as {job.unk}")
    elif job.unk is not None:
        reporter.message(
            f"warning: {job.unk} has no vector, because the corpus contains no out-of-vocabulary "
            "words"
        )
    return corpus


# ---- the run ----


class WordsRun(TrainingRun):
    """A word-vector training run that `dcme_w2v.training.run` can execute."""

    kind, unit = "words", "words"

    def __init__(
        self, job: TrainJob, corpus: EncodedCorpus, training: Any, held_out: HeldOut | None = None
    ) -> None:
        super().__init__(training, values_of(job, *CHECKPOINTED), corpus.tokens * job.epochs)
        self.free = ("threads",) if job.deterministic else ()
        self.training: Trained = training
        self._job, self._corpus, self._held_out = job, corpus, held_out

    def fingerprint(self) -> Fingerprint:
        """Return hashes of the token IDs and of the vocabulary."""
        corpus = self._corpus
        files = [str(file["path"]) for file in corpus.files]
        return fingerprint_of(hash_of([corpus.ids]), corpus.vocabulary, corpus.tokens, files)

    def done(self, progress: Progress) -> int:
        """Return the number of corpus tokens that have been processed."""
        # The cache has no out-of-vocabulary tokens, so scale the progress up to all corpus tokens.
        return progress.done * self._corpus.tokens // len(self._corpus.ids)

    def scores(self) -> dict[str, float]:
        """Score the held-out text; return {} if there is no held-out text."""
        return self._held_out.score() if self._held_out else {}

    def final_figures(self) -> dict[str, Any]:
        """Return the final scores of the held-out text, which the manifest records."""
        return self._held_out.figures or self._held_out.score() if self._held_out else {}

    def manifest(
        self, last: Progress, train_seconds: float, total_seconds: float
    ) -> dict[str, Any]:
        """Return the manifest; raise an error if training used no token at all."""
        if not last.trained:
            why = {
                "tokens were dropped by subsampling (raise --sample, or use --sample=0)":
                    last.subsampled,
                "tokens have no context in their line (lower --min-count, or use longer lines)":
                    last.without_context,
            }  # fmt: skip
            parts = " and ".join(f"{count:,} {what}" for what, count in why.items() if count)
            raise CorpusError(f"training used no tokens: {parts}")
        job, corpus = self._job, self._corpus
        return manifest_of(
            options=values_of(job, *RECORDED),
            corpus=[(file["path"], file["size"]) for file in corpus.files],
            vocabulary=len(corpus.vocabulary),
            tokens={
                "corpus": corpus.tokens,
                "trained": last.trained,
                "out_of_vocabulary": corpus.out_of_vocabulary * job.epochs,
                "subsampled": last.subsampled,
                "without_context": last.without_context,
                "held_out": corpus.held_out_tokens * job.epochs,
            },
            seconds={"count": corpus.seconds, "train": train_seconds, "total": total_seconds},
            loss=last.loss if np.isfinite(last.loss) else None,
            kernels=self.training.kernels,
            unk_tokens=corpus.unk_tokens,
            **Tokenizer(job).entry(),
            **self.final_figures(),
        )

    def arrays(self) -> dict[str, Array]:
        """Return the vocabulary as arrays, so that word vectors can be read from checkpoints."""
        words = self._corpus.vocabulary
        return {**words_arrays(words), "counts": words.counts}

    def start_hint(self, checkpoint: Path) -> str:
        """Return the end of an error message, which says that --init can read the checkpoint."""
        return f", whose vectors --init={checkpoint} reads"

    def current_model(self) -> Vectors:
        """Return the word vectors trained so far."""
        return result_of(self._job, self.training, self._corpus.vocabulary)

    def save_partial(self) -> str | None:
        """Save the current vectors next to each output that is not a stream."""
        words = self._corpus.vocabulary
        _, written = save_results(self._job, self.training, words, suffix=PARTIAL)
        return f"the vectors so far are in {' and '.join(written)}" if written else None


def fingerprint_of(ids: str, words: Vocabulary, tokens: int, files: Sequence[Any]) -> Fingerprint:
    """Return the hashes that identify a text, and a description of the text for messages."""
    vocabulary = hash_of((words.text, words.offsets, words.counts))
    described = f"{tokens:,} tokens and {len(words):,} words of {', '.join(map(str, files[:3]))}"
    return Fingerprint({"ids": ids, "vocabulary": vocabulary}, described)


# ---- results ----


def result_of(
    job: TrainJob,
    training: Trained,
    words: Vocabulary,
    manifest: Mapping[str, Any] | None = None,
    in_place: bool = True,
) -> Vectors:
    """Return the trained word vectors with all tables.

    With `in_place`, sums overwrite the input table, which then cannot be trained further.
    """
    assert job.output_vectors is not None
    if training.subwords is not None:
        matrix = training.subwords.vectors_of(words, training.input)
    else:
        matrix = combined(training.input, training.output, job.output_vectors, in_place)
    subwords = training.subwords
    return Vectors(
        words, matrix, words.counts, neighbors=training.neighbors,
        manifest=manifest or _made(job),
        context=Vectors(words, training.output, words.counts) if has_context(job) else None,
        subwords=None if subwords is None else replace(subwords, own=training.input),
    )  # fmt: skip


def _made(job: TrainJob, **options: Any) -> dict[str, Any]:
    """Return the manifest entries that record the options and the tokenizer of a run."""
    return {"options": {**values_of(job, *RECORDED), **options}, **Tokenizer(job).entry()}


def save_results(
    job: TrainJob,
    training: Trained,
    words: Vocabulary,
    manifest: Mapping[str, Any] | None = None,
    suffix: str = "",
    saved: str | None = None,
) -> tuple[Vectors, list[str]]:
    """Write the results of a run; return the vectors and the written paths.

    A suffix marks the vectors of an unfinished run; neither streams nor the file of both tables are
    then written. `dcme_w2v.files.space` handles files that cannot be written.
    """
    found = result_of(job, training, words, manifest, in_place=job.output_tables is None)
    results: list[Result] = []
    if job.output is not None and not (suffix and is_stream(job.output)):
        save = partial(save_vectors, tables=found, format=job.format)
        results.append((job.output + suffix, "vectors", save))
    if not suffix and job.output_tables is not None:
        # Also save the unsummed input and context vectors, so that another run can start from them.
        made = _made(job, output_vectors="input")
        tables = found.changed(vectors=training.input, manifest=made)
        save = partial(save_vectors, tables=tables, format="safetensors")
        results.append((job.output_tables, "tables", save))
    write_with_fallback(*results, saved=saved)
    return found, [path for path, _, _ in results]

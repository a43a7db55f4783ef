"""What a training run of word vectors reads and writes."""

from __future__ import annotations

from dataclasses import dataclass, field

from dcme_w2v.declarations import flag_of
from dcme_w2v.errors import UsageError
from dcme_w2v.files.atomic import is_stream
from dcme_w2v.files.paths import PARTIAL, Paths, Sidecar, as_paths
from dcme_w2v.formats.npy import MAGIC
from dcme_w2v.formats.sentences import Sentences
from dcme_w2v.formats.vocabulary import Vocabulary
from dcme_w2v.options import (
    CheckpointOptions,
    ClusterOptions,
    HoldoutOptions,
    RoundsOptions,
    SubwordOptions,
    TrainOptions,
)
from dcme_w2v.training.checkpoint_folder import paths_in
from dcme_w2v.words.fasttext_writer import check_model_name
from dcme_w2v.words.foreign import FASTTEXT
from dcme_w2v.words.options import NewWordsOptions
from dcme_w2v.words.sidecars import (
    MANIFEST,
    VOCABULARY,
    first_line_is,
    is_manifest,
    is_vocabulary,
    read_with,
    starts_with,
    written_with,
)
from dcme_w2v.words.tables import KIND
from dcme_w2v.words.vectors import Vectors
from dcme_w2v.words.vectors_io import format_of


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
    output_fasttext : str, optional
        Where a model of fastText goes, see `dcme_w2v.words.fasttext`.
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
    checkpoints : CheckpointOptions
        Folder for checkpoints, by default that of `resume`, and how often; and the folder to resume
        from. Where both are one, and has none yet, the run starts from the beginning.
    holdout : str, optional
        Share of the lines to be held out, or a file; see `dcme_w2v.words.heldout`.
    sentences : Sentences, optional
        The corpus where it is not in files.
    cluster : ClusterOptions
        Where it runs, if not here; see `dcme_w2v.cluster.train`.
    rounds : RoundsOptions
        How often, and how, the shards of a cluster exchange what they have learned.
    subwords : SubwordOptions
        Which character n-grams have vectors, too.
    new_words : NewWordsOptions
        Whether words of `init` are kept, and whether rare words share a vector.
    classes : int
        Number of classes of words, which `output` gets instead of the vectors; 0: the vectors.
    """

    corpus: tuple[str, ...]
    output: str | None = None
    output_context: str | None = None
    output_tables: str | None = None
    output_fasttext: str | None = None
    save_vocab: str | None = None
    read_vocab: str | Vocabulary | None = None
    init: str | Vectors | None = None
    init_context: str | Vectors | None = None
    cache_dir: str | None = None
    log_json: str | None = None
    format: str | None = None
    vectors: str | None = None
    checkpoints: CheckpointOptions = field(default_factory=CheckpointOptions)
    holdout: str | None = None
    sentences: Sentences | None = None
    cluster: ClusterOptions = field(default_factory=ClusterOptions)
    rounds: RoundsOptions = field(default_factory=RoundsOptions)
    subwords: SubwordOptions = field(default_factory=SubwordOptions)
    new_words: NewWordsOptions = field(default_factory=NewWordsOptions)
    classes: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "corpus", as_paths(self.corpus))
        if not self.classes:
            return
        for flag, given in (("format", self.format), ("output_context", self.output_context)):
            if given not in (None, "text"):
                raise UsageError(
                    f"{flag_of(flag)}={given}: is for vectors, and --classes={self.classes} writes "
                    "classes; remove one"
                )
        object.__setattr__(self, "format", "text")


def paths_of(job: TrainJob) -> Paths:
    """Return what a training run reads and writes."""
    vocabulary, init, context = (
        one if isinstance(one, str) else None
        for one in (job.read_vocab, job.init, job.init_context)
    )
    paths = Paths().reads("CORPUS", *job.corpus).reads("--read-vocab", vocabulary)
    paths.reads("--init", init, sidecars=read_with(init))
    paths.reads("--init-context", context, sidecars=read_with(context))
    paths.reads("--holdout", HoldoutOptions(job.holdout).file)
    for flag, path in (("--output", job.output), ("--output-context", job.output_context)):
        sidecars = [] if path is None else [*written_with(path, job.format), *_partial(path, job)]
        if flag == "--output":
            sidecars.append(Sidecar(f"{path}{MANIFEST}", is_manifest))
        elif (counts := counts_path(job)) is not None:
            sidecars.append(Sidecar(counts, is_vocabulary))
        paths.writes(flag, path, sidecars)
    paths.model("--output-tables", job.output_tables, KIND)
    if job.output_fasttext is not None:
        check_model_name(job.output_fasttext)
        partial = Sidecar(job.output_fasttext + PARTIAL, lambda old: starts_with(old, FASTTEXT))
        paths.writes("--output-fasttext", job.output_fasttext, [partial])
    paths.writes("--save-vocab", job.save_vocab).log("--log-json", job.log_json)
    return paths_in(paths, job.checkpoints).temporary("--cache-dir", job.cache_dir)


def counts_path(job: TrainJob) -> str | None:
    """Return where the vocabulary goes beside both tables: likelihood needs all three."""
    tables = [path for path in (job.output, job.output_context) if path is not None]
    if job.save_vocab is not None or len(tables) < 2 or any(map(is_stream, tables)):
        return None
    if "npy" in [job.format or format_of(path) for path in tables]:
        return None
    return f"{job.output_context}{VOCABULARY}"


def check_no_context(job: TrainJob, options: TrainOptions) -> None:
    """Raise if a run whose objective has no context vectors is to read or write any."""
    given = {
        f"--vectors={job.vectors}": job.vectors not in (None, "input"),
        "--output-context": job.output_context is not None,
        "--output-tables": job.output_tables is not None,
        "--output-fasttext": job.output_fasttext is not None,
        "--init-context": job.init_context is not None,
        "--holdout": job.holdout is not None,
        "--word-order": options.word_order,
        f"--block={options.block}": options.block > 1,
    }
    for flag, is_given in given.items():
        if is_given:
            raise UsageError(
                f"{flag}: needs context vectors, which --objective={options.objective} does not "
                "train; give --objective=ns"
            )


def check_new_words(job: TrainJob) -> None:
    """Raise if vectors or words to start from are not there, are given twice, or have n-grams."""
    given, unk = f"--init-vocab={job.new_words.init_vocab}", job.new_words.unk
    if job.init_context is not None and job.init is None:
        raise UsageError("--init-context: requires --init, the word vectors of the same training")
    if job.new_words.init_vocab != "new" and job.init is None:
        raise UsageError(f"{given}: requires --init, the vectors whose words are kept")
    if job.new_words.init_vocab != "new" and job.read_vocab is not None:
        raise UsageError(f"{given}: takes the words of --init; remove it or --read-vocab")
    if unk is not None and job.subwords.subwords is not None:
        raise UsageError(
            "--unk: is not supported with --subwords, which has vectors for all words; remove one"
        )


def check_subwords(job: TrainJob, options: TrainOptions) -> None:
    """Raise if a run with subwords is to train, read or write what they do not support."""
    if job.subwords.subwords is None:
        return
    given = f"--subwords={job.subwords.subwords}"
    if options.objective != "ns":
        raise UsageError(f"{given}: is not supported by {options.objective}; give --objective=ns")
    refused = {
        f"--vectors={job.vectors}": job.vectors not in (None, "input"),
        "--output-tables": job.output_tables is not None,
        "--holdout": job.holdout is not None,
        "--word-order": options.word_order,
        f"--block={options.block}": options.block > 1,
    }
    for flag, is_given in refused.items():
        if is_given:
            raise UsageError(f"{flag}: is not supported with {given}; remove one of them")


def _partial(path: str, job: TrainJob) -> list[Sidecar]:
    """Return the files that an interrupted run writes."""
    partial, format = path + PARTIAL, job.format or format_of(path)
    if format != "npy":
        return [Sidecar(partial, lambda found: first_line_is(found, rb"[0-9]+ [0-9]+"))]
    pair = Sidecar(partial, lambda found: starts_with(found, MAGIC))
    return [pair, *written_with(partial, format)]

"""`dcme-w2v train`: train word vectors; supports word2vec.c's command lines too."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from dcme_w2v.errors import UsageError
from dcme_w2v.files.atomic import check_standard_output
from dcme_w2v.options import (
    CheckpointOptions,
    ClusterOptions,
    HoldoutOptions,
    SubwordOptions,
    VocabularyOptions,
)
from dcme_w2v.words.options import (
    ClassesOptions,
    FileOptions,
    NewWordsOptions,
    OutputOptions,
    PresetOptions,
    RoundsOptions,
    TrainOptions,
)

from .command import command
from .options import (
    arguments,
    dry_run_option,
    given_options,
    json_option,
    options_of,
    quiet_option,
    show_plan,
)
from .streams import ignore_broken_pipe, print_json

if TYPE_CHECKING:
    from dcme_w2v.words.job import TrainJob


@command(
    warns=False,
    word2vec=True,
    example="dcme-w2v train corpus.txt --output vectors.bin\n"
    "zcat corpus.gz | dcme-w2v train - --output vectors.npy --dim 200 --checkpoint state",
)
@arguments("[corpus]...")
@options_of(FileOptions)
@options_of(PresetOptions, VocabularyOptions, NewWordsOptions, TrainOptions, SubwordOptions)
@options_of(HoldoutOptions, OutputOptions, ClassesOptions)
@options_of(ClusterOptions, RoundsOptions, CheckpointOptions)
@dry_run_option
@json_option
@quiet_option
def train(
    corpus: tuple[str, ...], quiet: bool, dry_run: bool, as_json: bool, **values: Any
) -> None:
    """Train word vectors on text.

    CORPUS: files, folders or - for standard input, also compressed (gzip, bzip2, xz, zstd). A line
    is a sentence, tokens are separated by whitespace. VECTORS.json records how the vectors were
    made. Command lines of word2vec.c work unchanged (-train, -output, -size, -iter, -alpha, -cbow,
    -binary, -hs, -classes, -debug), with the defaults of word2vec.c. With several threads, results
    differ between runs, unless --deterministic is given. SIGINT, SIGTERM or SIGHUP saves the state
    and stops.
    """
    from dcme_w2v.cluster.train import dry_run as plan_job
    from dcme_w2v.cluster.train import train_job
    from dcme_w2v.formats.vectors.manifest import audit_line
    from dcme_w2v.training.progress import reporting
    from dcme_w2v.words.job import FIELDS, TrainJob, paths_of

    from .signals import recording_signals

    given = {name: values[name] for name in given_options() if name in FIELDS}
    job = TrainJob.of(corpus, given)
    _check(job, dry_run)
    paths_of(job).stdout(as_json).check()
    with reporting(quiet, job.log_json, append=job.checkpoints.resume is not None) as reporter:
        if job.options.word_order and job.output_tables is None:
            reporter.message(
                "--word-order: to score text with the model later, give --output-tables FILE, too"
            )
        if dry_run:
            plan = plan_job(job, reporter)
        else:
            vectors = train_job(job, reporter, recording_signals())
            manifest = vectors.manifest or {}
            reporter.message(audit_line(manifest))
            reporter.message(f"{'classes' if job.classes else 'vectors'}: {job.output}")
    if dry_run:
        show_plan(plan, as_json)
    elif as_json:
        print_json(manifest)


def _check(job: TrainJob, dry_run: bool) -> None:
    unk = job.new_words.unk
    if not job.corpus and unk is not None and Path(unk).exists():
        raise UsageError(f"no corpus: --unk {unk} is its word; give --unk after the corpus")
    if not job.corpus:
        raise UsageError("no corpus; give files or folders, or - for standard input")
    if job.output is None and not dry_run:
        alone = "; dcme-w2v vocab counts alone" * bool(job.save_vocab)
        raise UsageError(f"no --output; give the file for the vectors, or --dry-run{alone}")
    if dry_run:
        check_standard_output()
    written = (job.output, job.output_context, job.output_fasttext, job.save_vocab, job.log_json)
    ignore_broken_pipe(*written, job.checkpoints.folder)

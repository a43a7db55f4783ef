"""`dcme-w2v train`: train word vectors; supports word2vec.c's command lines too."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from dcme_w2v.cli.command import Command
from dcme_w2v.cli.options import collect, json_option, options_of, quiet_option
from dcme_w2v.cli.plan import dry_run_option, show_plan
from dcme_w2v.cli.streams import ignore_broken_pipe
from dcme_w2v.errors import UsageError
from dcme_w2v.files.atomic import check_standard_output
from dcme_w2v.options import (
    CheckpointOptions,
    ClusterOptions,
    FileOptions,
    HoldoutOptions,
    OutputOptions,
    RoundsOptions,
    SubwordOptions,
    TrainOptions,
    VocabularyOptions,
)
from dcme_w2v.words.options import ClassesOptions, NewWordsOptions
from dcme_w2v.words.presets import PresetOptions, preset_values

if TYPE_CHECKING:
    from dcme_w2v.words.job import TrainJob

# word2vec.c's switches that have other names here: flag -> our option and its values.
SWITCHES = {
    "cbow": ("model", {"0": "skipgram", "1": "cbow"}),
    "binary": ("format", {"0": "text", "1": "binary"}),
}

ZERO_ONE = click.Choice(["0", "1"])


def _resolve_flags(ctx: click.Context) -> None:
    """Store the values of word2vec.c's flags under our options' names, and those of a preset."""
    values, before = ctx.params, dict(ctx.params)
    spelled = values.pop("corpus_too")
    values["corpus"] += spelled
    if spelled and values["preset"] is None:
        values["preset"] = "word2vec"
    if values.pop("hs") == "1":
        _settle_tree(ctx)
    if values.pop("sum_context"):
        _settle_sum(ctx)
    if values["classes"]:
        values["binary"] = None  # word2vec.c writes classes as text with -binary 1, too
    for flag, (name, meanings) in SWITCHES.items():
        given = values.pop(flag)
        if given is None:
            continue
        said = ctx.get_parameter_source(name) is not ParameterSource.DEFAULT
        if said and values[name] != meanings[given]:
            raise UsageError(f"-{flag} {given} and --{name} {values[name]} disagree; give one")
        values[name] = meanings[given]
    values["quiet"] |= values.pop("debug") == 0
    preset = PresetOptions(values["preset"]).preset
    given = {
        name: value
        for name, value in values.items()
        if value != before[name] or ctx.get_parameter_source(name) != ParameterSource.DEFAULT
    }
    for name, value in preset_values(preset, given).items() if preset else ():
        if name not in given:
            values[name] = value


def _settle_sum(ctx: click.Context) -> None:
    """Store what --sum-context means."""
    if ctx.params["vectors"] not in (None, "sum"):
        raise UsageError(f"--sum-context and --vectors={ctx.params['vectors']}: disagree; give one")
    ctx.params["vectors"] = "sum"


def _settle_tree(ctx: click.Context) -> None:
    """Store what word2vec.c's -hs 1 means."""
    values, default = ctx.params, ParameterSource.DEFAULT
    if ctx.get_parameter_source("objective") is not default and values["objective"] != "hs":
        raise UsageError(f"-hs 1 and --objective {values['objective']} disagree; give one")
    if values["negative"]:
        raise UsageError(
            f"-hs 1 and -negative {values['negative']}: are not trained together; give -negative 0"
        )
    values["objective"], values["negative"] = "hs", None


@click.command(
    cls=Command,
    resolve_flags=_resolve_flags,
    example="dcme-w2v train corpus.txt --output vectors.bin\n"
    "zcat corpus.gz | dcme-w2v train - --output vectors.npy --dim 200 --checkpoint state",
)
@click.argument("corpus", nargs=-1)
@options_of(FileOptions)
@options_of(PresetOptions, VocabularyOptions, NewWordsOptions, TrainOptions, SubwordOptions)
@options_of(HoldoutOptions, OutputOptions, ClassesOptions)
@options_of(ClusterOptions, RoundsOptions, CheckpointOptions)
@dry_run_option
@json_option
@quiet_option
@click.option("-train", "corpus_too", multiple=True, metavar="FILE", help="CORPUS")
@click.option("-cbow", type=ZERO_ONE, metavar="0|1", help="--model skipgram or cbow")
@click.option("-binary", type=ZERO_ONE, metavar="0|1", help="--format text or binary")
@click.option("-hs", type=ZERO_ONE, metavar="0|1", help="1 is --objective hs")
@click.option("--sum-context", is_flag=True, help="--vectors sum: input plus context vectors")
@click.option("-debug", type=int, metavar="N", help="0 is --quiet")
def train(quiet: bool, preset: str | None, **values: Any) -> None:
    """Train word vectors on text.

    CORPUS: files, folders or - for standard input, also compressed (gzip, bzip2, xz, zstd). A line
    is a sentence, tokens are separated by whitespace. VECTORS.json records how the vectors
    were made. Command lines of word2vec.c work unchanged. With several threads, results differ
    between runs, unless --deterministic is given. SIGINT, SIGTERM or SIGHUP saves the state and
    stops.
    """
    from dcme_w2v.cli.signals import recording_signals
    from dcme_w2v.cluster.train import dry_run as plan_job
    from dcme_w2v.cluster.train import train_job
    from dcme_w2v.training.progress import reporting
    from dcme_w2v.words.job import TrainJob, paths_of
    from dcme_w2v.words.manifest import audit_line

    log_json, dry_run = values["log_json"], values.pop("dry_run")
    as_json = values.pop("as_json")
    vocabulary = collect(VocabularyOptions, values)
    options = collect(TrainOptions, values)
    output = collect(OutputOptions, values)
    holdout = collect(HoldoutOptions, values).holdout
    values |= dataclasses.asdict(output)
    kept = collect(CheckpointOptions, values)
    cluster, rounds = collect(ClusterOptions, values), collect(RoundsOptions, values)
    values |= {"cluster": cluster, "rounds": rounds, "subwords": collect(SubwordOptions, values)}
    values["new_words"] = collect(NewWordsOptions, values)
    values["classes"] = collect(ClassesOptions, values).classes
    job = TrainJob(**values, checkpoints=kept, holdout=holdout)
    _check(job, dry_run)
    paths_of(job).stdout("--json", as_json).check()
    with reporting(quiet, log_json, append=kept.resume is not None) as reporter:
        if options.word_order and job.output_tables is None:
            reporter.message(
                "--word-order: to score text with the model later, give --output-tables FOLDER, too"
            )
        if dry_run:
            plan = plan_job(job, vocabulary, options, reporter)
        else:
            manifest = (
                train_job(job, vocabulary, options, reporter, recording_signals()).manifest or {}
            )
            reporter.message(audit_line(manifest))
            reporter.message(f"{'classes' if job.classes else 'vectors'}: {job.output}")
    if dry_run:
        show_plan(plan, as_json)
    elif as_json:
        click.echo(json.dumps(manifest))


def _check(job: TrainJob, dry_run: bool) -> None:
    unk = job.new_words.unk
    if not job.corpus and unk is not None and Path(unk).exists():
        raise UsageError(f"no corpus: --unk {unk} is its word; give --unk after the corpus")
    if not job.corpus:
        raise UsageError("no corpus; give files or folders, or - for standard input")
    if job.output is None and not dry_run:
        raise UsageError("no --output; give the file for the vectors, or --dry-run")
    if dry_run:
        check_standard_output()
    written = (job.output, job.output_context, job.output_fasttext, job.save_vocab, job.log_json)
    ignore_broken_pipe(*written, job.checkpoints.folder)

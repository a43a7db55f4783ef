"""The commands of `dcme-w2v fuse`, which train on few labels and compress classifiers."""

from typing import Any

import click

from dcme_w2v.classify.options import FeatureOptions, ShrinkOptions
from dcme_w2v.few_labels.options import FusedOptions
from dcme_w2v.files.paths import READS

from .classify import labels_option
from .command import Group
from .options import (
    arguments,
    collect,
    flag,
    json_option,
    log_json_option,
    options_of,
    output_option,
    quiet_option,
    reads_documents,
    threads_option,
)
from .streams import print_json

FEATURES = (
    "by", "features", "tokens", "ngrams", "subwords", "min_df", "weighting", "encoding_errors",
)  # fmt: skip


@click.group(cls=Group)
def fuse() -> None:
    """Train classifiers on few labels and much unlabeled text, and compress classifiers.

    `classify test`, `classify predict` and `classify explain` accept the trained models.
    """


@fuse.command(example="dcme-w2v fuse fit labeled.tsv --unlabeled texts.txt --output model")
@arguments("<labeled...")
@flag(
    "--unlabeled DOCS...",
    "unlabeled documents (labels in these files are ignored)",
    path=READS,
    group="Input",
    multiple=True,
)
@output_option("MODEL", "write the model to this file")
@options_of(FusedOptions, without=("folds", "rounds"))
@options_of(FeatureOptions, only=FEATURES, advanced=True)
@labels_option
@log_json_option
@quiet_option
@reads_documents("labeled", "unlabeled")
def fit(
    labeled: tuple[str, ...],
    unlabeled: tuple[str, ...],
    log_json: str | None,
    quiet: bool,
    **values: Any,
) -> None:
    """Train a classifier on few labeled and many unlabeled documents.

    LABELED and DOCS: files, folders or - for standard input, as in `classify train`. Documents in
    LABELED that have no label are also used as unlabeled documents.
    """
    from dcme_w2v.few_labels import jobs

    options, features = collect(FusedOptions, values), collect(FeatureOptions, values)
    job = jobs.FuseJob(labeled, unlabeled=unlabeled, log_json=log_json, **values)
    jobs.fit_files(job, features, options, not quiet and "stderr")


@fuse.command(
    example="dcme-w2v fuse shrink model --keep 1/20 --output small\n"
    "dcme-w2v fuse shrink model --max-bytes 50000 --holdout dev.tsv --output small",
)
@arguments("<model")
@output_option("MODEL", "write the model to this file")
@options_of(ShrinkOptions)
@flag(
    "--holdout DOCS...",
    "labeled documents on which to compare the original model with the small model",
    path=READS,
    multiple=True,
)
@labels_option
@threads_option
@json_option
@quiet_option
def shrink(model: str, output: str, as_json: bool, quiet: bool, **values: Any) -> None:
    """Compress a classifier: drop most weights, and round the others to a few levels.

    MODEL is a linear model from `classify train` or `fuse fit`. The model is not trained again.
    """
    from dcme_w2v.classify.small import shrink_file

    options = collect(ShrinkOptions, values)
    found = shrink_file(model, output, options, progress=not quiet and "stderr", **values)
    if as_json:
        print_json(found)
    if not quiet:
        line = (
            f"{found['bytes']:,} bytes ({found['bytes_before']:,} before): {found['pairs']:,} "
            f"weights for {found['features']:,} features in {found['levels']} levels"
        )
        if "accuracy" in found:
            line += f"; accuracy {found['accuracy']:.4f} ({found['accuracy_before']:.4f} before)"
            line += ", on the documents that chose the levels" if found["chose_levels"] else ""
        click.echo(line, err=True)

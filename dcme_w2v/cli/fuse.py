"""The command `fuse fit`, which trains on few labels."""

from typing import Any

import click

from dcme_w2v.classify.options import FeatureOptions
from dcme_w2v.few_labels.options import FusedOptions
from dcme_w2v.files.paths import READS

from .classify import labels_option
from .command import Group
from .options import (
    arguments,
    collect,
    flag,
    log_json_option,
    options_of,
    output_option,
    quiet_option,
    reads_documents,
)

FEATURES = (
    "by", "features", "tokens", "ngrams", "subwords", "min_df", "weighting", "encoding_errors",
)  # fmt: skip


@click.group(cls=Group)
def fuse() -> None:
    """Train classifiers on few labels and much unlabeled text.

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

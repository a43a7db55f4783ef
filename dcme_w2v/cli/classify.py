"""The commands ``classify train``, ``test``, ``predict`` and ``explain``."""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from dcme_w2v.classify.options import ClassifyOptions, FeatureOptions
from dcme_w2v.cli.group import Group
from dcme_w2v.cli.options import (
    collect,
    json_option,
    options_of,
    quiet_option,
    threads_option,
)

labels_option = click.option(
    "--labels", metavar="FILE", help="for .npz: a line of labels, joined by |, for each row"
)
top_option = click.option(
    "-k", "count", type=click.IntRange(1), default=1, show_default=True, metavar="N",
    help="labels a document",
)  # fmt: skip


@click.group(cls=Group)
def classify() -> None:
    """Classify documents by maximum entropy, over many classes.

    DOCS is a document a line: labels joined by |, a TAB and text; fastText's __label__x text; or,
    to predict, text alone. Vectors are taken too: .svm files, and .npz with --labels.
    """


@classify.command()
@click.argument("docs", nargs=-1, required=True)
@click.option("--output", required=True, metavar="MODEL", help="write the model's folder here")
@options_of(ClassifyOptions, FeatureOptions)
@click.option("--holdout", metavar="SHARE|FILE", help="measure every epoch by these, keep the best")
@labels_option
@click.option("--log-json", metavar="FILE", help="log start, progress, epochs and end as JSON")
@quiet_option
def train(docs: tuple[str, ...], log_json: str | None, quiet: bool, **values: Any) -> None:
    """Train a classifier on DOCS: files, folders or - for standard input."""
    from dcme_w2v.classify import pipeline
    from dcme_w2v.progress import reporting

    options = collect(ClassifyOptions, values)
    features = collect(FeatureOptions, values)
    job = pipeline.TrainJob(docs, log_json=log_json, **values)
    pipeline.paths_of(job).check()
    with reporting(quiet, log_json) as reporter:
        pipeline.train(job, features, options, reporter)
        reporter.talk(f"model: {values['output']}")


@classify.command()
@click.argument("model")
@click.argument("docs", nargs=-1, required=True)
@labels_option
@threads_option
@json_option
def test(
    model: str, docs: tuple[str, ...], labels: str | None, threads: int | None, as_json: bool
) -> None:
    """Measure MODEL on labelled DOCS.

    With one label a document: accuracy, top-5 accuracy, mean log-likelihood, micro and macro
    precision, recall and F1. With several: precision and nDCG at 1, 3, 5, coverage, label ranking
    average precision, F1 of the labels above the model's threshold. A label that the model does not
    know counts as missed.
    """
    from dcme_w2v.classify import pipeline
    from dcme_w2v.classify.model import Classifier

    found = pipeline.test(Classifier.load(model), docs, labels, threads)
    if as_json:
        click.echo(json.dumps(found))
        return
    for name, value in found.items():
        shown = f"{value:,}" if isinstance(value, int) else f"{value:.4f}"
        click.echo(f"{name.replace('_', ' ')}\t{shown}")


@classify.command()
@click.argument("model")
@click.argument("docs", nargs=-1, required=True)
@top_option
@labels_option
@threads_option
@json_option
def predict(
    model: str,
    docs: tuple[str, ...],
    count: int,
    labels: str | None,
    threads: int | None,
    as_json: bool,
) -> None:
    """Print the likeliest label of each document: label TAB probability, a line each, in order.

    With -k, further labels and probabilities follow on the same line. Labels that DOCS have are not
    looked at.
    """
    from dcme_w2v.classify import pipeline
    from dcme_w2v.classify.model import Classifier

    for found in pipeline.predict(Classifier.load(model), docs, count, labels, threads):
        pairs = [(name, round(p, 6)) for name, p in found]
        line = json.dumps(pairs) if as_json else "\t".join(f"{n}\t{p:.6f}" for n, p in pairs)
        sys.stdout.buffer.write(f"{line}\n".encode())
    sys.stdout.buffer.flush()


@classify.command()
@click.argument("model")
@click.argument("label")
@click.option("-k", "count", type=click.IntRange(1), default=20, metavar="N", help="features")
@json_option
def explain(model: str, label: str, count: int, as_json: bool) -> None:
    """Print the features of MODEL that speak most for LABEL: feature TAB weight."""
    from dcme_w2v.classify.model import Classifier

    found = Classifier.load(model).explain(label, count)
    lines = [json.dumps(found)] if as_json else [f"{name}\t{weight:.4f}" for name, weight in found]
    click.echo("\n".join(lines))

"""The commands ``latent fit`` and ``latent show``."""

from typing import Any

import click

from dcme_w2v.classify.options import FeatureOptions
from dcme_w2v.files.paths import READS
from dcme_w2v.latent.options import LatentOptions

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

FEATURES = ("features", "ngrams", "min_df", "max_df", "weighting")


@click.group(cls=Group)
def latent() -> None:
    """Fit latent classes: clusters of documents, or subtopics of labels.

    DOCS has one document per line: labels joined by |, a tab and text; or text alone. A line that
    begins with a tab has no label. DOCS can also be sparse vectors: .svm files, or .npz and .mtx
    files with --labels.
    """


@latent.command(
    "fit",
    example="dcme-w2v latent fit docs.txt --unsupervised --latent 10 --output clusters\n"
    "dcme-w2v latent fit docs.tsv --output model",
)
@arguments("<docs...")
@output_option("MODEL", "write the model to this file")
@options_of(LatentOptions)
@options_of(FeatureOptions, only=FEATURES, advanced=True)
@flag(
    "--holdout SHARE|FILE",
    "held-out documents for evaluation: a fraction of the labeled documents, or a file",
    path=READS,
    group="Input",
)
@flag(
    "--choose N,N,...",
    "try these numbers of latent classes, and keep the model with the highest held-out "
    "log-likelihood",
    group="Model",
    advanced=True,
)
@labels_option
@log_json_option
@quiet_option
@reads_documents("docs")
def fit(docs: tuple[str, ...], log_json: str | None, quiet: bool, **values: Any) -> None:
    """Fit latent classes to documents with or without labels.

    DOCS: files, folders or - for standard input; the input may be compressed. `classify test`,
    `classify predict` and `classify explain` accept the trained model.
    """
    from dcme_w2v.latent import jobs

    options, features = collect(LatentOptions, values), collect(FeatureOptions, values)
    job = jobs.LatentJob(docs, log_json=log_json, **values)
    jobs.fit_files(job, features, options, not quiet and "stderr")


@latent.command("show", example="dcme-w2v latent show clusters --documents docs.txt")
@arguments("<model")
@flag(
    "-k N",
    "number of words, labels and documents to print per latent class",
    name="count",
    default=10,
    low=1,
)
@flag(
    "--documents DOCS",
    "also print the documents in these files that are most typical of each latent class",
    path=READS,
)
@threads_option
@json_option
@reads_documents("documents")
def show(model: str, count: int, documents: str | None, threads: int | None, as_json: bool) -> None:
    """Print the share of documents, the labels and the specific words of each latent class.

    Prints one line per class, with fields separated by tabs: the number of the class, its share,
    its labels with their probabilities, and its specific words, which are more frequent in this
    class than in others and neither rare nor common. With --documents, lines for documents follow
    the line of their class. They begin with a tab and contain the probability, number and text of a
    document.
    """
    from dcme_w2v.latent.jobs import typical_documents
    from dcme_w2v.latent.model import LatentClassifier

    loaded = LatentClassifier.load(model)
    found = loaded.describe(count)
    if documents is not None:
        typical = typical_documents(loaded, [documents], count, threads)
        for one, own in zip(found, typical, strict=True):
            one["documents"] = own
    if as_json:
        print_json(found)
        return
    for one in found:
        labels = " ".join(f"{name}:{value:.3f}" for name, value in one["labels"] if value >= 0.001)
        words = " ".join(name for name, _ in one["words"])
        click.echo(f"{one['class']}\t{one['share']:.4f}\t{labels}\t{words}")
        for document in one.get("documents", ()):
            text = " ".join(document.get("text", "").split())[:200]
            click.echo(f"\t{document['probability']:.4f}\t{document['document']}\t{text}")

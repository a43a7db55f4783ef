"""The commands ``classify train``, ``test``, ``predict``, ``explain`` and ``shrink``."""

from typing import Any

import click

from dcme_w2v.classify.options import (
    ClassifyOptions,
    ContinueOptions,
    DistributeOptions,
    DocumentHoldoutOptions,
    FeatureOptions,
    ShrinkOptions,
    TuneOptions,
    class_weights_of,
)
from dcme_w2v.files.paths import READS, TEXT, WRITES
from dcme_w2v.options import CheckpointOptions, SeedsOptions

from .command import Group
from .options import (
    arguments,
    collect,
    dry_run_option,
    flag,
    json_option,
    log_json_option,
    options_of,
    output_option,
    quiet_option,
    reads_documents,
    seeds_option,
    show_plan,
    threads_option,
)
from .streams import print_json

# options that are available only in Python
INNER = ("batch", "min_lr", "tolerance", "max_df")

probability_option = flag(
    "--min-probability P",
    "omit labels with a probability below P, even if a document then has no label",
    type=float,
)
labels_option = flag(
    "--labels FILE",
    "label file for .npz or .mtx rows (one line per row, labels separated by |)",
    path=READS,
    group="Input",
    advanced=True,
)
top_option = flag(
    "-k N",
    "number of labels to print per document; 0 prints all above the threshold (multi-label models)",
    name="count",
    default=1,
    low=0,
)


@click.group(cls=Group)
def classify() -> None:
    """Classify documents by maximum entropy (multinomial logistic regression).

    DOCS has one document per line: labels joined by |, a tab and text; fastText's __label__x text;
    or, to predict, text alone. DOCS can also be sparse vectors: .svm files, or .npz and .mtx files
    with --labels. A folder may contain one subfolder per class. With --by token, DOCS are sentences
    in CoNLL columns (token, ..., tag), separated by empty lines.
    """


@classify.command(example="dcme-w2v classify train train.tsv --output model --holdout 0.1")
@arguments("<docs...")
@output_option("MODEL", "write the model to this file")
@options_of(ClassifyOptions, FeatureOptions, without=INNER)
@options_of(TuneOptions, ContinueOptions, DocumentHoldoutOptions, CheckpointOptions)
@options_of(DistributeOptions)
@options_of(ShrinkOptions, only=["max_bytes"])
@flag(
    "--class-weight balanced|LABEL=W",
    "document weight W for LABEL (repeatable), or balanced (equal total weight for each label)",
    multiple=True,
    group="Objective",
)
@flag(
    "--init MODEL",
    "continue training this model on DOCS, which can contain new labels and words",
    path=READS,
)
@labels_option
@log_json_option
@options_of(SeedsOptions, advanced=True)
@dry_run_option
@json_option
@quiet_option
@reads_documents("docs", columns=["text_column", "label_column", "sample_weight_column"])
def train(
    docs: tuple[str, ...],
    log_json: str | None,
    class_weight: tuple[str, ...],
    dry_run: bool,
    as_json: bool,
    quiet: bool,
    **values: Any,
) -> None:
    """Train a classifier on labeled documents.

    DOCS: files, folders or - for standard input; the input may be compressed. Each line is "label
    TAB text"; if a document has several labels, join them by |. Text is split into lowercase words
    unless --tokens is given. On SIGINT or SIGTERM, training saves its state and stops.
    """
    from dcme_w2v.classify import train as training

    from .signals import recording_signals

    options, features = collect(ClassifyOptions, values), collect(FeatureOptions, values)
    distribute, remote = collect(DistributeOptions, values), None
    if distribute.cluster is not None:
        from dcme_w2v.cluster.distribute import Distributed

        remote = Distributed(distribute)
    job = training.TrainJob(
        docs,
        log_json=log_json,
        holdout=collect(DocumentHoldoutOptions, values),
        tune=collect(TuneOptions, values),
        fade=collect(ContinueOptions, values).fade,
        checkpoints=collect(CheckpointOptions, values),
        class_weight=class_weights_of(class_weight),
        **values,
    )
    found = training.train(
        job,
        features,
        options,
        progress=not quiet and "stderr",
        signals=recording_signals(),
        remote=remote,
        dry_run=dry_run,
    )
    if dry_run:
        show_plan(found, as_json)
    elif as_json:
        print_json(found.record)


@classify.command(example="dcme-w2v classify test model test.tsv")
@arguments("<model <docs...")
@flag(
    "--clustering",
    "compare predicted classes, treated as clusters, with the labels (NMI, Rand index, accuracy)",
)
@flag("--per-class", "also print the precision, recall, F1 and document count of each label")
@flag(
    "--calibration",
    "also print the observed accuracy for each range of predicted probabilities",
)
@flag(
    "--confusion FILE",
    "write the confusion matrix to this file as a table",
    path=TEXT,
    group="Output",
)
@probability_option
@labels_option
@threads_option
@seeds_option
@json_option
@reads_documents("docs")
def test(model: str, docs: tuple[str, ...], as_json: bool, **values: Any) -> None:
    """Evaluate a classifier on labeled documents.

    With one label per document, prints accuracy, top-5 accuracy, mean log-likelihood, and micro and
    macro precision, recall and F1. With several labels per document, prints precision, R-precision
    and nDCG at 1, 3 and 5, precision weighted by propensities, coverage, label ranking average
    precision, and F1 of the labels above the model's threshold. A label that did not occur in the
    training documents counts as an error. The clusters of `latent fit --unsupervised` are compared
    with the first label of each document. For a model trained --by token, the measures are the
    accuracy of tags, and the precision, recall and F1 of entities with exact spans. With
    --min-probability, the command also prints the share of documents that get a label and the
    accuracy on these documents. With --calibration, a table compares the predicted probabilities
    with how often the labels are right. The table contains the best label of each document or, with
    several labels per document, all labels with a probability of at least .01.
    """
    from dcme_w2v.classify.model import load_classifier
    from dcme_w2v.classify.predict import test

    found = test(load_classifier(model), docs, **values)
    if as_json:
        print_json(found)
        return
    each, ranges = found.pop("per_class", []), found.pop("calibration", [])
    for name, value in found.items():
        shown = f"{value:,}" if isinstance(value, int) else f"{value:.4f}"
        click.echo(f"{name.replace('_', ' ')}\t{shown}")
    if each:
        click.echo("\nlabel\tprecision\trecall\tF1\tdocuments")
    for one in each:
        label, *figures, count = one.values()
        click.echo("\t".join([label, *(f"{x:.4f}" for x in figures), f"{count}"]))
    if ranges:
        click.echo("\nprobability\tmean\tobserved\tnumber")
    for one in ranges:
        low, high, count, *figures = one.values()
        shown = "\t".join(f"{x:.4f}" for x in figures)
        click.echo(f"{low:.1f} to {high:.1f}\t{shown}\t{count:,.0f}")


@classify.command(
    example="dcme-w2v classify predict model test.tsv -k 3\n"
    "cat texts.txt | dcme-w2v classify predict model"
)
@arguments("<model |docs...")
@top_option
@probability_option
@labels_option
@threads_option
@flag(
    "-o,--output FILE",
    "write predictions to this file (with named columns in .csv, .parquet and .jsonl files)",
    path=WRITES,
    group="Output",
)
@json_option
@reads_documents("docs", columns=["text_column", "label_column", "keep"])
def predict(model: str, docs: tuple[str, ...], **values: Any) -> None:
    """Print the most probable labels of documents.

    Prints one line per document, in input order, with the label and its probability, separated by a
    tab. With -k, further labels and probabilities follow on the same line. Labels in DOCS are
    ignored. A model trained --by token prints token, tag and probability, one line per token, and
    an empty line after each sentence. Without DOCS, documents are read from standard input, and
    each prediction is printed as soon as the document's line arrives. With --json, each document or
    sentence is an object on its own line. --keep copies columns of an input table to the output.
    """
    from dcme_w2v.classify.model import load_classifier
    from dcme_w2v.classify.predict import write_predictions

    write_predictions(load_classifier(model), docs, **values)


@classify.command(
    example="dcme-w2v classify explain model sci.space\n"
    'dcme-w2v classify explain model --text "a rocket to the moon"',
)
@arguments("<model [label]")
@flag(
    "--text TEXT",
    "show which features of this text favor the best label over the second-best label",
)
@flag("-k N", "number of features to print", name="count", default=20, show_default=False, low=1)
@json_option
def explain(model: str, label: str | None, text: str | None, count: int, as_json: bool) -> None:
    """Print the highest-weighted features of a class, or the features that decide a text's label.

    Prints one line per feature, with the feature and its weight, separated by a tab, in descending
    order of weight. With --text, the first line contains the score of LABEL (default: the most
    probable label) minus the score of the most probable other label. The next lines contain the
    contributions of features, which add up to this difference.
    """
    from dcme_w2v.classify.model import load_classifier

    found = load_classifier(model).explain(text, label, count)
    if as_json:
        print_json({**vars(found), "features": found})
        return
    lines = list(found)
    if found.against is not None:
        total = sum(part for _, part in lines) + found.rest
        lines = [(f"{found.label} - {found.against}", total), *lines, ("(the rest)", found.rest)]
    click.echo("\n".join(f"{name}\t{weight:.4f}" for name, weight in lines))


@classify.command(
    example="dcme-w2v classify shrink model --keep 1/20 --output small\n"
    "dcme-w2v classify shrink model --max-bytes 50000 --holdout dev.tsv --output small",
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

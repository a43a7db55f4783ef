"""The commands for vector files: convert, check, info, classes, plot and explore."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from dcme_w2v.errors import UsageError
from dcme_w2v.files.paths import READS, TEXT
from dcme_w2v.options import TokenizerOptions
from dcme_w2v.words.options import ConvertOptions

from .command import command
from .options import (
    arguments,
    collect,
    flag,
    given_options,
    json_option,
    options_of,
    output_option,
    quiet_option,
    threads_option,
)
from .streams import print_json

FOLDER = "sentence-transformers"
# Tokenizer options for `convert`, except --normalize, which the manifest records.
RULE = ("tokenize", "keep_case", "strip_accents", "digits", "punctuation")


KV = (
    "--to=kv: gensim's .kv files are Python pickles and cannot be written; convert to .bin, "
    "then in Python: gensim.models.KeyedVectors.load_word2vec_format(BIN, binary=True).save(KV)"
)


@command(guarded=False, example="dcme-w2v convert vectors.safetensors vectors.bin")
@arguments("<source=IN >target=OUT")
@options_of(TokenizerOptions, only=RULE)
@options_of(ConvertOptions)
@flag(
    "--pooling static|mean",
    "vectors to export with --to: static (weighted for averaging; default) or mean (unweighted)",
    group="Output",
)
def convert(source: str, target: str, **values: Any) -> None:
    """Convert word vectors to text, binary, safetensors, a table or another program's folder.

    The format of IN is detected from its content; the suffix of OUT determines the output format.
    IN may be compressed (gzip, bzip2, xz, zstd), and may lack a header (as GloVe files do) or
    newlines after binary vectors. - is standard input or standard output. X.parquet and X.jsonl are
    tables with columns word, count and vector (a list), which vector databases can load but this
    program cannot read.
    """
    import dcme_w2v as dw
    from dcme_w2v.words.convert import convert as converted

    if values["to"] == "kv":
        raise UsageError(KV)
    options = collect(ConvertOptions, values)
    if options.to == "tsv":
        options = replace(options, to=None, format=options.format or "tsv")
    wanted = {name: one for name, one in values.items() if one is not None and name not in RULE}
    if {*given_options()} & {*RULE}:
        wanted["tokenize"] = {name: values[name] for name in RULE}
    changed = options.unit or options.postprocess != "none" or options.invalid != "error"
    if options.to is None and wanted:
        raise UsageError(
            f"--pooling and --tokenize are supported only with --to={FOLDER}; add --to={FOLDER}"
        )
    if options.to is None:
        saved = converted(source, target, options, "stderr")
    elif options.format or changed:
        raise UsageError(
            f"--to={FOLDER} is not supported with options that change the vectors; omit --format, "
            "--unit, --postprocess and --invalid"
        )
    else:
        numbers = options.quantize or "float32"
        wanted |= {"dim": options.reduce, "limit": options.limit, "numbers": numbers}
        saved = dw.save_sentence_model(source, target, **wanted)
        if "pooling" not in wanted:
            note = (
                "the rows are weighted for sentences; --pooling mean keeps the neighbors of words"
            )
            click.echo(f"{target}: {note}", err=True)
        if "tokenize" not in wanted and (saved.manifest or {})["tokenizer"] is None:
            note = "the tokenizer splits text only at whitespace; use --tokenize words for raw text"
            click.echo(f"{target}: {note}", err=True)
    click.echo(f"{len(saved):,} vectors of {saved.dim} dimensions written to {target}", err=True)


@command(example="dcme-w2v check vectors.bin")
@arguments("<file")
@json_option
@click.pass_context
def check(context: click.Context, file: str, as_json: bool) -> None:
    """Check a word-vector file, or a model such as a search index, for faults.

    The file may have any supported format, and may be compressed. For a model, the command checks
    that the model can be loaded. For vectors, the command prints the format, the number of rows and
    the number of dimensions, and then each kind of fault with its count and first position: rows
    with another number of dimensions, NaN or infinite numbers, and words that are empty, repeated
    or not UTF-8. The exit code is 0 if there are no faults, and otherwise 1.
    """
    import dcme_w2v as dw

    report = dw.check(file)
    lines = [f"{report.file}: {report.format or 'unknown format'}"]
    if not (report.format or "").startswith("model"):
        lines += [f"rows: {report.rows}", f"dimension: {report.dimension}"]
    for fault in report.faults:
        detail = f" ({fault.detail})" if fault.detail else ""
        lines.append(f"{fault.kind}: {fault.count}, first at {fault.place}{detail}")
    text = "\n".join(lines if report.faults else [*lines, "OK"])
    print_json(report.as_dict()) if as_json else click.echo(text)
    context.exit(1 if report.faults else 0)


@command(example="dcme-w2v info vectors.bin")
@arguments("<file")
@json_option
def info(file: str, as_json: bool) -> None:
    """Print the contents of a file or folder, and the command that created it.

    FILE: word vectors in any format, a model, or a folder of checkpoints. Prints the header of the
    file and the record in it: the options and, if recorded, the command.
    """
    import dcme_w2v as dw
    from dcme_w2v.contents import as_text

    facts = dw.info(file)
    print_json(facts, indent=2) if as_json else click.echo(as_text(facts))


@command(
    "classes",
    example="dcme-w2v classes vectors.bin --classes 500 --output classes.txt\n"
    "dcme-w2v classes vectors.bin --classes 500 --output - | sort -k 2 -n",
)
@arguments("<vectors")
@flag(
    "--classes N",
    "number of word classes (clusters of word vectors)",
    low=1,
    required=True,
)
@output_option("FILE", "write the classes to this file (- for standard output)", TEXT)
@flag("--limit N", "cluster only the first N words, normally the most frequent words", low=1)
@flag("--seed N", "random seed", default=1, low=0)
@threads_option
def classes(vectors: str, classes: int, output: str, limit: int | None, **values: Any) -> None:
    """Cluster words by running k-means on their vectors.

    Writes lines "word class" in the order of VECTORS, as word2vec.c does with the option -classes.
    Vectors are scaled to unit length, so that the words in a class have vectors with similar
    directions. The first word is in class 0. The result does not depend on --threads.
    """
    import dcme_w2v as dw
    from dcme_w2v.words.classes import save_classes

    loaded = dw.Vectors.load(vectors, limit=limit)
    found = dw.classes(loaded, classes, **values)
    save_classes(output, loaded.words, found)
    click.echo(f"{len(found):,} words in {int(found.max()) + 1:,} classes", err=True)


@command(
    example="dcme-w2v plot train.log other.log --output curves.svg\n"
    "dcme-w2v plot vectors.safetensors --words 'king queen man woman' --output words.png\n"
    "dcme-w2v plot rows.npz --labels rows.labels --output rows.png",
)
@arguments("<files...")
@output_option("PNG", "write the plot to this file: .png, .pdf or .svg (- for standard output)")
@flag(
    "--field NAME",
    "log field to plot, such as lr (repeatable; default: losses and log-probabilities)",
    name="fields",
    multiple=True,
)
@flag("--words WORDS", "words to plot, separated by spaces")
@flag(
    "--labels FILE",
    "file with one label per line, in row order; the labels determine the colors",
    path=READS,
)
@flag("--limit N", "number of words (default: 100) or rows (default: 2000) to plot", low=3)
@flag("--method tsne|pca", "projection method (default: tsne)")
@flag("--seed N", "random seed (default: 1)", low=0, high=2**32 - 1)
def plot(files: tuple[str, ...], output: str, **values: Any) -> None:
    """Plot learning curves, reliability diagrams, or a two-dimensional map of words or rows.

    FILES: one or several logs from --log-json, or one or several outputs of `classify test
    --calibration --json`; or word vectors in any format, or rows (X.npz, X.svm). The command
    requires the packages matplotlib and openTSNE.
    """
    import dcme_w2v as dw

    dw.plot(files, output, **values)


@command(
    example="dcme-w2v explore vectors.safetensors --output page.html\n"
    "dcme-w2v explore before.safetensors after.safetensors --output page.html",
)
@arguments("<vectors...")
@output_option("HTML", "write the page to this file (- for standard output)")
@flag(
    "--labels FILE",
    "file with labels (one line per row, columns separated by tabs)",
    path=READS,
)
@flag(
    "--color N",
    "column of --labels that determines the colors; the other columns become document titles",
    default=1,
    low=1,
)
@flag("--method tsne|pca", "projection method", default="tsne")
@flag(
    "--limit N",
    "show at most the first N rows of each file",
    default=50_000,
    low=3,
)
@flag("--seed N", "random seed", default=1, low=0, high=2**32 - 1)
@quiet_option
def explore(vectors: tuple[str, ...], output: str, quiet: bool, **options: Any) -> None:
    """Write an HTML page for exploring vectors: neighbors, analogies and a map.

    VECTORS: one or two files of word vectors in any format, or of document rows (.npz, .svm). The
    page is a single file that browsers can open from disk, without a network. t-SNE requires the
    package openTSNE.
    """
    import dcme_w2v as dw

    dw.explore(vectors, output, progress=not quiet and "stderr", **options)

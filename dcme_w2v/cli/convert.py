"""`dcme-w2v convert`: convert word vectors between formats."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dcme_w2v.errors import UsageError
from dcme_w2v.files.atomic import is_stream
from dcme_w2v.files.paths import Paths
from dcme_w2v.options import TokenizerOptions
from dcme_w2v.sentences.options import CardOptions
from dcme_w2v.words.options import OutputOptions, PostprocessOptions

from .command import command
from .options import arguments, collect, given_options, option_of, options_of

if TYPE_CHECKING:
    from dcme_w2v.words.vectors import Vectors

FOLDER = "sentence-transformers"
# --normalize is unit length here; another normal form than NFC comes from the manifest.
RULE = ("tokenize", "keep_case", "strip_accents", "digits", "punctuation")


def _rule(command: Any) -> Any:
    for name in reversed(RULE):
        command = option_of(TokenizerOptions, name)(command)
    return command


@command(example="dcme-w2v convert vectors.npy vectors.bin")
@arguments("source=IN target=OUT")
@option_of(OutputOptions, "format")
@options_of(PostprocessOptions)
@_rule
@options_of(CardOptions)
def convert(source: str, target: str, **values: Any) -> None:
    """Convert word vectors between text, binary, npy and folders of sentence-transformers.

    The format of IN is detected from its content. IN may be compressed (gzip, bzip2, xz, zstd),
    have no header (GloVe), or no newlines after binary vectors. - is standard input or output. The
    words of X.npy are in X.vocab in the same folder.
    """
    from dcme_w2v import Vectors
    from dcme_w2v.formats.vectors.vectors_io import format_of, read_with, written_with
    from dcme_w2v.words.exports import KV, changed_by, export, exported_with

    if values["to"] == "kv" or target.lower().endswith(".kv"):
        raise UsageError(KV)
    chosen = OutputOptions(format=values.pop("format")).format
    options, card = collect(PostprocessOptions, values), collect(CardOptions, values)
    text = {name: values.pop(name) for name in RULE}
    rule = TokenizerOptions(**text) if {*given_options()} & {*RULE} else None
    if options.to == FOLDER:
        _to_folder(source, target, options, card, rule, chosen)
        return
    if rule is not None or card != CardOptions():
        raise UsageError(f"--tokenize, --language, --license, --scores: are for --to={FOLDER}")
    paths = Paths().reads("IN", source, sidecars=read_with(source))
    to = options.to
    if to is None and chosen is None and target.lower().endswith(".safetensors"):
        to = "safetensors"
    sidecars = written_with(target, chosen) if to is None else exported_with(target, to)
    paths.writes("OUT", target, sidecars).check()
    if options.no_header and (chosen or format_of(target)) != "text":
        raise UsageError(f"--no-header: is for text; {target} has another format")
    if options.quantize and to != "safetensors":
        raise UsageError(
            f"--quantize: is for safetensors; name OUT .safetensors instead of {target}"
        )
    if options.quantize == "float16":
        raise UsageError(f"--quantize=float16: is for --to={FOLDER}")
    vectors = _loaded(source, options)
    changed, notes = changed_by(options, vectors.vectors)
    for note in notes:
        click.echo(f"{source}: {note}", err=True)
    if changed is not vectors.vectors:
        vectors = Vectors(vectors.words, changed, vectors.counts, manifest=vectors.manifest)
    if to is None:
        vectors.save(target, chosen, header=not options.no_header)
    else:
        for note in export(target, vectors, to, options.quantize):
            click.echo(f"{source}: {note}", err=True)
    click.echo(f"{len(vectors)} vectors of {vectors.dim} written to {target}", err=True)


def _to_folder(
    source: str,
    target: str,
    options: PostprocessOptions,
    card: CardOptions,
    rule: TokenizerOptions | None,
    format: str | None,
) -> None:
    """Write a folder of static embeddings."""
    from dcme_w2v.sentences.folder import save_sentence_model

    if format or options.normalize or options.postprocess != "none" or options.invalid != "error":
        raise UsageError(
            f"--to={FOLDER}: pools the vectors as they are; leave out --format, --normalize, "
            "--postprocess and --invalid"
        )
    saved = save_sentence_model(
        source,
        target,
        tokenize=rule,
        dim=options.reduce,
        limit=options.limit,
        numbers=options.quantize or "float32",
        card=card,
    )
    if rule is None and (saved.manifest or {})["tokenizer"] is None:
        click.echo(
            f"{target}: splits text at whitespace only; --tokenize words is for raw text", err=True
        )
    click.echo(f"{len(saved)} vectors of {saved.dim} written to {target}", err=True)


def _loaded(source: str, options: PostprocessOptions) -> Vectors:
    """Read vectors; with --invalid, report what was left out or corrected."""
    from dcme_w2v import Vectors
    from dcme_w2v.words.check import load_repaired

    if options.invalid == "error":
        return Vectors.load(source, limit=options.limit)
    if is_stream(source) or Path(source).is_dir():
        kind = "stream" if is_stream(source) else "folder"
        raise UsageError(f"--invalid: {source} is a {kind}; give a file")
    vectors, faults = load_repaired(source, options.invalid)
    for what, count in faults.items():
        click.echo(f"{source}: {count:,} {what}", err=True)
    return vectors[: options.limit]

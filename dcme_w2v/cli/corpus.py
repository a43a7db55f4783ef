"""The commands ``vocab`` and ``phrases``, which read a corpus without training."""

from __future__ import annotations

from typing import Any

import click

from dcme_w2v.errors import UsageError
from dcme_w2v.files.paths import READS, TEXT
from dcme_w2v.options import ClusterOptions, VocabularyOptions
from dcme_w2v.text.options import READING, PhraseOptions

from .command import command
from .options import (
    arguments,
    flag,
    json_option,
    options_of,
    output_option,
    quiet_option,
    threads_option,
)
from .streams import print_json


@command(example="dcme-w2v vocab corpus.txt --output corpus.vocab")
@arguments("<corpus...")
@output_option("FILE", "write the counts to this file (- for standard output)", TEXT)
@flag(
    "--merge",
    "add up the counts in CORPUS, which must be files written by this command",
    name="merging",
    group="Input",
)
@threads_option
@json_option
@options_of(VocabularyOptions, ClusterOptions)
def vocab(
    corpus: tuple[str, ...],
    output: str,
    merging: bool,
    as_json: bool,
    **values: Any,
) -> None:
    """Count the words in a corpus.

    CORPUS: files, folders or - for standard input; the input may be compressed. Writes lines "word
    count", the most frequent word first. --merge adds up the counts in several files that this
    command wrote. To write files for merging, use --min-count 1, so that no word is dropped before
    merging. With --cluster, workers count parts of the corpus, and the result is the same.
    """
    import dcme_w2v as dw
    from dcme_w2v.formats.corpus import CorpusPaths

    found = dw.vocab(CorpusPaths(corpus), merge=merging, progress="stderr", **values)
    found.save(output)
    if as_json:
        print_json(found.figures)
    else:
        click.echo(
            "{tokens} tokens, {types} types, {kept} kept".format_map(found.figures), err=True
        )


@command(
    word2vec=True,
    example="dcme-w2v phrases corpus.txt --output joined.txt --passes 2\n"
    "dcme-w2v phrases corpus.txt --output - | dcme-w2v train - --output vectors.bin",
)
@arguments("<[corpus]...")
@output_option(
    "FILE", "write the text with joined phrases to this file (- for standard output)", TEXT
)
@options_of(PhraseOptions)
@flag(
    "--save-table FILE",
    "write all phrases, with their counts and scores, to this file",
    path=TEXT,
    group="Output",
)
@flag(
    "--read-table FILE",
    "join the phrases listed in this table instead of finding phrases in CORPUS",
    path=READS,
    group="Input",
)
@options_of(VocabularyOptions, only=READING)
@threads_option
@json_option
@quiet_option
def phrases(
    corpus: tuple[str, ...],
    output: str,
    read_table: str | None,
    as_json: bool,
    quiet: bool,
    **values: Any,
) -> None:
    """Join phrases in a text, such as new york to new_york.

    CORPUS: files, folders or - for standard input; the input may be compressed. Joins pairs of
    words that occur together in lines more often than by chance. Lines without tokens are dropped.
    The table that --save-table writes contains the pass, left side, right side, count and score of
    each phrase, separated by tabs. --read-table joins the phrases in a saved table in other text.
    Command lines of word2phrase work unchanged. The command keeps all distinct words in memory, and
    pair counts up to the limit --memory.
    """
    import dcme_w2v as dw
    from dcme_w2v.formats.corpus import CorpusPaths

    if not corpus:
        raise UsageError("no corpus was given; pass files or folders, or - for standard input")
    progress = not quiet and "stderr"
    found = dw.phrases(
        CorpusPaths(corpus), output, read_table=read_table, progress=progress, **values
    )
    figures = {
        "lines": found.lines,
        "tokens": found.tokens,
        "joined": found.joined,
        "phrases": [len(one) for one in found.passes],
        "reads": list(found.reads),
        "options": {"read_table": read_table} if read_table else vars(found.options),
    }
    if as_json:
        print_json(figures)
    elif not quiet:
        counts = f"{found.lines:,} lines, {found.tokens:,} tokens, {found.joined:,} joined"
        click.echo(counts, err=True)

"""The command ``phrases``: join words that occur together more often than by chance."""

from typing import Any

import click

from dcme_w2v.errors import UsageError
from dcme_w2v.files.paths import Paths
from dcme_w2v.options import TokenizerOptions, VocabularyOptions
from dcme_w2v.text.options import PhraseOptions

from .command import command
from .options import (
    arguments,
    flag,
    json_option,
    option_of,
    options_of,
    output_option,
    quiet_option,
    threads_option,
)
from .streams import ignore_broken_pipe, print_json


@command(
    word2vec=True,
    example="dcme-w2v phrases corpus.txt --output joined.txt --passes 2\n"
    "dcme-w2v phrases corpus.txt --output - | dcme-w2v train - --output vectors.bin",
)
@arguments("[corpus]...")
@output_option("FILE", "write the text here; - is stdout")
@options_of(PhraseOptions, TokenizerOptions)
@flag("--save-table FILE", "write the table of phrases to this file", group="Output")
@flag("--read-table FILE", "join the phrases of this table only", group="Input")
@option_of(VocabularyOptions, "text_column")
@option_of(VocabularyOptions, "sentences")
@option_of(VocabularyOptions, "encoding_errors")
@option_of(VocabularyOptions, "allow_truncated")
@option_of(VocabularyOptions, "allow_binary")
@option_of(VocabularyOptions, "strict")
@flag(
    "--cache-dir FOLDER",
    "folder for the encoded corpus (default: for temporary files)",
    group="Run",
    advanced=True,
)
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
    """Join phrases in a text: new york becomes new_york.

    CORPUS: files, folders or - for standard input, also compressed. Joins pairs of words that occur
    together more often than by chance, within lines. Lines without tokens are dropped. The table
    has pass, left side, right side, count and score of each phrase, separated by tabs; --read-table
    joins the same phrases in other text. Command lines of word2phrase work unchanged. Memory holds
    all words of the text, and the counts of pairs, for which --memory is the limit.
    """
    from dcme_w2v import phrases as join_phrases
    from dcme_w2v.formats.sentences import CorpusPaths
    from dcme_w2v.training.progress import reporting

    if not corpus:
        raise UsageError("no corpus; give files or folders, or - for standard input")
    Paths().writes("--output", output).stdout(as_json).check()
    ignore_broken_pipe(output, values["save_table"])
    with reporting(quiet) as reporter:
        found = join_phrases(
            CorpusPaths(corpus),
            output,
            read_table=read_table,
            progress=reporter,
            **values,
        )
    figures = {
        "lines": found.lines,
        "tokens": found.tokens,
        "joined": found.joined,
        "phrases": [len(one) for one in found.table.passes],
        "reads": list(found.reads),
        "options": {"read_table": read_table} if read_table else vars(found.options),
    }
    if as_json:
        print_json(figures)
    elif not quiet:
        click.echo("{lines} lines, {tokens} tokens, {joined} joined".format_map(figures), err=True)

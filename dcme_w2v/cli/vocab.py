"""The command ``vocab``: count words, or merge files of counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from dcme_w2v.declarations import default_threads
from dcme_w2v.errors import UsageError
from dcme_w2v.files.paths import Paths
from dcme_w2v.options import ClusterOptions, VocabularyOptions

from .command import command
from .options import (
    arguments,
    collect,
    flag,
    json_option,
    options_of,
    output_option,
    threads_option,
)
from .streams import print_json

if TYPE_CHECKING:
    from dcme_w2v.formats.vocabulary import Vocabulary
    from dcme_w2v.text.encode import CountedCorpus


@command(example="dcme-w2v vocab corpus.txt --output corpus.vocab")
@arguments("corpus...")
@output_option("FILE", "write the counts to this file; - is stdout")
@flag(
    "--merge",
    "merge files of counts: CORPUS are files that this command wrote",
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
    threads: int | None,
    as_json: bool,
    **kwargs: Any,
) -> None:
    """Count the words of a corpus.

    CORPUS: files, folders or - for standard input, also compressed. Writes lines "word count", the
    most frequent word first. --merge adds the counts of such files; count the parts with
    --min-count 1, so that no word is dropped before merging. --cluster counts parts of the corpus
    on workers and adds the counts up: the result is the same.
    """
    options, cluster = collect(VocabularyOptions, kwargs), collect(ClusterOptions, kwargs)
    if merging and cluster.cluster is not None:
        raise UsageError(f"--cluster={cluster.cluster}: is not supported with --merge; omit one")
    paths = Paths().reads("CORPUS", *corpus).writes("--output", output)
    paths.stdout(as_json).check()
    if merging:
        vocabulary, summary = _merge(corpus, options)
    else:
        vocabulary, summary = _count(corpus, options, threads or default_threads(), cluster)
    vocabulary.save(output)
    if as_json:
        print_json(summary)
    else:
        figures = "{tokens} tokens, {types} types, {kept} kept".format_map(summary)
        if undercount := summary.get("undercount"):
            figures += f", counts too low by {undercount} at most (--max-vocab bounds counting)"
        click.echo(figures, err=True)


def _count(
    corpus: tuple[str, ...], options: VocabularyOptions, threads: int, cluster: ClusterOptions
) -> tuple[Vocabulary, dict[str, Any]]:
    from dcme_w2v.cluster.shards import count_on
    from dcme_w2v.text.encode import count
    from dcme_w2v.training.progress import reporting

    counted: CountedCorpus
    if cluster.cluster is not None:
        counted = count_on(cluster, corpus, options)
    else:
        with reporting() as reporter:
            counted = count(corpus, options, threads=threads, reporter=reporter)
    left = ("vocabulary", "future")
    summary = {key: value for key, value in vars(counted).items() if key not in left}
    return counted.vocabulary, {**summary, "kept": len(counted.vocabulary)}


def _merge(files: tuple[str, ...], options: VocabularyOptions) -> tuple[Vocabulary, dict[str, Any]]:
    from dcme_w2v.formats.vocabulary import Vocabulary, merge

    everything = merge([Vocabulary.load(file) for file in files])
    vocabulary = everything.pruned(options)
    tokens, kept = int(everything.counts.sum()), int(vocabulary.counts.sum())
    return vocabulary, {
        "tokens": tokens,
        "types": len(everything),
        "out_of_vocabulary": tokens - kept,
        "kept": len(vocabulary),
    }

"""The commands of `dcme-w2v eval`, which evaluate word vectors on test sets or text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from dcme_w2v.files.paths import READS
from dcme_w2v.options import TokenizerOptions
from dcme_w2v.sentences.options import EncodeOptions
from dcme_w2v.words.options import ANALOGY_METHODS

from .command import Group
from .options import (
    arguments,
    chosen_tokenizer,
    flag,
    json_option,
    options_of,
    reads_documents,
    seeds_option,
)
from .streams import print_json

if TYPE_CHECKING:
    from dcme_w2v.words.evaluate import AnalogyScore


@click.group("eval", cls=Group)
def evaluate() -> None:
    """Evaluate word vectors on analogies, word similarity or held-out text."""


@evaluate.command("analogies", example="dcme-w2v eval analogies vectors.bin questions-words.txt")
@arguments("<vectors <questions")
@flag(
    "--limit N",
    "restrict questions and answers to the N most frequent words",
    default=30_000,
    low=1,
)
@flag(
    f"--method {'|'.join(ANALOGY_METHODS)}",
    "scoring method: 3cosadd (adds and subtracts similarities) or 3cosmul (multiplies and divides)",
    default=ANALOGY_METHODS[0],
)
@seeds_option
@json_option
def analogies(vectors: str, questions: str, as_json: bool, **values: Any) -> None:
    """Evaluate word vectors on analogy questions.

    QUESTIONS contains one question per line, "a b c d"; a line ": NAME" starts a section; - is
    standard input. 3cosadd scores an answer x by cos(x, b - a + c), and 3cosmul by cos(x, b) cos(x,
    c) / cos(x, a). Words are compared in upper case. A question is covered if its four words are
    among the first N words (--limit N). Accuracy is the share of correct answers among the covered
    questions.
    """
    from dcme_w2v import eval_analogies

    score = eval_analogies(vectors, questions, **values)
    print_json(score.as_dict(), indent=2) if as_json else click.echo(_analogy_table(score))
    _report_skipped(questions, score.skipped_lines)


@evaluate.command("similarity", example="dcme-w2v eval similarity vectors.bin wordsim353.tsv")
@arguments("<vectors <pairs")
@flag("--limit N", "restrict the evaluation to the N most frequent words", default=300_000, low=1)
@seeds_option
@json_option
def similarity(vectors: str, pairs: str, limit: int, as_json: bool) -> None:
    """Evaluate word vectors on rated word pairs.

    PAIRS contains one pair per line, "word TAB word TAB rating", or is a published file of
    SimLex-999, WordSim-353 or RareWords; - is standard input. Words are compared in upper case.
    Prints Spearman's and Pearson's correlations between ratings and cosines. With a fastText model
    (.bin), out-of-vocabulary words are compared by their character n-grams.
    """
    from dcme_w2v import eval_similarity

    score = eval_similarity(vectors, pairs, limit=limit)
    by_ngrams = f", {score.by_ngrams} by n-grams" if score.by_ngrams else ""
    table = (
        f"spearman {score.spearman:.4f}\npearson  {score.pearson:.4f}\n"
        f"coverage {score.covered / score.pairs:.4f} ({score.covered} of {score.pairs} pairs"
        f"{by_ngrams})"
    )
    print_json(score.as_dict(), indent=2) if as_json else click.echo(table)
    _report_skipped(pairs, score.skipped_lines)


@evaluate.command(
    "sts", example="dcme-w2v eval sts vectors.safetensors sts-test.tsv --tokenize words"
)
@arguments("<vectors <pairs=PAIRS...")
@options_of(EncodeOptions, only=["pooling", "dim"])
@options_of(TokenizerOptions)
@seeds_option
@json_option
def sts(vectors: str, pairs: tuple[str, ...], as_json: bool, **values: Any) -> None:
    """Evaluate sentence vectors, computed from word vectors, on rated sentence pairs.

    PAIRS: files, or folders of files, with lines "score TAB sentence TAB sentence". Prints
    Pearson's and Spearman's correlations between scores and cosines for each file, and the means
    over all files.
    """
    from dcme_w2v import eval_sts

    score = eval_sts(vectors, pairs, tokenize=chosen_tokenizer(values), **values)
    if as_json:
        print_json(score.as_dict(), indent=2)
        return
    click.echo(f"pearson  spearman    pairs  file\n{_correlations(score.pearson, score.spearman)}")
    for one in score.sets:
        click.echo(f"{_correlations(one.pearson, one.spearman)}  {one.pairs:7,}  {one.name}")
    _report_skipped(" ".join(pairs), score.skipped_lines)


def _correlations(pearson: float, spearman: float) -> str:
    return f"{pearson:7.4f}  {spearman:8.4f}"


@evaluate.command("likelihood", example="dcme-w2v eval likelihood vectors.safetensors heldout.txt")
@arguments("<model <[corpus]...")
@flag("--window N", "number of context words on each side (default: as in training)", low=1)
@flag(
    "--analogies FILE",
    "report the likelihood of the correct answers to the analogy questions in this file",
    path=READS,
)
@seeds_option
@json_option
@reads_documents("corpus", columns=["text_column"])
def likelihood(model: str, corpus: tuple[str, ...], as_json: bool, **values: Any) -> None:
    """Report the log-likelihood of a text under a model.

    MODEL is a file that train --output-tables wrote. Each token is predicted from its context by
    the exact softmax. Prints the mean log-probability and the log of the mean probability. For
    negative sampling, also prints both measures with the noise distribution added back.
    """
    from dcme_w2v import eval_likelihood
    from dcme_w2v.formats.corpus import CorpusPaths

    found = eval_likelihood(model, CorpusPaths(corpus) if corpus else None, **values)
    lines = [f"{name.replace('_', ' ')}: {value:.6g}" for name, value in found.items()]
    print_json(found, indent=2) if as_json else click.echo("\n".join(lines))


def _analogy_table(score: AnalogyScore) -> str:
    parts = [*score.sections, score.semantic, score.syntactic, score.total]
    width = max(len(part.name) for part in parts)
    rows = [
        f"{part.name:{width}}  {part.correct:7,}  {part.covered:7,}  {part.questions:7,}  "
        f"{_share(part.accuracy)}  {_share(part.coverage)}"
        for part in parts
    ]
    head = f"{'section':{width}}  {'right':>7}  {'covered':>7}  {'asked':>7}  accuracy  coverage"
    return "\n".join([head, *rows])


def _share(value: float | None) -> str:
    return f"{'-':>8}" if value is None else f"{value:8.4f}"


def _report_skipped(path: str, lines: int) -> None:
    if lines:
        click.echo(f"{path}: skipped {lines} lines that are not in the expected format", err=True)

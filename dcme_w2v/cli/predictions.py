"""Commands that predict words of a text: ``score`` and ``predict-word``."""

from typing import Any

import click

from dcme_w2v.errors import UsageError
from dcme_w2v.files.atomic import STANDARD
from dcme_w2v.files.paths import Paths
from dcme_w2v.options import VocabularyOptions

from .command import command
from .neighbors import answer
from .options import (
    arguments,
    context_option,
    count_option,
    flag,
    json_option,
    option_of,
    read_vocab_option,
    reads_documents,
    threads_option,
)
from .streams import print_json


@command(
    example="dcme-w2v score model text.txt\ndcme-w2v score model - --tokens < text.txt",
)
@arguments("model [corpus]...")
@flag("--tokens", "a token a line, with an empty line between lines")
@context_option
@read_vocab_option
@option_of(VocabularyOptions, "encoding_errors")
@threads_option
@json_option
@reads_documents("corpus", labels=False)
def score(
    model: str,
    corpus: tuple[str, ...],
    tokens: bool,
    as_json: bool,
    **values: Any,
) -> None:
    """Print the log-probability of each line of a text under a model.

    MODEL is a folder of train --output-tables, or vectors with --output-context. Each token is
    predicted from the words on both sides of it, so that the sum over a line compares lines and is
    not the log-probability of the line. Prints the sum in nats, the number of tokens scored and the
    line, separated by tabs. A token that is out of vocabulary, or has no known word beside it, is
    not scored: nan. A row of a table is a line.
    """
    from dcme_w2v import score as scored
    from dcme_w2v.formats.sentences import CorpusPaths

    if not corpus:
        raise UsageError("no text; give files or folders, or - for standard input")
    context, read_vocab = values["context"], values["read_vocab"]
    if [model, context, read_vocab, *corpus].count(STANDARD) > 1:
        raise UsageError("standard input is given twice; give a file for one of them")
    paths = Paths().reads("MODEL", model).reads("CORPUS", *corpus).reads("--context", context)
    paths.reads("--read-vocab", read_vocab).check()
    for line in scored(model, CorpusPaths(corpus), **values):
        numbers = line.log_probabilities.tolist()
        if as_json:
            record = {"log_probability": line.log_probability, "scored": line.scored}
            print_json({**record, "tokens": line.tokens, "log_probabilities": numbers})
        elif tokens:
            pairs = zip(line.tokens, numbers, strict=True)
            click.echo("".join(f"{token}\t{number:.6g}\n" for token, number in pairs))
        else:
            click.echo(f"{line.log_probability:.6g}\t{line.scored}\t{' '.join(line.tokens)}")


@command("predict-word", example="dcme-w2v predict-word model the queen _ spain")
@arguments("model words=[WORD]...")
@count_option
@context_option
@read_vocab_option
@json_option
def predict_word(
    model: str,
    words: tuple[str, ...],
    k: int,
    context: str | None,
    read_vocab: str | None,
    as_json: bool,
) -> None:
    """Print the most probable words for a gap in a line, and their probabilities.

    The gap is the word _. MODEL is as for score. The model predicts from both sides: a gap at the
    end of the line is the last word of a sentence, not the next one. Out-of-vocabulary words are
    listed on stderr and skipped. Without WORD, lines are read from standard input; then each line
    of the answer starts with the question.
    """
    from dcme_w2v.words.language_model import LanguageModel
    from dcme_w2v.words.predictions import Predictor

    if not words and STANDARD in (model, context, read_vocab):
        raise UsageError("the model is standard input; give the words as arguments")
    Paths().reads("MODEL", model).reads("--context", context).reads(
        "--read-vocab", read_vocab
    ).check()
    predictor = Predictor(LanguageModel.load(model, context, read_vocab), k)
    answer(model, words, as_json, predictor.gaps, predictor.words)

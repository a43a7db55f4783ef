"""The command ``predict-word``."""

from dcme_w2v.errors import UsageError
from dcme_w2v.files.atomic import STANDARD

from .command import command
from .neighbors import answer
from .options import arguments, count_option, json_option


@command("predict-word", example="dcme-w2v predict-word model the queen _ spain")
@arguments("<model words=[WORD]...")
@count_option
@json_option
def predict_word(model: str, words: tuple[str, ...], topn: int, as_json: bool) -> None:
    """Print the most probable words for a gap in a line, and their probabilities.

    The gap is the word _. MODEL is a file of train --output-tables. The model predicts from both
    sides: a gap at the end of the line is the last word of a sentence, not the next one.
    Out-of-vocabulary words are listed on stderr and skipped. Without WORD, lines are read from
    standard input; then each line of the answer starts with the question.
    """
    from dcme_w2v.words.language_model import LanguageModel
    from dcme_w2v.words.predictions import gaps_of

    if not words and model == STANDARD:
        raise UsageError("the model is standard input; give the words as arguments")
    loaded = LanguageModel.load(model)
    answer(model, words, as_json, lambda lines: gaps_of(loaded, lines, topn), loaded.words)

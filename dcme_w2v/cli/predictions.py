"""The command ``predict-word``."""

from collections.abc import Iterator, Sequence

from dcme_w2v.errors import DcmeError, UsageError
from dcme_w2v.files.atomic import STANDARD

from .command import command
from .neighbors import Answer, answer
from .options import arguments, count_option, json_option


@command("predict-word", example="dcme-w2v predict-word model the queen _ spain")
@arguments("<model words=[WORD]...")
@count_option
@json_option
def predict_word(model: str, words: tuple[str, ...], topn: int, as_json: bool) -> None:
    """Print the most probable words for a gap in a line, and their probabilities.

    The word _ marks the gap. MODEL is a file that train --output-tables wrote. The model uses the
    words on both sides of the gap, and treats a gap at the end of the line as the last word of a
    sentence. Out-of-vocabulary words are listed on stderr and skipped. Each output line starts with
    the question. Without WORD, questions are read from standard input, one per line.
    """
    import dcme_w2v as dw
    from dcme_w2v.words.language_model import LanguageModel

    if not words and model == STANDARD:
        raise UsageError(
            "standard input cannot supply both MODEL and words; pass the words as arguments"
        )
    loaded = LanguageModel.load(model)

    def solve(lines: Sequence[Sequence[str]]) -> Iterator[Answer]:
        for line in lines:
            question = " ".join(line)
            try:
                found = dw.predict_word(loaded, line, topn=topn)
            except DcmeError as error:
                named = type(error)(f"{question}: {error.message}")
                yield Answer({"question": question, "error": error.message}, [], named)
                continue
            rows = [(question, word, f"{share:.6g}") for word, share in found]
            yield Answer({"question": question, "predictions": found}, rows)

    answer(words, as_json, solve)

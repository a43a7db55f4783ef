"""Warn about a corpus that is probably given by mistake: CSV, JSON, markup, raw text.

Vectors raise an error, since the corpus was probably given as the output.

Only the start of the first file is examined, so that the cost does not depend on the corpus.
"""

import csv
import re
from bisect import bisect
from collections import Counter
from collections.abc import Sequence

from dcme_w2v.errors import CorpusError, warn
from dcme_w2v.formats.columns import is_named_csv

SAMPLE_BYTES = 1 << 16
MIN_LINES = 5  # fewer lines show no structure
MIN_TOKENS = 200  # fewer tokens do not show raw text
MIN_STRUCTURED = 0.9  # share of lines that have the structure
MIN_NUMBERS = 5  # numbers after the word in each line of vectors
MIN_MARKED = 0.2  # share of lines with tags
MIN_PUNCTUATED = 0.03  # share of tokens that end with punctuation
MIN_CAPITALS = 0.005  # share of tokens that also occur without the capital letter
MIN_CLAUSES = 20  # fewer tokens do not show a script without spaces
MIN_CHARACTERS = 10  # mean length of such tokens: words have two to five

_TAG = re.compile(rb"</(?!s>)[a-zA-Z]\w*>|<[a-zA-Z]\w* \w+=|<!doctype |<\?xml ", re.IGNORECASE)
_NUMBERS = re.compile(rf"(?=.*\d\.\d)\S+(?:[ \t]-?\d+(?:\.\d+)?(?:e-?\d+)?){{{MIN_NUMBERS},}}\s*")
_WORD_WITH_PUNCTUATION = re.compile(r"[\"'(]*[^\W\d_]+[.,;:!?)\"']+")
# Ranges (start, end) of Thai and Lao, Myanmar, Khmer, kana and ideographs.
_WITHOUT_SPACES = "\u0e01\u0f00\u1000\u10a0\u1780\u1800\u3041\u3100\u3400\ua000"
_DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs"}


def warn_of_raw_text(name: str, sample: bytes, is_tokenized: bool) -> None:
    """Warn, with a remedy, if the start of a corpus does not look like one sentence per line.

    Raw text is expected if a tokenizer reads it, but markup is not.
    """
    text, lines = _lines_of(sample)
    found = _structure(lines, sample) or (None if is_tokenized else _raw(text.split()))
    # both are reported elsewhere
    if found is not None and b"\0" not in sample and not is_named_csv(name):
        warn(f"{name}: looks like {found}")


def refuse_vectors(name: str, sample: bytes) -> None:
    """Raise if the start of a corpus has vectors: a word and numbers in each line."""
    rows = _lines_of(sample)[1][1:-1]  # the first may be a header, the last may be incomplete
    widths = {len(row.split()) for row in rows}
    if len(rows) >= MIN_LINES and len(widths) == 1 and all(map(_NUMBERS.fullmatch, rows)):
        raise CorpusError(
            f"{name}: has vectors (a word and numbers per line), not text; check the argument order"
        )


def _lines_of(sample: bytes) -> tuple[str, list[str]]:
    text = sample[:SAMPLE_BYTES].decode("utf-8", "replace")
    return text, [line for line in text.split("\n")[:1000] if line.strip()]


def _structure(lines: Sequence[str], sample: bytes) -> str | None:
    """Return what the lines are, with a remedy, if they are not text."""
    if len(lines) < MIN_LINES:
        return None
    ends = Counter(line.strip()[0] + line.strip()[-1] for line in lines)
    labeled = sum(line.startswith("__label__") for line in lines)
    if labeled >= MIN_STRUCTURED * len(lines):
        return "labeled documents, whose labels would become words; use classify train"
    if ends["[]"] >= MIN_STRUCTURED * len(lines):
        return "JSON lists, whose brackets would become words; write one object per line"
    if lines[0].strip() == "[" and any(line.lstrip().startswith("{") for line in lines[1:2]):
        return "a JSON array, whose keys would be words; write one object per line (jq -c '.[]')"
    marked = sum(_TAG.search(line.encode("utf-8", "replace")) is not None for line in lines)
    if marked >= MIN_MARKED * len(lines):
        return "markup (HTML or XML), whose tags would become words; extract the text first"
    for delimiter, spelled in _DELIMITERS.items():
        if delimiter not in lines[0]:
            continue
        try:
            rows = list(csv.reader(lines, delimiter=delimiter))
        except csv.Error:
            continue
        width, count = Counter(map(len, rows)).most_common(1)[0]
        clauses = sum(
            any(field[:1] == " " for field in row[1:]) for row in rows
        )  # commas within sentences
        if width > 1 and count >= MIN_STRUCTURED * len(rows) and clauses < len(rows) / 2:
            return (
                f"CSV: {width} columns separated by {spelled}, which would become words; "
                f"name the text column by --text-column: {', '.join(rows[0])}; without a header, "
                "leave only the text in the file"
            )
    return None


def _raw(tokens: Sequence[str]) -> str | None:
    """Return what shows that the tokens are raw text, with a remedy."""
    found = {char for char in set().union(*tokens) if bisect(_WITHOUT_SPACES, char) % 2}
    clauses = [token for token in tokens if not found.isdisjoint(token)]
    if len(clauses) >= MIN_CLAUSES and sum(map(len, clauses)) >= MIN_CHARACTERS * len(clauses):
        return (
            f"text without spaces between words ({clauses[0][:20]} is one word); split it into "
            "words first, or give --tokenize words, which separates ideographs"
        )
    if len(tokens) < MIN_TOKENS:
        return None
    counts = Counter(tokens)
    punctuated = [word for word in counts if _WORD_WITH_PUNCTUATION.fullmatch(word)]
    twins = [word for word in counts if word[:1].isupper() and word.lower() in counts]
    signs = sum(counts[word] for word in punctuated) >= MIN_PUNCTUATED * len(tokens)
    capitals = sum(counts[word] for word in twins) >= MIN_CAPITALS * len(tokens)
    examples = []
    if capitals:
        word = max(twins, key=counts.__getitem__)
        examples.append(f"{word} and {word.lower()}")
    if signs:
        word = max(punctuated, key=counts.__getitem__)
        examples.append(f"{word} and {word.strip(chr(34) + '(,.;:!?)' + chr(39))}")
    if not examples:
        return None
    return f"raw text ({', '.join(examples)} are different words); give --tokenize words"

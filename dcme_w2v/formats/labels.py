"""Parse one or more labels from text or from a column value."""

import ast
import functools
import re
from typing import Any

from .texts import is_null

_WHOLE = re.compile(r"(-?(?:0|[1-9][0-9]*))\.0+")
_LIST = re.compile(r"\s*(?:[\[({]\s*['\"]|\[[\d.,\s]*\]\s*$)")
_ITEM = r"(?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|-?[0-9]{1,18}(?:\.[0-9]+)?)"
_ITEMS = rf"\s*(?:{_ITEM}(?:\s*,\s*{_ITEM})*\s*,?)?\s*"
_LIST_OF_ITEMS = re.compile(rf"\s*(?:\[{_ITEMS}\]|\({_ITEMS}\)|\{{{_ITEMS}\}})\s*")
_EMPTY = "[]", "()", "{}", "set()"  # spellings of an empty list in a text column
# Values that mean "the label applies" in an indicator column (1 or 0, true or false).
_YES = "1", "True", "true", "TRUE"
INDICATORS: dict[tuple[str, ...], bool] = {
    (): False, **{(one,): one in _YES for one in (*_YES, "0", "False", "false", "FALSE")}
}  # fmt: skip
NO_LABEL = "a label is text or an integer; group the numbers, or write them as text such as v1.5"


class NoneOfThese(tuple[str, ...]):
    """An empty but truthy tuple, which marks a document that is known to have no labels."""

    def __bool__(self) -> bool:
        return True


def label_of(text: str) -> str:
    """Normalize the spaces in a label, and convert whole-number floats to integers (1.0 to 1)."""
    label = " ".join(text.split())
    return label if (found := _WHOLE.fullmatch(label)) is None else found[1].replace("-0", "0")


@functools.lru_cache(4096)
def labels_of(joined: str) -> tuple[str, ...]:
    """Split labels at | and normalize their spaces; ``[]`` means that no label applies."""
    if joined.strip() == "[]":
        return NoneOfThese()
    return tuple(label for one in joined.split("|") if (label := label_of(one)))


def labels_in(name: str, value: Any) -> tuple[str, ...]:
    """Return the labels in a column value; raise ValueError if its type cannot represent labels."""
    if is_null(value):
        return ()
    if isinstance(value, str):
        if "".join(value.split()) in _EMPTY:
            return NoneOfThese()
        if not _LIST.match(value):
            return labels_of(value)
        value = _listed_labels(name, value)
    # Treat a number as one label. `bool` is a subclass of `int`, and columns with missing values
    # store integers as floats.
    if isinstance(value, int | float):
        value = [value]
    items = value if isinstance(value, list) else [value]
    if wrong := [one for one in items if not isinstance(one, str | int | float)]:
        raise ValueError(
            f"{name} has a value of type {type(wrong[0]).__name__}; labels must be text, "
            "integers, or lists of text or integers"
        )
    if not value:
        return NoneOfThese()
    for one in value:
        if isinstance(one, float) and not one.is_integer():
            raise ValueError(f"{name} is {one}; {NO_LABEL}")
    texts = [str(int(one) if isinstance(one, float) else one) for one in value]
    if len(texts) > len({*texts}) and all((one,) in INDICATORS for one in texts):
        raise ValueError(
            f"{name} is {value!r:.60}, which looks like a row of an indicator matrix; list only "
            "the names of the labels that apply"
        )
    return tuple(label for text in texts if (label := label_of(text)))


def _listed_labels(name: str, text: str) -> list[Any]:
    """Parse a list of labels that is stored as text, such as "['a', 'b']" in a CSV file."""
    try:
        if _LIST_OF_ITEMS.fullmatch(text):
            found = ast.literal_eval(text.strip())
            found = sorted(found, key=str) if isinstance(found, set) else found
            return [found] if isinstance(found, str) else list(found)
    # The text is not a valid Python list, for example because it contains 07.
    except (ValueError, SyntaxError):
        pass
    raise ValueError(
        f"{name} is {text!r:.60}, which is not a valid list; separate the labels with |"
    )

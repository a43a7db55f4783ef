"""Reads the logs that --log-json writes."""

import json
import re
from collections.abc import Iterator
from typing import Any

from dcme_w2v.errors import FormatError
from dcme_w2v.files.opening import head_of, read_lines

_LINE = re.compile(rb'\{"event": "[a-z]+", ')


def is_log(path: str) -> bool:
    """Return whether a file starts with an event of a log."""
    return _LINE.match(head_of(path)) is not None


def read_log(path: str) -> Iterator[dict[str, Any]]:
    """Yield the events of a log of --log-json; a last line that is not complete is ignored.

    Raises
    ------
    FormatError
        A line is not a JSON object with an event.
    """
    for number, line in enumerate(read_lines(path), 1):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            if not line.endswith(b"\n") and number > 1:  # of a run that was killed
                return
            record = None
        if not isinstance(record, dict) or not isinstance(record.get("event"), str):
            raise FormatError(f"{path}:{number}: is not an event; give a file of --log-json")
        yield record

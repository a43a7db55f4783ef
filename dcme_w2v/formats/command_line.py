"""The command line of this program, as recorded in what it makes.

Arguments of other programs that call the Python API are not recorded: they may hold secrets.
"""

import os
import shlex
import sys
from pathlib import PurePath
from typing import Any

_PROGRAM = "dcme-w2v"


def recorded_arguments() -> list[str] | None:
    """Return the arguments of this process if it is the program, None if it is another."""
    if not sys.argv or not _is_program(sys.argv[0]):
        return None
    return [os.fsencode(one).decode("utf-8", "replace") for one in sys.argv]


def command_of(arguments: Any) -> str | None:
    """Return recorded arguments as a command line of the shell; None if there are none."""
    if not isinstance(arguments, list) or not all(type(one) is str for one in arguments):
        return None
    if not arguments:
        return None
    program = _PROGRAM if _is_program(arguments[0]) else arguments[0]
    return shlex.join([program, *arguments[1:]])


def _is_program(path: str) -> bool:
    parts = PurePath(path).parts[-2:]
    return parts[-1:] == (_PROGRAM,) or parts == ("dcme_w2v", "__main__.py")

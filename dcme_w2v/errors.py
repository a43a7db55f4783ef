"""The exceptions that this package raises on purpose.

A message is one line: what failed, on which file or option, and what to do. It names options as
the command line does, a value after an equals sign: ``--dim=0 must be at least 1``. ``str(error)``
spells them as Python does (``dim=0 must be at least 1``), and the command line prints
``--dim 0 must be at least 1``: see `in_python_terms` and `in_shell_terms`. To add something to the
message of another error, use its `message`, where options are still marked.

Each class also derives from the matching built-in exception: ValueError, OSError and so on.
"""

import importlib
import re
import sys
import warnings
from pathlib import Path
from typing import Any

_FLAG = r"(?<![\w./-])--([a-z][a-z0-9]*(?:-[a-z0-9]+)*)(?![\w./-])"


def in_python_terms(message: str) -> str:
    """Convert options in a message to Python keywords, such as --min-count=0 to min_count=0."""

    def keyword(match: re.Match[str]) -> str:
        name = match[1].replace("-", "_")
        return f"{name[3:]}=False" if name.startswith("no_") else name

    return re.sub(_FLAG, keyword, message)


def in_shell_terms(message: str) -> str:
    """Convert options in a message to shell form, for example --min-count=0 to --min-count 0."""
    return re.sub(_FLAG + "=", r"--\1 ", message)


# Matches the user, password and query of a URL, even if `Path` has removed a slash after the colon.
_ADDRESS = re.compile(
    r"""(\b[a-z][a-z0-9+.-]+:/{1,2}|\burl:\ (?=/))  # requests shows an address without its host
    (?:[^\s/'"]*@)? ([^\s?\#'"]*) (?:[?\#][^\s'"]*?)? (?=[:;,.)]*(?:\s|$|['"]))""",
    re.VERBOSE | re.IGNORECASE,
)


def without_secrets(text: str) -> str:
    """Remove user names, passwords and queries from the URLs in a text or path."""
    return _ADDRESS.sub(r"\1\2", text) if ":" in text else text


class _Marked(Exception):
    @property
    def message(self) -> str:
        """The message with options in the form --name=value, for use in other messages."""
        return without_secrets(str(self.args[0])) if self.args else ""

    def __str__(self) -> str:
        return in_python_terms(self.message)


class DcmeError(_Marked):
    """Base class of all errors that this package raises on purpose."""

    exit_code = 1  # the exit code of the program after this error

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the error as a class call, because Dask would use only one base's ``__new__``."""
        return type(self), self.args, self.__dict__


class UsageError(DcmeError, ValueError):
    """An option or argument is invalid, or conflicts with another option or argument."""

    exit_code = 2


class UnknownOptionError(UsageError, TypeError):
    """An option has an unknown name."""


class CorpusError(DcmeError, ValueError):
    """A corpus is empty or is not text."""


class NoWordsError(CorpusError):
    """No word of a corpus is in the vocabulary."""


class UnreadableError(CorpusError, OSError):
    """A corpus file cannot be read."""


class NoSuchFileError(UnreadableError, FileNotFoundError):
    """A corpus file does not exist."""


class FormatError(DcmeError, ValueError):
    """A file is not in the expected format or is corrupt."""


class UnknownWordError(DcmeError, KeyError):
    """A word is not in the vocabulary."""


class ResourceError(DcmeError, OSError):
    """There is not enough memory or disk space, or a file cannot be written."""


class OutOfMemoryError(ResourceError, MemoryError):
    """There is not enough memory."""


class DivergedError(DcmeError, FloatingPointError):
    """Training diverged: a parameter is NaN or infinite, or the loss is too high."""


class ClusterError(DcmeError, RuntimeError):
    """A cluster cannot be reached, or a task on the cluster failed."""


def import_optional(
    module: str, use: str, where: str = "", kind: type[Exception] = DcmeError
) -> Any:
    """Import a module from an optional package, or raise an error that says how to install it.

    The error names the package instead of an extra of dcme-w2v, because pip finds the package
    however dcme-w2v was installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        package = module.partition(".")[0].replace("sklearn", "scikit-learn")
        raise kind(f"{where}pip install {package}{use}") from None


class Interrupted(DcmeError):
    """A signal ended the run. The exit code of the program is 128 plus the number of the signal."""

    def __init__(self, message: str, number: int) -> None:
        super().__init__(message)
        self.exit_code = 128 + number


class DcmeWarning(_Marked, UserWarning):
    """A request is probably a mistake, although it is executed."""


def warn(message: str) -> None:
    """Issue a warning that points to the line from which user code called this package.

    The command line prints ``warning:`` and the message; see `dcme_w2v.cli.main`.
    """
    package, level, frame = str(Path(__file__).parent), 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(package):
        frame, level = frame.f_back, level + 1
    warnings.warn(DcmeWarning(message), stacklevel=level)

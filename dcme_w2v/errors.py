"""The exceptions that this package raises on purpose.

Every message is one line and says what went wrong, where, and what to do about it. The command
line prints it as ``error: MESSAGE`` and ends with the class's ``exit_code``.
"""


class DcmeError(Exception):
    """Base of all errors raised on purpose."""

    exit_code = 1


class UsageError(DcmeError):
    """An option or an argument cannot be used as given."""

    exit_code = 2


class CorpusError(DcmeError):
    """A corpus cannot be read, or has nothing to train on."""


class FormatError(DcmeError):
    """A file of vectors, of words or of options is not what it should be."""


class ResourceError(DcmeError):
    """Memory or disk does not suffice."""


class DivergedError(DcmeError):
    """Training left the range of finite numbers."""

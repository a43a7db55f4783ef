"""Signals that the run engine reads; see `dcme_w2v.cli.signals` for the handlers."""

import signal

from dcme_w2v.errors import DcmeError


class Interrupted(DcmeError):
    """A signal ended the run; the exit code is 128 + the signal's number, as in shells."""

    def __init__(self, message: str, number: int) -> None:
        super().__init__(message)
        self.exit_code = 128 + number


class ReceivedSignal:
    """The first signal that arrived; `number` is None before."""

    def __init__(self) -> None:
        self.number: int | None = None

    @property
    def name(self) -> str:
        """Name of the signal."""
        return signal.Signals(self.number or 0).name

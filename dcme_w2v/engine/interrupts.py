"""Signals to the run engine: recorded by the installed handlers, see `dcme_w2v.cli.signals`."""

from __future__ import annotations

import signal

from dcme_w2v.errors import DcmeError


class Interrupted(DcmeError):
    """A signal ended the work; the exit code is 128 and the signal's number, as shells have it."""

    def __init__(self, message: str, number: int) -> None:
        super().__init__(message)
        self.exit_code = 128 + number


class ReceivedSignal:
    """The first signal that came, if one did."""

    def __init__(self) -> None:
        self.number: int | None = None

    @property
    def name(self) -> str:
        """Name of the signal."""
        return signal.Signals(self.number or 0).name

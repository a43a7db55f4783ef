"""Signals: recorded while there is work to save, and otherwise the end of the program.

`dcme_w2v.cli.main` turns SIGTERM and SIGHUP into exceptions as SIGINT is one; commands that train
give `recording_signals` to the run engine, which saves what there is. The library itself installs
no handler.
"""

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

from dcme_w2v.platform import HANGUP, SIGNALS
from dcme_w2v.training.interrupts import ReceivedSignal


class Terminated(KeyboardInterrupt):
    """SIGTERM or SIGHUP arrived; which is its argument."""


def terminate(number: int, frame: FrameType | None) -> None:
    """Handle SIGTERM and SIGHUP: raise as Python does for SIGINT."""
    if HANGUP is not None:
        signal.signal(HANGUP, signal.SIG_IGN)  # see `recording_signals`
    raise Terminated(number)


def raise_on_signals() -> None:
    """Let all of `SIGNALS` raise, except those that the process was started to ignore."""
    for number in SIGNALS:
        if signal.getsignal(number) != signal.SIG_IGN:
            own = signal.default_int_handler if number == signal.SIGINT else terminate
            signal.signal(number, own)


def number_of(error: BaseException) -> int:
    """Return the signal behind an exception."""
    if isinstance(error, Terminated):
        return int(error.args[0]) if error.args else signal.SIGTERM
    return signal.SIGINT


@contextlib.contextmanager
def recording_signals() -> Iterator[ReceivedSignal]:
    """Record the first signal instead of raising; a second SIGINT or SIGTERM ends the process.

    SIGHUP is no second signal, because it seldom comes alone: a terminal that closes sends one, and
    the shell in it another; a system that shuts down sends one with SIGTERM. In a thread that is
    not the main one no signal is caught, and none recorded; nor is a signal that the process was
    started to ignore, as under nohup.
    """
    received = ReceivedSignal()
    if threading.current_thread() is not threading.main_thread():
        yield received
        return
    heeded = [one for one in SIGNALS if signal.getsignal(one) != signal.SIG_IGN]

    def record(number: int, frame: FrameType | None) -> None:
        if received.number is None:
            received.number = number
        for one in heeded:
            if one == HANGUP:
                signal.signal(one, signal.SIG_IGN)
            elif number != HANGUP:  # the system's own way: works whatever the process is at
                signal.signal(one, signal.SIG_DFL)

    before = {one: signal.signal(one, record) for one in heeded}
    try:
        yield received
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)

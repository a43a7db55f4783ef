"""Handle signals, which end the program but let training save its work first.

When a command runs, `dcme_w2v.cli.main` turns signals into exceptions; commands that train give
`recording_signals` to the epoch loop, which saves the work. The library itself installs no handler.
"""

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from types import FrameType

from dcme_w2v.platform import HANGUP, SIGNALS, ReceivedSignal

_AGAIN_SECONDS, _IMPORT_SECONDS = 0.05, 10.0


class Terminated(KeyboardInterrupt):
    """Exception raised by a signal in `SIGNALS`; ``args[0]`` is the signal number."""


class _Terminate:
    """A handler that raises `Terminated` and sends the signal again if it interrupts an import.

    An import may lose the exception: Cython modules, for example, clear exceptions while they
    register their types.
    """

    _raised, _sender = threading.Event(), threading.Thread()

    def __call__(self, number: int, frame: FrameType | None) -> None:
        while frame is not None:
            if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
                self.send_again(number)
                return
            frame = frame.f_back
        self._raised.set()
        if HANGUP is not None:
            # See the docstring of `recording_signals` for why SIGHUP is ignored.
            signal.signal(HANGUP, signal.SIG_IGN)
        raise Terminated(number)

    def send_again(self, number: int) -> None:
        """Send a signal repeatedly until its handler raises, even if a blocking call has begun."""
        if HANGUP is not None:
            signal.signal(HANGUP, self)
        self._raised.clear()
        if not self._sender.is_alive():
            self._sender = threading.Thread(target=self._send, args=(number,), daemon=True)
            self._sender.start()

    def _send(self, number: int) -> None:
        is_own, end = True, time.monotonic() + _IMPORT_SECONDS
        while is_own and not self._raised.wait(_AGAIN_SECONDS):
            is_own = signal.getsignal(number) is self
            os.kill(os.getpid(), number)
            # If an import hangs, end the process, because there is no unsaved work during imports.
            if is_own and time.monotonic() > end:
                os._exit(128 + number)


terminate = _Terminate()


def raise_on_signals() -> None:
    """Make all `SIGNALS` raise exceptions, except signals that the process ignores.

    An exception that is lost because it was raised in a destructor is raised again.
    """
    for number in SIGNALS:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, terminate)
    others = sys.unraisablehook

    def hook(lost: "sys.UnraisableHookArgs") -> None:
        if isinstance(lost.exc_value, Terminated):
            terminate.send_again(lost.exc_value.args[0])
        else:
            others(lost)

    sys.unraisablehook = hook


def end_on_signals() -> None:
    """Undo `raise_on_signals` by restoring the default handlers, which end the process."""
    for number in SIGNALS:
        if signal.getsignal(number) == terminate:
            signal.signal(number, signal.SIG_DFL)


def number_of(error: BaseException) -> int:
    """Return the number of the signal that caused an exception."""
    if isinstance(error, Terminated):
        return int(error.args[0]) if error.args else signal.SIGTERM
    return signal.SIGINT


@contextlib.contextmanager
def recording_signals() -> Iterator[ReceivedSignal]:
    """Record the first signal without raising an exception; a second signal ends the process.

    SIGHUP does not count as a second signal, because it seldom comes alone: when a terminal closes,
    the terminal and its shell each send one, and a system that shuts down sends it with SIGTERM.
    Outside the main thread, no signal is caught or recorded. The same applies to signals that the
    process was started to ignore, as under nohup.
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
            elif number != HANGUP:  # a second signal ends the process
                signal.signal(one, signal.SIG_DFL)

    before = {one: signal.signal(one, record) for one in heeded}
    try:
        yield received
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)

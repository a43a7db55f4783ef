"""Telling how far training is: a bar on a terminal, lines in a file, JSON lines in a log.

The trainer talks to one `Reporter` and never prints. `reporting` makes the right one; everything
goes to stderr or to the log, because stdout is for data.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TextIO

from dcme_w2v.errors import DcmeError, ResourceError, UsageError, in_shell_terms
from dcme_w2v.files import STANDARD, check_log, open_log

Clock = Callable[[], float]


class Reporter(Protocol):
    """Hears from the trainer."""

    def stage(self, name: str, total: int | None, unit: str) -> None:
        """Hear that a stage begins: its name, its size where it is known, and the unit of both."""

    def advance(self, done: int, **fields: float) -> None:
        """Hear how much of the stage is done so far, and fields such as `loss` and `lr`."""

    def epoch(self, record: Mapping[str, Any]) -> None:
        """Hear an epoch's figures: `epoch`, `seconds`, `loss` and others."""

    def talk(self, message: str) -> None:
        """Hear one line for people."""

    def close(self, error: str | None = None) -> None:
        """Hear that training is over, and the error that ended it, if one did."""


class Quiet:
    """Says nothing."""

    def stage(self, name: str, total: int | None, unit: str) -> None:
        """See `Reporter`."""

    def advance(self, done: int, **fields: float) -> None:
        """See `Reporter`."""

    def epoch(self, record: Mapping[str, Any]) -> None:
        """See `Reporter`."""

    def talk(self, message: str) -> None:
        """See `Reporter`."""

    def close(self, error: str | None = None) -> None:
        """See `Reporter`."""


class Terminal(Quiet):
    """Draws a bar, redrawn in place, with speed, loss, rate and time left.

    Parameters
    ----------
    stream : text file
    tqdm : class, optional
        The kind of bar; ``tqdm.auto``'s draws one in a notebook, too.
    """

    def __init__(self, stream: TextIO, tqdm: Any = None) -> None:
        if tqdm is None:
            from tqdm import tqdm as plain

            tqdm = plain
        # no thread of its own beside the training threads
        self._tqdm: Any = type("Bar", (tqdm,), {"monitor_interval": 0})
        self._stream = stream
        self._bar: Any = None

    def stage(self, name: str, total: int | None, unit: str) -> None:
        """Draw a new bar below the last one."""
        self.close()
        self._bar = self._tqdm(
            total=total, desc=name, unit=f" {unit}", unit_scale=True, file=self._stream,
            dynamic_ncols=True,
        )  # fmt: skip

    def advance(self, done: int, **fields: float) -> None:
        """Move the bar; tqdm measures the speed itself."""
        if self._bar is not None:
            shown = {
                name: f"{value:.4g}" for name, value in fields.items() if name in ("loss", "lr")
            }
            self._bar.set_postfix(shown, refresh=False)
            self._bar.update(done - self._bar.n)

    def epoch(self, record: Mapping[str, Any]) -> None:
        """Print the epoch's figures above the bar."""
        self.talk(epoch_line(record))

    def talk(self, message: str) -> None:
        """Print a line above the bar."""
        self._tqdm.write(message, file=self._stream)

    def close(self, error: str | None = None) -> None:
        """Leave the bar as it stands."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None


class Lines(Quiet):
    """Prints a line every few seconds: for a log file, where a bar would be noise."""

    def __init__(self, stream: TextIO, every: float = 10.0, clock: Clock = time.monotonic) -> None:
        self._stream = stream
        self._every = every
        self._clock = clock
        self._name, self._total, self._unit = "", None, ""  # type: tuple[str, int | None, str]
        self._start = self._last = clock()

    def stage(self, name: str, total: int | None, unit: str) -> None:
        """Start counting the seconds of a stage."""
        self._name, self._total, self._unit = name, total, unit
        self._start = self._last = self._clock()

    def advance(self, done: int, **fields: float) -> None:
        """Print a line when the last one is old enough."""
        now = self._clock()
        if now - self._last >= self._every:
            self._last = now
            self.talk(self._line(done, now - self._start, fields))

    def epoch(self, record: Mapping[str, Any]) -> None:
        """Print the epoch's figures."""
        self.talk(epoch_line(record))

    def talk(self, message: str) -> None:
        """Print a line."""
        print(message, file=self._stream, flush=True)

    def _line(self, done: int, seconds: float, fields: Mapping[str, float]) -> str:
        speed = done / seconds
        share = f"{100 * done / self._total:.1f} %, " if self._total else ""
        parts = [f"{self._name}: {share}{done:,} {self._unit}", f"{speed:,.0f} {self._unit}/s"]
        parts += [f"{name} {fields[name]:.4g}" for name in ("loss", "lr") if name in fields]
        if self._total and speed > 0:
            parts.append(f"{(self._total - done) / speed:.0f} s left")
        return ", ".join(parts)


class JsonLog(Quiet):
    """Writes one JSON object a line: events start, progress, epoch, message and end.

    The log is opened for its first event, when everything that is read and written was checked.
    Every object has `event` and, but for epochs, whose `seconds` are their own, the seconds since
    the log was opened. A number that is not finite is null. A log that cannot be written any more,
    on a full disk say, does not stop the training: `warn` is called with a line that says so, and
    `close` raises, when the vectors are safe. A reader that goes away, as `head`, is no failure.
    """

    def __init__(
        self,
        path: str,
        every: float = 1.0,
        clock: Clock = time.monotonic,
        append: bool = False,
        warn: Callable[[str], None] = lambda message: None,
    ) -> None:
        self._name = "standard output" if path == STANDARD else path
        self._path, self._append = path, append
        check_log(path)
        self._file: TextIO | None = None
        self._every = every
        self._clock = clock
        self._warn = warn
        self._start = clock()
        self._last = -math.inf
        self._stage = ""
        self._failure: str | None = None
        self._ended = False

    def stage(self, name: str, total: int | None, unit: str) -> None:
        """Write `start` with the stage, its total and unit."""
        self._stage = name
        self._last = -math.inf
        self._write("start", stage=name, total=total, unit=unit)

    def advance(self, done: int, **fields: float) -> None:
        """Write `progress`, at most once a second."""
        if self._clock() - self._last >= self._every:
            self._last = self._clock()
            self._write("progress", stage=self._stage, done=done, **fields)

    def epoch(self, record: Mapping[str, Any]) -> None:
        """Write `epoch` with its figures."""
        self._write("epoch", **record)

    def talk(self, message: str) -> None:
        """Write `message`."""
        self._write("message", message=message)

    def close(self, error: str | None = None) -> None:
        """Write `end`, with the error if there was one.

        Raises
        ------
        ResourceError
            Training went well, but the log is not whole.
        """
        if self._file is None and error is not None:
            return  # nothing has begun: what is there is left alone
        self._write("end", **({"error": error} if error is not None else {}))
        if self._file is not None and self._file is not sys.stdout:
            with self._noting_failure():  # some file systems find out here
                self._file.close()
        if self._failure is not None and error is None:
            raise ResourceError(
                f"{self._name}: the log is incomplete ({self._failure}); what was trained is "
                "saved; free some space, or log elsewhere next time"
            )

    def _write(self, event: str, **fields: Any) -> None:
        if self._ended:
            return
        record = {"event": event, "seconds": round(self._clock() - self._start, 3), **fields}
        plain = {name: _finite(value) for name, value in record.items()}
        if self._file is None:
            self._file = open_log(self._path, self._append)
        with self._noting_failure():
            self._file.write(json.dumps(plain, allow_nan=False) + "\n")
            self._file.flush()

    @contextlib.contextmanager
    def _noting_failure(self) -> Iterator[None]:
        """Write no more after an error of the system, the first of which is noted."""
        try:
            yield
        except BrokenPipeError:
            self._ended = True
        except (OSError, ResourceError) as error:
            if self._failure is None and not self._ended:
                cause = error.__cause__ or error
                self._failure = getattr(cause, "strerror", None) or str(cause)
                self._warn(
                    f"warning: {self._name}: the log cannot be continued ({self._failure}); "
                    "training goes on"
                )
            self._ended = True


@dataclass(frozen=True)
class ProgressUpdate:
    """What a progress callback is told.

    Attributes
    ----------
    stage : str
        "reading" or "training".
    done, total : int, int or None
        How much of the stage is done; bytes while reading, tokens while training. The total is
        None where it is not known.
    unit : str
        "bytes" or "words".
    loss, lr : float, optional
        Mean loss of an instance since the epoch began; the learning rate.
    epoch : mapping, optional
        At the end of an epoch its figures: "epoch" (from 1), "seconds", "loss", "lr" and, with
        held-out text, its scores.
    """

    stage: str
    done: int
    total: int | None
    unit: str
    loss: float | None = None
    lr: float | None = None
    epoch: Mapping[str, Any] | None = None


class Callback(Quiet):
    """Calls a function with a `ProgressUpdate`; what it raises ends the training."""

    def __init__(self, function: Callable[[ProgressUpdate], object]) -> None:
        self._function = function
        self._last = ProgressUpdate("", 0, None, "")

    def stage(self, name: str, total: int | None, unit: str) -> None:
        """Tell that a stage begins."""
        self._tell(ProgressUpdate(name, 0, total, unit))

    def advance(self, done: int, **fields: float) -> None:
        """Tell how much is done."""
        loss, lr = (_finite(fields.get(name)) for name in ("loss", "lr"))
        self._tell(dataclasses.replace(self._last, done=done, loss=loss, lr=lr))

    def epoch(self, record: Mapping[str, Any]) -> None:
        """Tell an epoch's figures."""
        plain = {name: _finite(value) for name, value in record.items()}
        self._function(dataclasses.replace(self._last, epoch=plain))

    def _tell(self, update: ProgressUpdate) -> None:
        self._last = update
        self._function(update)


class Both:
    """Passes everything on to two reporters."""

    def __init__(self, first: Reporter, second: Reporter) -> None:
        self._all = (first, second)

    def stage(self, name: str, total: int | None, unit: str) -> None:
        """See `Reporter`."""
        for one in self._all:
            one.stage(name, total, unit)

    def advance(self, done: int, **fields: float) -> None:
        """See `Reporter`."""
        for one in self._all:
            one.advance(done, **fields)

    def epoch(self, record: Mapping[str, Any]) -> None:
        """See `Reporter`."""
        for one in self._all:
            one.epoch(record)

    def talk(self, message: str) -> None:
        """See `Reporter`."""
        for one in self._all:
            one.talk(message)

    def close(self, error: str | None = None) -> None:
        """See `Reporter`."""
        for one in self._all:
            one.close(error)


@contextlib.contextmanager
def reporting(
    quiet: bool = False, log_json: str | None = None, append: bool = False
) -> Iterator[Reporter]:
    """Make the reporter for where stderr goes, and close it at the end.

    Parameters
    ----------
    quiet : bool
        Say nothing on stderr.
    log_json : str, optional
        Also write JSON lines to this file; ``-`` is standard output.
    append : bool
        Write them behind those of an earlier run.

    Raises
    ------
    ResourceError
        The block ended well, but the log is not whole.
    """
    shown: Reporter = Quiet()
    if not quiet:
        shown = Terminal(sys.stderr) if sys.stderr.isatty() else Lines(sys.stderr)
    with _closing(shown, log_json, append) as reporter:
        yield reporter


@contextlib.contextmanager
def reporting_to(
    progress: bool | Callable[[ProgressUpdate], object], log_json: str | None, append: bool
) -> Iterator[Reporter]:
    """Make the reporter for a call from Python: a bar for True, or a callback; see `reporting`."""
    shown: Reporter = Quiet()
    if progress is True:
        from tqdm.auto import tqdm

        shown = Terminal(sys.stderr, tqdm)
    elif callable(progress):
        shown = Callback(progress)
    elif progress:
        raise UsageError(f"--progress={progress!r}: must be True, False or a function")
    with _closing(shown, log_json, append) as reporter:
        yield reporter


@contextlib.contextmanager
def _closing(shown: Reporter, log_json: str | None, append: bool) -> Iterator[Reporter]:
    reporter = shown
    if log_json is not None:
        reporter = Both(shown, JsonLog(log_json, append=append, warn=shown.talk))
    try:
        yield reporter
    except BaseException as error:
        reporter.close(_told(error) or type(error).__name__)
        raise
    reporter.close()


def _told(error: BaseException) -> str:
    return in_shell_terms(error.message) if isinstance(error, DcmeError) else str(error)


def epoch_line(record: Mapping[str, Any]) -> str:
    """Return an epoch's figures as one line: "epoch 2: loss 1.234, 5.6 s".

    Without a loss where none was looked at, in an epoch of a few words.
    """
    loss = _finite(record["loss"])
    parts = [f"epoch {record['epoch']}" + ("" if loss is None else f": loss {loss:.6g}")]
    parts += [
        f"{name.replace('_', ' ')} {value:.6g}"
        for name, value in record.items()
        if name.startswith("heldout_") and value is not None
    ]
    return ", ".join([*parts, f"{record['seconds']:.1f} s"])


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value

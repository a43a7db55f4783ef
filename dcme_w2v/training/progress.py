"""Progress of training: a bar on a terminal, lines in a file, JSON lines in a log.

The trainer calls one `Reporter` and never prints. `reporting` creates the right one; all output
goes to stderr or to the log, because stdout is for results.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TextIO

from dcme_w2v.errors import DcmeError, ResourceError, UsageError, in_shell_terms
from dcme_w2v.files.atomic import STANDARD, check_log, open_log

Clock = Callable[[], float]
Options = Mapping[str, Any]
UNKNOWN_SIZE = 80, 24  # of a terminal that reports no size, as through script(1)


class Reporter(Protocol):
    """Interface that the trainer calls."""

    def stage(
        self, name: str, total: int | None, unit: str, options: Options | None = None
    ) -> None:
        """Start a stage: name, total (None if unknown), unit, and the options of a training."""

    def advance(self, done: int, **fields: float) -> None:
        """Report how much of the stage is done, and fields such as `loss` and `lr`."""

    def epoch(self, record: Mapping[str, Any]) -> None:
        """Report the figures of an epoch: `epoch`, `seconds`, `loss` and others."""

    def message(self, message: str) -> None:
        """Report a message of one line."""

    def close(self, error: str | None = None) -> None:
        """End the report, with the error that ended the training, if any."""


class Quiet:
    """Reports nothing."""

    def stage(
        self, name: str, total: int | None, unit: str, options: Options | None = None
    ) -> None:
        """See `Reporter`."""

    def advance(self, done: int, **fields: float) -> None:
        """See `Reporter`."""

    def epoch(self, record: Mapping[str, Any]) -> None:
        """See `Reporter`."""

    def message(self, message: str) -> None:
        """See `Reporter`."""

    def close(self, error: str | None = None) -> None:
        """See `Reporter`."""


class Terminal(Quiet):
    """Draws a progress bar with speed, loss, learning rate and estimated time left.

    Parameters
    ----------
    stream : text file
    tqdm : class, optional
        Class of the bar; that of ``tqdm.auto`` also draws in a notebook.
    """

    def __init__(self, stream: TextIO, tqdm: Any = None) -> None:
        if tqdm is None:
            from tqdm import tqdm as plain

            tqdm = plain
        # no monitor thread
        self._tqdm: Any = type("Bar", (tqdm,), {"monitor_interval": 0})
        self._stream = stream
        self._bar: Any = None

    def stage(
        self, name: str, total: int | None, unit: str, options: Options | None = None
    ) -> None:
        """Draw a new bar below the last one."""
        self.close()
        self._bar = self._tqdm(
            total=total, desc=name, unit=f" {unit}", unit_scale=True, file=self._stream,
            **self._size(),
        )  # fmt: skip

    def _size(self) -> dict[str, Any]:
        """Return tqdm's arguments: the size of the terminal, or a fixed one if it reports 0."""
        with contextlib.suppress(OSError, ValueError, AttributeError):
            if os.get_terminal_size(self._stream.fileno()).columns == 0:
                return {"ncols": UNKNOWN_SIZE[0], "nrows": UNKNOWN_SIZE[1]}
        return {"dynamic_ncols": True}

    def advance(self, done: int, **fields: float) -> None:
        """Update the bar; tqdm measures the speed."""
        if self._bar is not None:
            shown = {
                name: f"{value:.4g}" for name, value in fields.items() if name in ("loss", "lr")
            }
            self._bar.set_postfix(shown, refresh=False)
            self._bar.update(done - self._bar.n)

    def epoch(self, record: Mapping[str, Any]) -> None:
        """Print the epoch's figures above the bar."""
        self.message(epoch_line(record))

    def message(self, message: str) -> None:
        """Print a line above the bar."""
        self._tqdm.write(message, file=self._stream)

    def close(self, error: str | None = None) -> None:
        """Close the bar; it remains visible."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None


class Lines(Quiet):
    """Prints a line every few seconds, for log files."""

    def __init__(self, stream: TextIO, every: float = 10.0, clock: Clock = time.monotonic) -> None:
        self._stream = stream
        self._every = every
        self._clock = clock
        self._name, self._total, self._unit = "", None, ""  # type: tuple[str, int | None, str]
        self._start = self._last = clock()

    def stage(
        self, name: str, total: int | None, unit: str, options: Options | None = None
    ) -> None:
        """Start the clock of a stage."""
        self._name, self._total, self._unit = name, total, unit
        self._start = self._last = self._clock()

    def advance(self, done: int, **fields: float) -> None:
        """Print a line if the interval since the last one has passed."""
        now = self._clock()
        if now - self._last >= self._every:
            self._last = now
            self.message(self._line(done, now - self._start, fields))

    def epoch(self, record: Mapping[str, Any]) -> None:
        """Print the epoch's figures."""
        self.message(epoch_line(record))

    def message(self, message: str) -> None:
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

    The log is opened at its first event, after all inputs and outputs have been checked. Every
    object has `event` and `seconds` since the log was opened (for epochs, the duration of the
    epoch). NaN and infinity are written as null. If the log cannot be written, for example on a
    full disk, training continues: `warn` is called with a message, and `close` raises after the
    vectors have been saved. A closed pipe, as after `head`, is not a failure.
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

    def stage(
        self, name: str, total: int | None, unit: str, options: Options | None = None
    ) -> None:
        """Write `start` with the stage, its total and unit, and the options of a training."""
        self._stage = name
        self._last = -math.inf
        more = {} if options is None else {"options": dict(options)}
        self._write("start", stage=name, total=total, unit=unit, **more)

    def advance(self, done: int, **fields: float) -> None:
        """Write `progress`, at most once a second."""
        if self._clock() - self._last >= self._every:
            self._last = self._clock()
            self._write("progress", stage=self._stage, done=done, **fields)

    def epoch(self, record: Mapping[str, Any]) -> None:
        """Write `epoch`, or `round`, with its figures."""
        self._write(step_of(record), **record)

    def message(self, message: str) -> None:
        """Write `message`."""
        self._write("message", message=message)

    def close(self, error: str | None = None) -> None:
        """Write `end`, with the error if there was one.

        Raises
        ------
        ResourceError
            Training succeeded, but the log is incomplete.
        """
        if self._file is None and error is not None:
            return  # no event yet: an existing log is kept
        self._write("end", **({"error": error} if error is not None else {}))
        if self._file is not None and self._file is not sys.stdout:
            with self._recording_failure():  # some file systems report errors only here
                self._file.close()
        if self._failure is not None and error is None:
            raise ResourceError(
                f"{self._name}: the log is incomplete ({self._failure}); the vectors are "
                "saved; free some space, or choose another log"
            )

    def _write(self, event: str, **fields: Any) -> None:
        if self._ended:
            return
        record = {"event": event, "seconds": round(self._clock() - self._start, 3), **fields}
        plain = {name: _finite(value) for name, value in record.items()}
        if self._file is None:
            self._file = open_log(self._path, self._append)
        with self._recording_failure():
            self._file.write(json.dumps(plain, allow_nan=False) + "\n")
            self._file.flush()

    @contextlib.contextmanager
    def _recording_failure(self) -> Iterator[None]:
        """Store the first OSError and write nothing after it."""
        try:
            yield
        except BrokenPipeError:
            self._ended = True
        except (OSError, ResourceError) as error:
            if self._failure is None and not self._ended:
                cause = error.__cause__ or error
                self._failure = getattr(cause, "strerror", None) or str(cause)
                self._warn(
                    f"warning: {self._name}: the log cannot be written ({self._failure}); "
                    "training continues"
                )
            self._ended = True


@dataclass(frozen=True)
class ProgressUpdate:
    """The argument of a progress callback.

    Attributes
    ----------
    stage : str
        "reading" or "training".
    done, total : int, int or None
        How much of the stage is done: bytes while reading, tokens while training. The total is None
        if it is unknown.
    unit : str
        "bytes" or "words".
    loss, lr : float, optional
        Mean loss per instance since the start of the epoch; the learning rate.
    epoch : mapping, optional
        At the end of an epoch, its figures: "epoch" (from 1), "seconds", "loss", "lr" and, with
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
    """Calls a function with a `ProgressUpdate`; an exception from it ends the training."""

    def __init__(self, function: Callable[[ProgressUpdate], object]) -> None:
        self._function = function
        self._last = ProgressUpdate("", 0, None, "")

    def stage(
        self, name: str, total: int | None, unit: str, options: Options | None = None
    ) -> None:
        """Report the start of a stage."""
        self._call(ProgressUpdate(name, 0, total, unit))

    def advance(self, done: int, **fields: float) -> None:
        """Report how much is done."""
        loss, lr = (_finite(fields.get(name)) for name in ("loss", "lr"))
        self._call(dataclasses.replace(self._last, done=done, loss=loss, lr=lr))

    def epoch(self, record: Mapping[str, Any]) -> None:
        """Report the figures of an epoch."""
        plain = {name: _finite(value) for name, value in record.items()}
        self._function(dataclasses.replace(self._last, epoch=plain))

    def _call(self, update: ProgressUpdate) -> None:
        self._last = update
        self._function(update)


class Tee:
    """Forwards every call to two reporters."""

    def __init__(self, first: Reporter, second: Reporter) -> None:
        self._all = (first, second)

    def stage(
        self, name: str, total: int | None, unit: str, options: Options | None = None
    ) -> None:
        """See `Reporter`."""
        for one in self._all:
            one.stage(name, total, unit, options)

    def advance(self, done: int, **fields: float) -> None:
        """See `Reporter`."""
        for one in self._all:
            one.advance(done, **fields)

    def epoch(self, record: Mapping[str, Any]) -> None:
        """See `Reporter`."""
        for one in self._all:
            one.epoch(record)

    def message(self, message: str) -> None:
        """See `Reporter`."""
        for one in self._all:
            one.message(message)

    def close(self, error: str | None = None) -> None:
        """See `Reporter`."""
        for one in self._all:
            one.close(error)


@contextlib.contextmanager
def reporting(
    quiet: bool = False, log_json: str | None = None, append: bool = False
) -> Iterator[Reporter]:
    """Create the reporter that fits stderr, and close it at the end.

    Parameters
    ----------
    quiet : bool
        Write nothing to stderr.
    log_json : str, optional
        Also write JSON lines to this file; ``-`` is standard output.
    append : bool
        Append them to those of an earlier run.

    Raises
    ------
    ResourceError
        The block succeeded, but the log is incomplete.
    """
    shown: Reporter = Quiet()
    if not quiet:
        shown = Terminal(sys.stderr) if sys.stderr.isatty() else Lines(sys.stderr)
    with _with_log(shown, log_json, append) as reporter:
        yield reporter


@contextlib.contextmanager
def reporting_to(
    progress: bool | Callable[[ProgressUpdate], object], log_json: str | None, append: bool
) -> Iterator[Reporter]:
    """Create the reporter for a call from Python: a bar for True, or a callback."""
    shown: Reporter = Quiet()
    if progress is True:
        from tqdm.auto import tqdm

        shown = Terminal(sys.stderr, tqdm)
    elif callable(progress):
        shown = Callback(progress)
    elif progress:
        raise UsageError(f"--progress={progress!r}: must be True, False or a function")
    with _with_log(shown, log_json, append) as reporter:
        yield reporter


@contextlib.contextmanager
def _with_log(shown: Reporter, log_json: str | None, append: bool) -> Iterator[Reporter]:
    reporter = shown
    if log_json is not None:
        reporter = Tee(shown, JsonLog(log_json, append=append, warn=shown.message))
    try:
        yield reporter
    except BaseException as error:
        reporter.close(_error_text(error) or type(error).__name__)
        raise
    reporter.close()


def _error_text(error: BaseException) -> str:
    return in_shell_terms(error.message) if isinstance(error, DcmeError) else str(error)


# Figures of held-out text in the line of an epoch.
HELD_OUT_LABELS = {
    "heldout_log_probability": "held-out log p",
    "heldout_log_probability_with_noise": "with noise",
    "heldout_gap": "gap",
    "heldout_log_mean_probability": "log mean p",
}
ERRORS = {"heldout_log_probability": "heldout_standard_error"}


def step_of(record: Mapping[str, Any]) -> str:
    """Return what a record is of: an epoch, or a round on a cluster."""
    return "round" if "round" in record else "epoch"


def epoch_line(record: Mapping[str, Any]) -> str:
    """Return the figures of an epoch as one line: "epoch 2: loss 1.234, 5.6 s".

    The loss is missing if none was sampled, in an epoch of a few tokens. The JSON log has all
    figures of held-out text; this line has the main ones in 100 characters.
    """
    loss = _finite(record["loss"])
    step = step_of(record)
    parts = [f"{step} {record[step]}" + ("" if loss is None else f": loss {loss:.4g}")]
    for name, label in HELD_OUT_LABELS.items():
        if record.get(name) is not None:
            error = record.get(ERRORS.get(name, ""))
            parts.append(f"{label} {_short(record[name])}" + (f" ± {error:.1g}" if error else ""))
    seconds = record["seconds"]
    return ", ".join([*parts, f"{seconds:.{1 if seconds < 100 else 0}f} s"])


def _short(number: float) -> str:
    """Return a number with three decimals, or two from 10 on."""
    return f"{number:.{3 if abs(number) < 10 else 2}f}"


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value

"""Progress of training: a bar on a terminal, lines in a file, and logs of JSON lines."""

import contextlib
import dataclasses
import json
import math
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TextIO

from dcme_w2v.errors import DcmeError, FormatError, ResourceError, UsageError, in_shell_terms
from dcme_w2v.files.atomic import STANDARD, open_log
from dcme_w2v.files.opening import head_of, read_text

Clock = Callable[[], float]
Options = Mapping[str, Any]
Fields = Mapping[str, Any]
FIGURES = ("loss", "lr")  # in a line or a bar
# tqdm's formats, of which the bar takes the rest of the line: at 80 columns, a dozen characters.
BAR = "{l_bar}{bar}| {rate_fmt}, {remaining}{postfix}"
BAR_WITHOUT_TOTAL = "{desc}: {n_fmt}{unit}, {rate_fmt}, {elapsed}{postfix}"
LINE_SECONDS, EVENT_SECONDS = 10, 1  # between lines, and between events of progress in a log
UNKNOWN_SIZE = 80, 24  # of a terminal that reports no size, as through script(1)


class Reporter:
    """Receives the progress of a training; this class reports nothing.

    The five methods are what trainings call. A subclass overrides `on`, to which all of them lead.
    """

    name, unit = "", ""  # of the stage
    total: int | None = None

    def stage(
        self, name: str, total: int | None, unit: str, options: Options | None = None
    ) -> None:
        """Start a stage: name, total (None if unknown), unit, and the options of a training."""
        self.name, self.total, self.unit = name, total, unit
        more = {} if options is None else {"options": dict(options)}
        self.on("start", {"stage": name, "total": total, "unit": unit, **more})

    def advance(self, done: int, **fields: float) -> None:
        """Report how much of the stage is done, and fields such as `loss` and `lr`."""
        self.on("progress", {"stage": self.name, "done": done, **fields})

    def epoch(self, record: Mapping[str, Any]) -> None:
        """Report the figures of an epoch: `epoch` (or `round`), `seconds`, `loss` and others."""
        self.on(step_of(record), record)

    def message(self, message: str) -> None:
        """Report a message of one line."""
        self.on("message", {"message": message})

    def close(self, error: str | None = None) -> None:
        """End the report, with the error that ended the training, if any."""
        self.on("end", {} if error is None else {"error": error})

    def on(self, event: str, fields: Fields) -> None:
        """Report an event of the JSON log: start, progress, epoch, round, message or end."""


Quiet = Reporter
QUIET = Reporter()


class _Lines(Reporter):
    """Prints messages and the figures of epochs as lines; `start`, `progress` and `end` differ."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def on(self, event: str, fields: Fields) -> None:
        """See `Reporter`."""
        if event == "message":
            self.line(fields["message"])
        elif event in ("epoch", "round"):
            self.line(epoch_line(fields))

    def line(self, text: str) -> None:
        """Print a line."""
        print(text, file=self._stream, flush=True)


class Terminal(_Lines):
    """Draws a progress bar with speed, loss, learning rate and estimated time left.

    Parameters
    ----------
    stream : text file
    tqdm : class, optional
        Class of the bar; the bar of ``tqdm.auto`` also draws in a notebook.
    """

    def __init__(self, stream: TextIO, tqdm: Any = None) -> None:
        super().__init__(stream)
        if tqdm is None:
            from tqdm import tqdm as plain

            tqdm = plain
        # no monitor thread
        self._tqdm: Any = type("Bar", (tqdm,), {"monitor_interval": 0})
        self._bar: Any = None

    def on(self, event: str, fields: Fields) -> None:
        """Draw the bar; lines are printed above it."""
        if event == "progress" and self._bar is not None:
            shown = {name: f"{fields[name]:.4g}" for name in FIGURES if name in fields}
            self._bar.set_postfix(shown, refresh=False)
            self._bar.update(fields["done"] - self._bar.n)
        if event in ("start", "end") and self._bar is not None:
            self._bar.close()
            self._bar = None
        if event == "start":
            self._bar = self._tqdm(
                total=self.total, desc=self.name, unit=f" {self.unit}", unit_scale=True,
                file=self._stream, bar_format=BAR if self.total else BAR_WITHOUT_TOTAL,
                **self._size(),
            )  # fmt: skip
        super().on(event, fields)

    def line(self, text: str) -> None:
        """Print a line above the bar."""
        self._tqdm.write(text, file=self._stream)

    def _size(self) -> dict[str, Any]:
        """Return tqdm's arguments: the size of the terminal, or a fixed one if it reports 0."""
        with contextlib.suppress(OSError, ValueError, AttributeError):
            if os.get_terminal_size(self._stream.fileno()).columns == 0:
                return {"ncols": UNKNOWN_SIZE[0], "nrows": UNKNOWN_SIZE[1]}
        return {"dynamic_ncols": True}


class Lines(_Lines):
    """Prints a line every few seconds, for log files."""

    def __init__(self, stream: TextIO, clock: Clock = time.monotonic) -> None:
        super().__init__(stream)
        self._clock = clock
        self._start = self._last = clock()

    def on(self, event: str, fields: Fields) -> None:
        """Print a line of progress if the interval since the last one has passed."""
        now = self._clock()
        if event == "start":
            self._start = self._last = now
        elif event == "progress" and now - self._last >= LINE_SECONDS:
            self._last = now
            self.line(self._progress(fields["done"], now - self._start, fields))
        super().on(event, fields)

    def _progress(self, done: int, seconds: float, fields: Fields) -> str:
        speed = done / seconds
        share = f"{100 * done / self.total:.1f} %, " if self.total else ""
        parts = [f"{self.name}: {share}{done:,} {self.unit}", f"{speed:,.0f} {self.unit}/s"]
        parts += [f"{name} {fields[name]:.4g}" for name in FIGURES if name in fields]
        if self.total and speed > 0:
            parts.append(f"{(self.total - done) / speed:.0f} s left")
        return ", ".join(parts)


class JsonLog(Reporter):
    """Writes one JSON object a line: events start, progress, epoch, message and end.

    The log is opened at its first event, after all inputs and outputs have been checked. Every
    object has `event` and `seconds` since the log was opened (for epochs, the duration of the
    epoch). NaN and infinity are written as null. If the log cannot be written, for example on a
    full disk, training continues: `warn` is called with a message, and the end of the report raises
    `ResourceError` after the vectors have been saved. A closed pipe, as after `head`, is not a
    failure.
    """

    def __init__(
        self,
        path: str,
        clock: Clock = time.monotonic,
        append: bool = False,
        warn: Callable[[str], None] = lambda message: None,
    ) -> None:
        self._name = "standard output" if path == STANDARD else path
        self._path, self._append = path, append
        self._file: TextIO | None = None
        self._clock, self._warn = clock, warn
        self._start = clock()
        self._last = -math.inf
        self._failure: str | None = None
        self._ended = False

    def on(self, event: str, fields: Fields) -> None:
        """Write an event; of `progress`, at most one a second."""
        now = self._clock()
        if event == "end" and self._file is None and "error" in fields:
            return  # no event yet: an existing log is kept
        if event == "start":
            self._last = -math.inf
        if event == "progress":
            if now - self._last < EVENT_SECONDS:
                return
            self._last = now
        self._write({"event": event, "seconds": round(now - self._start, 3), **fields})
        if event == "end":
            self._close("error" in fields)

    def _close(self, has_failed: bool) -> None:
        if self._file is not None and self._file is not sys.stdout:
            with self._recording_failure():  # some file systems report errors only here
                self._file.close()
        if self._failure is not None and not has_failed:
            raise ResourceError(
                f"{self._name}: the log is incomplete ({self._failure}); the vectors are "
                "saved; free some space, or choose another log"
            )

    def _write(self, record: Fields) -> None:
        if self._ended:
            return
        if self._file is None:
            self._file = open_log(self._path, self._append)
        with self._recording_failure():
            self._file.write(json.dumps(_all_finite(record), allow_nan=False) + "\n")
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


class Callback(Reporter):
    """Calls a function with a `ProgressUpdate`; an exception from it ends the training."""

    def __init__(self, function: Callable[[ProgressUpdate], object]) -> None:
        self._function = function
        self._last = ProgressUpdate("", 0, None, "")

    def on(self, event: str, fields: Fields) -> None:
        """Call the function."""
        if event in ("start", "progress"):
            done, figures = fields.get("done", 0), _all_finite(fields)
            loss, lr = (figures.get(name) for name in FIGURES)
            self._last = ProgressUpdate(self.name, done, self.total, self.unit, loss, lr)
            self._function(self._last)
        elif event in ("epoch", "round"):
            self._function(dataclasses.replace(self._last, epoch=_all_finite(fields)))


class Tee(Reporter):
    """Forwards every event to several reporters."""

    def __init__(self, *reporters: Reporter) -> None:
        self._all = reporters

    def on(self, event: str, fields: Fields) -> None:
        """Forward an event."""
        for one in self._all:
            one.name, one.total, one.unit = self.name, self.total, self.unit
            one.on(event, fields)


ProgressLike = bool | Callable[[ProgressUpdate], object] | Reporter


def reporting(
    quiet: bool = False, log_json: str | None = None, append: bool = False
) -> contextlib.AbstractContextManager[Reporter]:
    """Create the reporter that fits stderr, and close it at the end.

    Parameters
    ----------
    quiet : bool
        Write nothing to stderr.
    log_json : str, optional
        Also write JSON lines to this file; ``-`` is standard output.
    append : bool
        Append them to the lines of an earlier run.

    Raises
    ------
    ResourceError
        The block succeeded, but the log is incomplete.
    """
    shown = Reporter()
    if not quiet:
        shown = Terminal(sys.stderr) if sys.stderr.isatty() else Lines(sys.stderr)
    return reporting_to(shown, log_json, append)


@contextlib.contextmanager
def reporting_to(
    progress: ProgressLike, log_json: str | None = None, append: bool = False
) -> Iterator[Reporter]:
    """Create the reporter for a call from Python: a bar for True, a callback, or a reporter."""
    shown = Reporter()
    if isinstance(progress, Reporter):
        shown = progress
    elif progress is True:
        from tqdm.auto import tqdm

        shown = Terminal(sys.stderr, tqdm)
    elif callable(progress):
        shown = Callback(progress)
    elif progress:
        raise UsageError(f"--progress={progress!r}: must be True, False or a function")
    reporter = shown
    if log_json is not None:
        reporter = Tee(shown, JsonLog(log_json, append=append, warn=shown.message))
    try:
        yield reporter
    except BaseException as error:
        text = in_shell_terms(error.message) if isinstance(error, DcmeError) else str(error)
        reporter.close(text or type(error).__name__)
        raise
    reporter.close()


# Figures of held-out text in the line of an epoch.
HELD_OUT_LABELS = {
    "heldout_log_probability": "held-out log p",
    "heldout_log_probability_with_noise": "with noise",
    "heldout_gap": "gap",
    "heldout_log_mean_probability": "log mean p",
}
ERRORS = {"heldout_log_probability": "heldout_standard_error"}


def step_of(record: Mapping[str, Any]) -> str:
    """Return the unit of a record: an epoch, or a round on a cluster."""
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
        if (value := record.get(name)) is not None:
            error = record.get(ERRORS.get(name, ""))
            shown = f"{value:.{3 if abs(value) < 10 else 2}f}"
            parts.append(f"{label} {shown}" + (f" ± {error:.1g}" if error else ""))
    seconds = record["seconds"]
    return ", ".join([*parts, f"{seconds:.{1 if seconds < 100 else 0}f} s"])


def _all_finite(fields: Fields) -> dict[str, Any]:
    return {name: _finite(value) for name, value in fields.items()}


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


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
    for number, line in read_text(path):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            if not line.endswith("\n") and number > 1:  # of a run that was killed
                return
            record = None
        if not isinstance(record, dict) or not isinstance(record.get("event"), str):
            raise FormatError(f"{path}:{number}: is not an event; give a file of --log-json")
        yield record

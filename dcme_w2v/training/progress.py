"""Report training progress by a bar on a terminal, by lines in a file, and in JSON-lines logs."""

import contextlib
import dataclasses
import importlib
import json
import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TextIO

from dcme_w2v.errors import DcmeError, FormatError, ResourceError, UsageError, in_shell_terms
from dcme_w2v.files.atomic import STANDARD, open_log
from dcme_w2v.files.opening import head_of, plain, read_text

Fields = Mapping[str, Any]
FIGURES = ("loss", "lr")  # fields that progress lines and bars display
# Formats of tqdm progress lines; on an 80-column terminal, the bar itself is 12 columns wide.
BAR = "{l_bar}{bar}| {rate_fmt}, {remaining}{postfix}"
BAR_WITHOUT_TOTAL = "{desc}: {n_fmt}{unit}, {rate_fmt}, {elapsed}{postfix}"
# Minimum number of seconds between progress lines, and between progress events in a log.
LINE_SECONDS, EVENT_SECONDS = 10, 1


@dataclass(frozen=True)
class ProgressUpdate:
    """The state of a stage, which is passed to progress callbacks.

    Attributes
    ----------
    stage : str
        "reading" or "training".
    done, total : int, int or None
        How much of the stage is done, in units. The total is None if it is unknown.
    unit : str
        "bytes" while reading, "words" while training.
    loss, lr : float, optional
        Mean loss per instance since the start of the epoch; the learning rate.
    epoch : mapping, optional
        At the end of an epoch, its measures: "epoch" (from 1), "seconds", "loss", "lr" and, with
        held-out text, the held-out scores.
    """

    stage: str
    done: int
    total: int | None
    unit: str
    loss: float | None = None
    lr: float | None = None
    epoch: Mapping[str, Any] | None = None


class Reporter:
    """Report progress by a bar or lines, a callback and a log; by default, report nothing.

    Lines also go to Python's logger ``dcme_w2v`` with the level INFO.

    The log is opened at its first event, after all inputs and outputs have been checked. Each line
    is a JSON object with `event` and `seconds` since the start (for epochs, the duration of the
    epoch). If the log cannot be written, for example on a full disk, training continues with a
    warning, and the end of the report raises `ResourceError`. A closed pipe, as after `head`, is
    not a failure.

    Parameters
    ----------
    stream : text file, optional
        Where a bar or lines are written.
    tqdm : class, optional
        Class of the bar; if None, lines are written every few seconds.
    function : callable, optional
        Called with each `ProgressUpdate`; an exception from it ends the training.
    log : str, optional
        A file; ``-`` is standard output.
    append : bool
        Append to the log of an earlier run.
    """

    def __init__(
        self,
        stream: TextIO | None = None,
        tqdm: Any = None,
        function: Callable[[ProgressUpdate], object] | None = None,
        log: str | None = None,
        append: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stream, self._function, self._clock = stream, function, clock
        # With an interval of 0, tqdm does not start a monitor thread.
        self._tqdm: Any = tqdm and type("Bar", (tqdm,), {"monitor_interval": 0})
        self._bar: Any = None
        self._path, self._append = log, append
        self._log: TextIO | None = None
        self._failure: str | None = None
        self._now = ProgressUpdate("", 0, None, "")
        self._start = self._began = self._shown = clock()
        self._logged = -math.inf

    def stage(self, name: str, total: int | None, unit: str, options: Fields | None = None) -> None:
        """Start a stage of `total` units (None if unknown), such as training with `options`."""
        self._began = self._shown = self._clock()
        self._logged = -math.inf
        self._close_bar()
        if self._tqdm:
            self._bar = self._tqdm(
                total=total, desc=name, unit=f" {unit}", unit_scale=True, file=self._stream,
                bar_format=BAR if total else BAR_WITHOUT_TOTAL, dynamic_ncols=True,
            )  # fmt: skip
        self._update(ProgressUpdate(name, 0, total, unit))
        more = {} if options is None else {"options": dict(options)}
        self._write("start", {"stage": name, "total": total, "unit": unit, **more})

    def advance(self, done: int, **fields: float) -> None:
        """Report how many units of the stage are done, and fields such as `loss` and `lr`."""
        figures = {name: fields[name] for name in FIGURES if name in fields}
        now = self._clock()
        if self._bar is not None:
            shown = {name: f"{value:.4g}" for name, value in figures.items()}
            self._bar.set_postfix(shown, refresh=False)
            self._bar.update(done - self._bar.n)
        elif now - self._shown >= LINE_SECONDS:
            self._shown = now
            self._print(self._line(done, now - self._began, figures))
        self._update(dataclasses.replace(self._now, done=done, **plain(figures)))
        if now - self._logged >= EVENT_SECONDS:
            self._logged = now
            self._write("progress", {"stage": self._now.stage, "done": done, **fields})

    def epoch(self, record: Fields) -> None:
        """Report the measures of an epoch or round: "epoch 2: loss 1.234, 5.6 s".

        The loss is missing if no loss was sampled, as in an epoch of a few tokens. The JSON log has
        all held-out scores, and the line has only the main scores, in at most 100 characters.
        """
        loss = plain(record["loss"])
        step = "round" if "round" in record else "epoch"
        parts = [f"{step} {record[step]}" + ("" if loss is None else f": loss {loss:.4g}")]
        error = record.get("heldout_standard_error")
        for name, label in HELD_OUT.items():
            if (value := record.get(name)) is not None:
                shown = f"{value:.{3 if abs(value) < 10 else 2}f}"
                parts.append(f"{label} {shown}" + (f" ± {error:.1g}" if error else ""))
                error = None
        seconds = record["seconds"]
        self._print(", ".join([*parts, f"{seconds:.{1 if seconds < 100 else 0}f} s"]))
        if self._function:
            self._function(dataclasses.replace(self._now, epoch=plain(record)))
        self._write(step, record)

    def message(self, message: str, **fields: float) -> None:
        """Report a one-line message; `fields` are recorded only in the log."""
        self._print(message)
        self._write("message", {"message": message, **fields})

    def close(self, error: str | None = None) -> None:
        """End the report and close the log; `error` is the error message if the run failed."""
        self._close_bar()
        # If the run failed before its first event, do not overwrite an existing log.
        if error is None or self._log is not None:
            self._write("end", {} if error is None else {"error": error})
        if self._log not in (None, sys.stdout):
            # Some file systems do not report write errors until the file is closed.
            with self._recording_failure():
                self._log.close()
        if self._failure is not None and error is None:
            raise ResourceError(
                f"{self._log_name}: the log is incomplete ({self._failure}), but the results are "
                "saved; free some disk space, or choose another log file"
            )

    def _update(self, update: ProgressUpdate) -> None:
        self._now = update
        if self._function:
            self._function(update)

    def _line(self, done: int, seconds: float, figures: Fields) -> str:
        speed, total, unit = done / seconds, self._now.total, self._now.unit
        share = f"{100 * done / total:.1f}%, " if total else ""
        parts = [f"{self._now.stage}: {share}{done:,} {unit}", f"{speed:,.0f} {unit}/s"]
        parts += [f"{name} {value:.4g}" for name, value in figures.items()]
        if total and speed > 0:
            parts.append(f"{(total - done) / speed:.0f} s left")
        return ", ".join(parts)

    def _print(self, text: str) -> None:
        # If the module logging was never imported, no handler could receive the message.
        if (library := sys.modules.get("logging")) is not None:
            library.getLogger("dcme_w2v").info("%s", text)
        if self._tqdm:
            self._tqdm.write(text, file=self._stream)
        elif self._stream:
            print(text, file=self._stream, flush=True)

    def _close_bar(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    @property
    def _log_name(self) -> str:
        return "standard output" if self._path == STANDARD else str(self._path)

    def _write(self, event: str, fields: Fields) -> None:
        if self._path is None or self._failure is not None:
            return
        if self._log is None:
            self._log = open_log(self._path, self._append)
        seconds = round(self._clock() - self._start, 3)
        record = plain({"event": event, "seconds": seconds, **fields})
        with self._recording_failure():
            self._log.write(json.dumps(record, allow_nan=False) + "\n")
            self._log.flush()

    @contextlib.contextmanager
    def _recording_failure(self) -> Iterator[None]:
        """Record the first OSError in the block; nothing is written to the log after that."""
        try:
            yield
        except BrokenPipeError:
            self._path = None
        except OSError as error:
            if self._failure is None and self._path is not None:
                self._failure = error.strerror or str(error)
                self._print(
                    f"warning: {self._log_name}: the log cannot be written ({self._failure}); "
                    "training continues"
                )


QUIET = Reporter()
ProgressLike = bool | str | Callable[[ProgressUpdate], object] | Reporter


@contextlib.contextmanager
def reporting_to(
    progress: ProgressLike, log_json: str | None = None, append: bool = False
) -> Iterator[Reporter]:
    """Create the reporter for the value of the argument `progress` in a Python call.

    "stderr" reports to stderr in the form that suits it, as the command line does.
    """
    if not (isinstance(progress, bool | Reporter) or callable(progress) or progress == "stderr"):
        raise UsageError(f"--progress={progress!r} must be True, False or a function")
    if isinstance(progress, Reporter):
        reporter = progress
    else:
        stream = sys.stderr if progress in (True, "stderr") else None
        is_bar = progress is True or (stream and stream.isatty())
        library: Any = is_bar and importlib.import_module(
            "tqdm.auto" if progress is True else "tqdm"
        )
        reporter = Reporter(
            stream, library and library.tqdm, progress if callable(progress) else None, log_json,
            append,
        )  # fmt: skip
    try:
        yield reporter
    except BaseException as error:
        text = in_shell_terms(error.message) if isinstance(error, DcmeError) else str(error)
        reporter.close(text or type(error).__name__)
        raise
    reporter.close()


# Names of held-out scores in an epoch's progress line; the first score has a standard error.
HELD_OUT = {
    "heldout_log_probability": "held-out log p",
    "heldout_log_probability_with_noise": "with noise",
    "heldout_gap": "gap",
    "heldout_log_mean_probability": "log mean p",
}


def is_log(path: str) -> bool:
    """Return whether a file starts with a log event."""
    return head_of(path).startswith(b'{"event": "')


def read_log(path: str) -> Iterator[dict[str, Any]]:
    """Yield the events of a --log-json log; ignore an incomplete last line.

    Raises
    ------
    FormatError
        A line is not a JSON object with an event.
    """
    for number, line in read_text(path):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            # Ignore an incomplete last line of a killed run.
            if not line.endswith("\n") and number > 1:
                return
            record = None
        if not isinstance(record, dict) or not isinstance(record.get("event"), str):
            raise FormatError(
                f"{path}:{number}: the line is not a log event; use a file written by --log-json"
            )
        yield record

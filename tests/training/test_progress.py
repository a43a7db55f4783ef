"""The progress of a training run: on a terminal, in a log file, as JSON lines, with --quiet."""

import io
import math
from pathlib import Path

import pytest
from helpers import records
from tqdm import tqdm

from dcme_w2v.training.progress import Reporter, reporting_to


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


class Screen(io.StringIO):
    def isatty(self):
        return True


def test_progress_lines_have_speed_loss_and_time_left():
    clock, out = Clock(), io.StringIO()
    lines = Reporter(out, clock=clock)
    lines.stage("training", 4000, "words")
    for second in range(1, 21):
        clock.now += 1
        lines.advance(100 * second, loss=0.5, lr=0.025)
    shown = out.getvalue().splitlines()
    assert shown == [
        "training: 25.0%, 1,000 words, 100 words/s, loss 0.5, lr 0.025, 30 s left",
        "training: 50.0%, 2,000 words, 100 words/s, loss 0.5, lr 0.025, 20 s left",
    ]


def test_a_logger_has_what_is_printed(caplog):
    clock, out = Clock(), io.StringIO()
    reporter = Reporter(out, clock=clock)
    with caplog.at_level("INFO", "dcme_w2v"):
        reporter.stage("training", 4000, "words")
        clock.now += 30
        reporter.advance(100, loss=0.5)
        reporter.epoch({"epoch": 1, "loss": 0.5, "seconds": 2.0})
        reporter.message("done: 50%")
        Reporter().message("quiet")
    assert caplog.messages == [*out.getvalue().splitlines(), "quiet"] and len(caplog.messages) == 4


def test_a_terminal_gets_a_bar_and_lines_above_it():
    screen = Screen()
    bar = Reporter(screen, tqdm)
    bar.stage("counting", 10, "bytes")
    bar.advance(10)
    bar.stage("training", 1000, "words")
    bar.advance(400, loss=0.123456, lr=0.05, words_per_second=3.0)
    bar.advance(1000, loss=0.1, lr=0.0)
    bar.epoch({"epoch": 1, "loss": 0.25, "seconds": 2.0, "heldout_log_probability": -3.5})
    bar.close()
    drawn = screen.getvalue()
    assert "counting: 100%" in drawn
    assert "training: 100%" in drawn
    assert "epoch 1: loss 0.25, held-out log p -3.500, 2.0 s\n" in drawn


def test_the_log_has_its_documented_keys_and_is_readable_during_the_run():
    clock, path = Clock(), Path("log.jsonl")
    log = Reporter(log=str(path), clock=clock)
    log.stage("training", 10, "words")
    assert records(path) == [
        {"event": "start", "seconds": 0, "stage": "training", "total": 10, "unit": "words"}
    ]
    for _ in range(30):
        clock.now += 0.1
        log.advance(3, loss=2.0, lr=0.1)
    log.epoch({"epoch": 1, "seconds": 0.25, "loss": 1.5, "lr": math.nan})
    written = records(path)
    progress = [record for record in written if record["event"] == "progress"]
    assert 3 <= len(progress) <= 4
    assert {"done", "loss", "lr", "stage", "seconds"} <= progress[0].keys()
    assert written[-1] == {
        "event": "epoch", "epoch": 1, "seconds": 0.25, "loss": 1.5, "lr": None
    }  # fmt: skip
    log.close()
    assert records(path)[-1]["event"] == "end"


def test_an_error_ends_the_log_and_is_raised():
    path = Path("log.jsonl")

    def train(end):
        with reporting_to(False, str(path)) as reporter:
            reporter.stage("training", 10, "words")
            raise end

    with pytest.raises(ValueError, match="boom"):
        train(ValueError("boom"))
    assert records(path)[-1]["error"] == "boom"
    with pytest.raises(KeyboardInterrupt):
        train(KeyboardInterrupt)
    assert records(path)[-1]["error"] == "KeyboardInterrupt"

"""Signals: the first is handled, the second has the default action, ignored ones stay ignored."""

import shutil
import signal
import subprocess
import sys
import threading

import pytest
from helpers import python

from dcme_w2v.cli.signals import raise_on_signals, recording_signals
from dcme_w2v.platform import SIGNALS


def test_the_second_signal_has_the_default_action():
    before = [signal.getsignal(one) for one in SIGNALS]
    with recording_signals() as received:
        assert received.number is None
        signal.raise_signal(signal.SIGTERM)
        assert received.number == signal.SIGTERM and received.name == "SIGTERM"
        for number in (signal.SIGINT, signal.SIGTERM):
            assert signal.getsignal(number) == signal.SIG_DFL
        signal.raise_signal(signal.SIGHUP)  # seldom comes alone: no second signal
    assert [signal.getsignal(one) for one in SIGNALS] == before


def test_signals_right_after_a_hangup_are_ignored():
    with recording_signals() as received:
        signal.raise_signal(signal.SIGHUP)
        signal.raise_signal(signal.SIGHUP)
        signal.raise_signal(signal.SIGTERM)
        assert received.name == "SIGHUP"
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


HEAD = """
import contextlib, os, sys, time
from dcme_w2v.cli import corpus, main, signals
def kill():
    os.kill(os.getpid(), {})
    time.sleep(0.001)
class Finder:
    def find_spec(self, name, *rest):
        found()
def imports():
    sys.meta_path.insert(0, Finder())
    import this_is_not_there
def command(**given):
    with contextlib.suppress(ImportError):
        act()
    time.sleep(100)
corpus.vocab.callback = command
"""
ENDED = {  # where a signal arrives, whose exception may be lost
    "a command": "act = kill",
    "a destructor": "class act:\n    def __del__(self):\n        kill()",
    "an import that clears errors": """
def found():
    with contextlib.suppress(BaseException):
        kill()
act = imports""",
    "an import that hangs": """
def found():
    kill()
    time.sleep(100)
signals._IMPORT_SECONDS, act = 0.2, imports""",
}


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("where", ENDED)
def test_a_signal_outside_of_training_is_the_exit_code(number, where):
    script = f"{HEAD.format(int(number))}{ENDED[where]}\nmain.main('vocab - --output -'.split())"
    ended = python("-c", script)
    assert ended.returncode == 128 + number
    assert ended.stderr == "error: interrupted\n" or "hangs" in where


AFTER = """
import atexit, os, sys, time
from dcme_w2v.cli import main
atexit.register(lambda: (os.kill(os.getpid(), {}), time.sleep(9)))
main.run = lambda arguments, prepare: prepare()
main.main([])
"""
WHILE_IMPORTED = """
import os, sys
class Finder:
    def find_spec(self, name, *rest):
        if name == 'dcme_w2v.cli.main':
            os.kill(os.getpid(), {})
sys.meta_path.insert(0, Finder())
import dcme_w2v.__main__
"""


@pytest.mark.parametrize(
    "script, number", [*((AFTER, one) for one in SIGNALS), (WHILE_IMPORTED, signal.SIGINT)]
)
def test_a_signal_after_a_command_or_while_it_is_imported_prints_nothing(script, number):
    ended = python("-c", script.format(int(number)))
    assert (ended.returncode, ended.stderr) == (-number, "")


@pytest.mark.skipif(shutil.which("nohup") is None, reason="needs nohup")
def test_nohup_is_respected():
    script = (
        "import os, signal\n"
        "from dcme_w2v.cli.signals import recording_signals, raise_on_signals\n"
        "raise_on_signals()\n"
        "os.kill(os.getpid(), signal.SIGHUP)\n"
        "with recording_signals() as received:\n"
        "    os.kill(os.getpid(), signal.SIGHUP)\n"
        "print(received.number)\n"
    )
    ended = subprocess.run(
        ["nohup", sys.executable, "-c", script], stdin=subprocess.DEVNULL, capture_output=True
    )
    assert ended.stdout == b"None\n"


def test_ignored_signals_stay_ignored():
    others = [signal.getsignal(one) for one in SIGNALS[1:]]
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        raise_on_signals()
        with recording_signals() as received:
            signal.raise_signal(signal.SIGINT)
            assert received.number is None
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
        for number, handler in zip(SIGNALS[1:], others, strict=True):
            signal.signal(number, handler)


def test_no_handlers_outside_of_the_main_thread():
    found = []

    def run():
        with recording_signals() as received:
            found.append(received.number)

    before = signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert found == [None] and signal.getsignal(signal.SIGINT) == before

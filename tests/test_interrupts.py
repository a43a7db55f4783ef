"""Signals: the first is noted, the second is the system's, ignored ones stay ignored."""

import os
import signal
import threading

from dcme_w2v.interrupts import noting, raise_on_signals


def test_the_second_signal_is_left_to_the_system():
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with noting() as noted:
        assert noted.number is None
        os.kill(os.getpid(), signal.SIGTERM)
        assert noted.number == signal.SIGTERM and noted.name == "SIGTERM"
        for number in (signal.SIGINT, signal.SIGTERM):
            assert signal.getsignal(number) == signal.SIG_DFL
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


def test_a_signal_that_is_to_be_ignored_is(monkeypatch):
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        raise_on_signals()
        with noting() as noted:
            os.kill(os.getpid(), signal.SIGINT)
            assert noted.number is None
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def test_no_signal_is_noted_outside_of_the_main_thread():
    found = []

    def run():
        with noting() as noted:
            found.append(noted.number)

    before = signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert found == [None] and signal.getsignal(signal.SIGINT) == before

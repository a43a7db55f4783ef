"""Settings and fixtures of all tests."""

import faulthandler
import signal
import sys
import zlib

import pytest
from helpers import COMPRESSORS
from hypothesis import settings
from path_rows import declared, made, work

__all__ = ["declared", "made", "work"]  # fixtures

# No deadline: the machine may be shared, and sanitizers are slow.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

LIMIT, SLOW_LIMIT = 300, 1800  # seconds for a test


def pytest_addoption(parser):
    """Add the choice of a part of the tests."""
    parser.addoption("--part", metavar="I/N", help="run the I-th of N parts of the tests")


def pytest_collection_modifyitems(config, items):
    """Keep one part, chosen by the names of the tests, so that each has some of every file."""
    if not (part := config.getoption("--part")):
        return
    number, parts = map(int, part.split("/"))
    chosen = {i for i in items if zlib.crc32(i.nodeid.encode()) % parts == number - 1}
    config.hook.pytest_deselected(items=[i for i in items if i not in chosen])
    items[:] = [i for i in items if i in chosen]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """End a test that hangs, and show where; end the process if it does not answer."""
    limit = SLOW_LIMIT if item.get_closest_marker("slow") else LIMIT

    def end(signum, frame):
        faulthandler.dump_traceback(sys.__stderr__)
        pytest.fail(f"took longer than {limit} seconds", pytrace=True)

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, limit)
    faulthandler.dump_traceback_later(limit + 60, exit=True, file=sys.__stderr__)
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        faulthandler.cancel_dump_traceback_later()


@pytest.fixture(autouse=True, scope="session")
def heed_interrupts():
    """Restore SIGINT and SIGHUP, which background shells and nohup ignore; tests send both."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    before_hangup = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGINT, before)
    signal.signal(signal.SIGHUP, before_hangup)


@pytest.fixture(params=COMPRESSORS)
def pack(request):
    """Compress bytes in each supported format."""
    return COMPRESSORS[request.param]

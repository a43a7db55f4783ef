"""Settings and fixtures of all tests."""

import signal

import pytest
from helpers import COMPRESSORS
from hypothesis import settings
from path_rows import declared, made, work

__all__ = ["declared", "made", "work"]  # fixtures

# No deadline: the machine may be shared, and sanitizers are slow.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


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

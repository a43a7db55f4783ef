"""What holds for all tests."""

import signal

import pytest
from helpers import COMPRESSORS
from hypothesis import settings
from path_rows import declared, made, work

__all__ = ["declared", "made", "work"]  # fixtures

# Time says nothing about an example on a machine that others use, or under a sanitizer.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


@pytest.fixture(autouse=True, scope="session")
def heed_interrupts():
    """A shell ignores SIGINT in what it runs in the background, nohup SIGHUP; tests send both."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    before_hangup = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGINT, before)
    signal.signal(signal.SIGHUP, before_hangup)


@pytest.fixture(params=COMPRESSORS)
def pack(request):
    """Each way to compress a file."""
    return COMPRESSORS[request.param]

"""Settings and fixtures of all tests."""

import faulthandler
import gc
import os
import re
import shutil
import signal
import sys
from importlib.util import find_spec
from pathlib import Path
from platform import machine

import pytest
from data import write_files
from helpers import COMPRESSORS, Program
from hypothesis import settings

from dcme_w2v import errors, platform

# No deadline: the machine may be shared, and sanitizers are slow.
settings.register_profile("untimed", deadline=None, max_examples=40)
settings.load_profile("untimed")

TESTS = Path(__file__).parent
# Files of tests that cannot run on Windows: they use what it has not, most while they are imported;
# its os.kill ends the process, whatever the signal: signal.raise_signal does not.
POSIX = re.compile(
    r"^import (?:fcntl|pty|resource|termios)|mkfifo|os\.(?:fork|kill)\b|os\.openpty|SIGHUP|SIGKILL"
    r"|\"/dev/|symlink_to|link_all\(|hardlink_to|geteuid|chmod|\[\"sh\"",
    re.MULTILINE,
)
# scikit-learn has no wheels for musl.
NEEDED = [POSIX] * (os.name == "nt") + [re.compile("^from sklearn", re.M)] * (
    find_spec("sklearn") is None
)
LEFT_OUT = {
    path.relative_to(TESTS).as_posix(): found[0]
    for path in TESTS.glob("*/test_*.py")
    for needed in NEEDED
    if (found := needed.search(path.read_text(encoding="utf-8")))
}
collect_ignore = list(LEFT_OUT)

LIMIT, SLOW_LIMIT = 300, 1800  # seconds for a test


def pytest_report_header():
    """Name the files that are left out, with the reason."""
    return [f"left out: {name} has {reason}" for name, reason in LEFT_OUT.items()]


# Why a test may be skipped with the packages of `dev`, which `.ci/run` checks: no check is lost
# unseen. `make test` has fewer packages, so `.ci/run` runs later what it skips.
CHECKED = "DCME_W2V_SKIPS"  # "listed": a skip for another reason is a failure; or a file for names
REST = "DCME_W2V_REST"  # such a file: only its tests and the long ones are run
SKIPS = {
    "could not import '(sentence_transformers|datasets)": "make test-sentence-transformers",
    "only root can": "run in the container of the wheels for musl",
    "no chromium": "not every system has a package of it",
    "SCIPY_ARRAY_API is not set": "scikit-learn checks other array libraries only then",
}
if sys.platform != "linux":
    SKIPS["/proc|/dev/full|x86 Linux|ru_maxrss|compiler's driver|only Linux"] = "no Linux"
elif machine() != "x86_64":
    SKIPS["x86 Linux"] = "another processor"
if sys.version_info < (3, 11):
    SKIPS["could not import 'tomllib'"] = "from Python 3.11 on"


def pytest_collection_modifyitems(items):
    """Select the tests that `make test` left out."""
    if path := os.environ.get(REST):
        names = tuple(Path(path).read_text(encoding="utf-8").splitlines())
        items[:] = [
            item
            for item in items
            if item.get_closest_marker("long") or item.nodeid.startswith(names)
        ]


def pytest_collection_finish():
    """Leave modules and tests out of garbage collections, which would visit them again."""
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session):
    """Fail if a test was skipped for a reason that is not listed, or note which were skipped."""
    wanted = os.environ.get(CHECKED)
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if not wanted or not reporter:
        return
    skipped = reporter.stats.get("skipped", [])
    if wanted != "listed":
        with Path(wanted).open("a", encoding="utf-8") as file:
            file.writelines(f"{report.nodeid}\n" for report in skipped)
        return
    for report in skipped:
        why = report.longrepr[2]
        if not re.search("|".join(SKIPS), why):
            reporter.write_line(f"\nerror: no skip of conftest.py: {report.nodeid}: {why}")
            session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """End a test that hangs, and show where; end the process if it does not answer."""
    limit = SLOW_LIMIT if item.get_closest_marker("slow") else LIMIT

    def end(signum, frame):
        faulthandler.dump_traceback(sys.__stderr__)
        pytest.fail(f"took longer than {limit} seconds", pytrace=True)

    faulthandler.dump_traceback_later(limit + 60, exit=True, file=sys.__stderr__)
    if not hasattr(signal, "SIGALRM"):
        return (yield)
    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, limit)
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        faulthandler.cancel_dump_traceback_later()


@pytest.fixture(autouse=True, scope="session")
def heed_interrupts():
    """Restore SIGINT and SIGHUP, which background shells and nohup ignore; tests send both."""
    kinds = {signal.SIGINT: signal.default_int_handler}
    if platform.HANGUP is not None:
        kinds[platform.HANGUP] = signal.SIG_DFL
    before = {one: signal.signal(one, handler) for one, handler in kinds.items()}
    yield
    for one, handler in before.items():
        signal.signal(one, handler)


@pytest.fixture(autouse=True, scope="session")
def no_waits_for_disks():
    """Only check the descriptors of files to flush: what tests write need not survive the machine.

    Tests of failing disks replace this function; commands in processes of their own flush.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", os.fstat)
        yield


@pytest.fixture(autouse=True, scope="session")
def one_line():
    """Fail if an error or a warning of this package has several lines."""
    message = errors._Marked.message.fget

    def checked(error):
        text = message(error)
        assert "\n" not in text, text
        return text

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(errors._Marked, "message", property(checked))
        yield


@pytest.fixture(params=COMPRESSORS)
def pack(request):
    """Compress bytes in each supported format."""
    return COMPRESSORS[request.param]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """The folder of the test, which is the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def cli(capsys, monkeypatch):
    return Program(capsys, monkeypatch)


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """A folder with a file of every kind, which tests only read."""
    folder = tmp_path_factory.mktemp("made")
    write_files(folder)
    return folder


@pytest.fixture
def work(made, tmp_path, monkeypatch):
    """A copy of the files, with a folder and a link to itself."""
    folder = tmp_path / "work"
    shutil.copytree(made, folder)
    (folder / "sub").mkdir()
    (folder / "here").symlink_to(".")
    monkeypatch.chdir(folder)
    monkeypatch.setattr("dcme_w2v.cli.machine.folders", lambda: [made])
    monkeypatch.setattr("dcme_w2v.cli.machine.LABEL_MIN", 1)
    return folder

"""The program ``dcme-w2v``, also ``python -m dcme_w2v``."""

import contextlib
import signal
import sys

from dcme_w2v import __version__


def main() -> None:
    """Run the program and exit; its version is printed before anything else is imported."""
    # Until a command runs, Ctrl-C ends the program as the system does: an exception could be lost
    # in what is imported, or be shown as its traceback.
    if signal.getsignal(signal.SIGINT) == signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    if sys.argv[1:] == ["--version"] and sys.stdout is not None:
        with contextlib.suppress(OSError):  # which the run below reports
            print(f"dcme-w2v, version {__version__}", flush=True)
            return
    from dcme_w2v.cli.main import main as run

    run()


if __name__ == "__main__":
    main()

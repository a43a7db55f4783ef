"""The program ``dcme-w2v``, also ``python -m dcme_w2v``."""

import contextlib
import sys

from dcme_w2v import __version__


def main() -> None:
    """Run the program and exit; its version is printed before anything else is imported."""
    if sys.argv[1:] == ["--version"] and sys.stdout is not None:
        with contextlib.suppress(OSError):  # which the run below reports
            print(f"dcme-w2v, version {__version__}", flush=True)
            return
    import signal

    # Until the program handles signals, Ctrl-C ends it without the traceback of an import.
    if signal.getsignal(signal.SIGINT) == signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from dcme_w2v.cli.main import main as run

    run()


if __name__ == "__main__":
    main()

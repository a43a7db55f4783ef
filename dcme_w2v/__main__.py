"""The program ``dcme-w2v``, also ``python -m dcme_w2v``."""

import _signal  # type: ignore[import-not-found]  # built in: nothing has to be loaded
import sys

# Until a command runs, Ctrl-C ends the process without a KeyboardInterrupt,
# which an imported module could swallow, or which would print a traceback.
if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)


def main() -> None:
    """Run the program and exit; `--version` is answered before anything else is imported."""
    if sys.argv[1:] == ["--version"] and sys.stdout is not None:
        from dcme_w2v import __version__

        try:
            print(f"dcme-w2v, version {__version__}", flush=True)
            return
        except OSError:  # the command below reports the error
            pass
    from dcme_w2v.cli.main import main as run

    run()


if __name__ == "__main__":
    main()

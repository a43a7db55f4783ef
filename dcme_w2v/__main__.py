"""Run the program ``dcme-w2v`` as ``python -m dcme_w2v``."""

import _signal  # type: ignore[import-not-found]  # built into Python, so importing it is fast

# Until a command runs, Ctrl-C ends the process without a KeyboardInterrupt.
# Otherwise, an import could swallow the KeyboardInterrupt, or Python would print a traceback.
if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)


def main() -> None:
    """Run the program and exit."""
    from dcme_w2v.cli.main import main as run

    run()


if __name__ == "__main__":
    main()

"""Entry point for ``python -m dcme_w2v``, which runs the program ``dcme-w2v``."""

# `_signal` is built into the interpreter, so importing it is faster than importing `signal`.
import _signal  # type: ignore[import-not-found]

# Until a command runs, let Ctrl-C end the process directly, without a KeyboardInterrupt.
# During imports, a KeyboardInterrupt could be swallowed, or Python would print its traceback.
if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)

from dcme_w2v.cli.main import main

if __name__ == "__main__":
    main()

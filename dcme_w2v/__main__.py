"""The program ``dcme-w2v``, also ``python -m dcme_w2v``."""

import sys

from dcme_w2v import __version__


def main() -> None:
    """Run the program and exit; its version is printed before anything else is imported."""
    if sys.argv[1:] == ["--version"]:
        print(f"dcme-w2v, version {__version__}")
        return
    from dcme_w2v.cli.main import main as run

    run()


if __name__ == "__main__":
    main()

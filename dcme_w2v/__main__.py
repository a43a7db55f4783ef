"""``python -m dcme_w2v`` is ``dcme-w2v``."""

from dcme_w2v.cli.main import main

main()

"""Search: ranks passages by BM25 of words and character n-grams, and finds near-duplicates."""

import sys
from types import ModuleType
from typing import NoReturn

from dcme_w2v.files.space import check_addresses

check_addresses()  # before scipy is loaded


class _Package(ModuleType):
    """The package, which is ``dw.search`` once `dw.Search` was used."""

    def __call__(self, *_: object, **__: object) -> NoReturn:
        """Say what to call instead."""
        raise TypeError("dw.search is a package; use dw.Search().fit(texts).search(queries)")


sys.modules[__name__].__class__ = _Package

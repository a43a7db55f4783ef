"""Rank passages by BM25 scores, and find near-duplicates."""

import sys
from types import ModuleType
from typing import NoReturn

from dcme_w2v.files.space import check_addresses

check_addresses()  # raise an error if importing scipy would hang


class _Package(ModuleType):
    """The package `dw.search`, which raises a helpful error if it is called like a function."""

    def __call__(self, *_: object, **__: object) -> NoReturn:
        """Raise an error that names the functions to call instead."""
        raise TypeError(
            "dw.search is a package and cannot be called; use "
            "dw.Search().fit(texts).search(queries)"
        )


sys.modules[__name__].__class__ = _Package

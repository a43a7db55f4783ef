"""Objects whose users cannot change what was learned: arrays and dicts are read-only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

_OWN = ("dcme_w2v.", "scipy.sparse.")  # modules of the classes whose attributes are sealed


class ReadOnlyDict(dict[str, Any]):
    """A dict that cannot be changed; it is copied, pickled and written as JSON like any other."""

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("this dict is read-only; change a copy: dict(...)")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (dict(self),)


class Sealed:
    """A model that is also sealed after it was copied or unpickled."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        seal(self)


def is_public(name: str) -> bool:
    """Return whether an attribute is for users."""
    return not name.startswith("_")


def sealed(value: Any) -> Any:
    """Return a value that can no longer be changed in place.

    Arrays become read-only in place, also those in objects of this package; lists are replaced by
    tuples and dicts by `ReadOnlyDict`.
    """
    if isinstance(value, np.ndarray):
        value.flags.writeable = False
    elif isinstance(value, dict):
        return ReadOnlyDict({key: sealed(part) for key, part in value.items()})
    elif type(value) in (list, tuple):
        return tuple(map(sealed, value))
    elif type(value).__module__.startswith(_OWN):
        seal(value)
    return value


def seal(owner: Any, is_learned: Callable[[str], bool] = is_public) -> None:
    """Seal the attributes of an object that were learned; caches have private names."""
    held = getattr(owner, "__dict__", {})
    held.update({name: sealed(part) for name, part in held.items() if is_learned(name)})

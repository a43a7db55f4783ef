"""Make the learned attributes of models read-only, including arrays and dicts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

_OWN = ("dcme_w2v.", "scipy.sparse.")  # modules whose objects are sealed, too


def _refuse(self: object, *_: object, **__: object) -> NoReturn:
    kind = type(self).__bases__[0].__name__
    raise TypeError(f"this {kind} is read-only; change a copy: {kind}(...)")


class ReadOnlyDict(dict[str, Any]):
    """A dict that cannot be changed; comparing, copying and writing as JSON work as for a dict."""

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (dict(self),)


class ReadOnlyList(list[Any]):
    """A list that cannot be changed; comparing, copying and writing as JSON work as for a list."""

    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = extend = insert = remove = pop = clear = sort = reverse = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (list(self),)


class Sealed:
    """Base class of models that remain read-only after they are copied or unpickled."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        seal(self)


def is_public(name: str) -> bool:
    """Return whether an attribute name is public."""
    return not name.startswith("_")


def sealed(value: Any) -> Any:
    """Return a value that cannot be changed in place.

    Arrays become read-only in place, including those in objects of this package; dicts and lists
    are replaced by read-only copies.
    """
    if isinstance(value, np.ndarray):
        value.flags.writeable = False
    elif isinstance(value, dict):
        return ReadOnlyDict({key: sealed(part) for key, part in value.items()})
    elif isinstance(value, list):
        return ReadOnlyList(map(sealed, value))
    elif type(value) is tuple:
        return tuple(map(sealed, value))
    elif type(value).__module__.startswith(_OWN):
        seal(value)
    return value


def seal(owner: Any, is_learned: Callable[[str], bool] = is_public) -> None:
    """Make the public attributes of an object read-only; private attributes may be caches."""
    held = getattr(owner, "__dict__", {})
    held.update({name: sealed(part) for name, part in held.items() if is_learned(name)})

"""How an option is declared and checked.

An option is a field of a frozen dataclass, as in `dcme_w2v.options`: type, default, bounds, help
text, spellings on the command line. The click option, ``--help``, the reference in the
documentation, the manifest and the C struct of the same name are derived from it, so that they
cannot disagree.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import math
import numbers
import os
import types
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from dcme_w2v.errors import UnknownOptionError, UsageError, warn

T = TypeVar("T")


@dataclass(frozen=True)
class Declaration:
    """What one option is, beside its name, type and default.

    `only`, `needs` and `unless` are when it has an effect: all of these other options have one of
    the values; one of them is given; none of them is. `sets` are the values of other options that
    follow from one of its own; `usual` are the lowest and the highest value of a sensible number;
    `bare` is the value of an option that is given without one on the command line.
    See `warn_of_options`.
    """

    help: str
    minimum: float | None = None
    maximum: float | None = None
    above: float | None = None
    choices: tuple[str, ...] = ()
    word2vec: str | None = None
    metavar: str | None = None
    only: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    sets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()
    usual: tuple[float, float] | None = None
    bare: str | None = None


def option(default: Any, help: str, **declaration: Any) -> Any:
    """Declare a field as an option.

    Parameters
    ----------
    default : object
        The default value; ``None`` means that the value is derived when training starts.
    help : str
        One line for ``--help`` and the reference.
    **declaration
        The other fields of `Declaration`: `minimum` and `maximum` (inclusive), `above`
        (exclusive lower bound), `choices`, `word2vec` (word2vec.c's spelling), `metavar`, and
        `only`, `needs`, `unless`, `usual`, `bare`.
    """
    return field(default=default, metadata={"option": Declaration(help, **declaration)})


def declaration_of(item: dataclasses.Field[Any]) -> Declaration:
    """Return the declaration of a dataclass field."""
    declared = item.metadata["option"]
    assert isinstance(declared, Declaration)
    return declared


def flag_of(name: str) -> str:
    """Return the command-line flag of an option: ``min_count`` is ``--min-count``."""
    return "--" + name.replace("_", "-")


@functools.cache
def types_of(cls: type) -> dict[str, tuple[type, bool]]:
    """Return each option's type and whether ``None`` is allowed."""
    found = {}
    for name, hint in typing.get_type_hints(cls).items():
        parts = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
        plain = [part for part in parts if part is not type(None)]
        found[name] = (plain[0], len(plain) < len(parts))
    return found


def default_threads() -> int:
    """Return the number of CPUs that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Checked:
    """Base class that checks every field against its declaration.

    Numbers, including numpy's, are converted to the declared Python type.
    """

    def __post_init__(self) -> None:
        cls: type = type(self)
        kinds = types_of(cls)
        for item in dataclasses.fields(self):  # type: ignore[arg-type]
            kind, optional = kinds[item.name]
            value = getattr(self, item.name)
            if value is None and optional:
                continue
            checked = _checked(item.name, value, kind, declaration_of(item))
            object.__setattr__(self, item.name, checked)

    @classmethod
    def from_mapping(cls: type[T], values: Mapping[str, Any]) -> T:
        """Create options from a mapping; an unknown name is an error that suggests the nearest."""
        check_names(values, [item.name for item in dataclasses.fields(cls)])  # type: ignore[arg-type]
        return cls(**values)


def check_names(given: Iterable[str], known: Sequence[str]) -> None:
    """Raise `UnknownOptionError`, with the nearest name, if a name is not known."""
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise UnknownOptionError(f"unknown option {name}{hint}")


def _checked(name: str, value: Any, kind: Any, declared: Declaration) -> Any:
    """Return a value converted to its type, or raise if it is not valid."""
    shown = repr(value)
    if isinstance(value, _ACCEPTED[kind]) and (kind is bool or not isinstance(value, bool)):
        value = kind(value)
        shown = str(value)
    given = f"{flag_of(name)}={shown}"
    if type(value) is not kind:
        raise UsageError(f"{given}: must be {_article(kind)}")
    if declared.choices and value not in declared.choices:
        raise UsageError(f"{given}: must be one of {', '.join(declared.choices)}")
    if kind is float and not math.isfinite(value):
        raise UsageError(f"{given}: must be a finite number")
    if declared.minimum is not None and value < declared.minimum:
        raise UsageError(f"{given}: must be at least {declared.minimum:g}")
    if declared.maximum is not None and value > declared.maximum:
        raise UsageError(f"{given}: must be at most {declared.maximum:g}")
    if declared.above is not None and value <= declared.above:
        raise UsageError(f"{given}: must be more than {declared.above:g}")
    return value


def warn_of_options(
    classes: Iterable[type], given: Iterable[str], values: Mapping[str, Any]
) -> None:
    """Warn of options that were given and have no effect, or an unusual value.

    Parameters
    ----------
    classes : iterable of type
        Dataclasses of options.
    given : iterable of str
        The names of the options that somebody has given.
    values : mapping
        Options and other arguments by name: as given, or their defaults.
    """
    names = set(given)
    for cls in classes:
        for item in dataclasses.fields(cls):
            if item.name in names and values[item.name] is not None:
                for message in _objections(item, values):
                    warn(message)


def _objections(item: dataclasses.Field[Any], values: Mapping[str, Any]) -> Iterator[str]:
    """Yield why an option has no effect with the values of others, or is unusual."""
    declared, flag, value = declaration_of(item), flag_of(item.name), values[item.name]
    others = {name: values[name] for name in declared.only if name in values}
    for name, other in others.items():
        if other not in declared.only[name]:
            wanted = " or ".join(f"{flag_of(name)}={one}" for one in declared.only[name])
            yield f"{flag} has no effect with {flag_of(name)}={other}; it is for {wanted}"
            return
    if declared.needs and all(_is_absent(values.get(name)) for name in declared.needs):
        wanted = " or ".join(map(flag_of, declared.needs))
        yield f"{flag} has no effect without {wanted}"
    for name in declared.unless:
        if not _is_absent(values.get(name)):
            yield f"{flag} has no effect with {flag_of(name)}"
    objective = declared.sets.get(value, {}).get("objective")
    if objective not in (None, values.get("objective")):
        yield (
            f"{flag}={value} is for --objective={objective}; only part of it has an effect with "
            f"--objective={values['objective']}"
        )
    if declared.usual is not None and isinstance(value, int | float):
        low, high = declared.usual
        if 0 < value < low or high < value < math.inf:
            yield f"{flag}={value:g} is unusual: {low:g} to {high:g} is the sensible range"


def _is_absent(value: Any) -> bool:
    return value is None or value is False


_ACCEPTED = {int: numbers.Integral, float: numbers.Real, str: str, bool: bool}


def _article(kind: type) -> str:
    return {int: "an integer", float: "a number", str: "a string", bool: "True or False"}[kind]


# ---- options that several commands have ----


def threads_option(**declaration: Any) -> Any:
    """Declare the number of threads."""
    return option(
        None,
        "number of threads (default: the CPUs that this process may use)",
        minimum=1,
        maximum=1024,
        **declaration,
    )


def seed_option() -> Any:
    """Declare the random seed."""
    return option(1, "random seed", minimum=0, maximum=2**63 - 1)


def encoding_errors_option() -> Any:
    """Declare what happens to tokens that are not UTF-8."""
    return option(
        "strict",
        "tokens that are not UTF-8: fail, replace the bytes by U+FFFD, or skip the token",
        choices=("strict", "replace", "skip"),
    )


def strict_option() -> Any:
    """Declare what happens to entries of folders that are not text."""
    return option(
        False, "fail on dangling links, pipes and binary files in folders instead of skipping them"
    )

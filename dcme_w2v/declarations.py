"""Declare options and check their values.

An option is a field of a frozen dataclass, as in `dcme_w2v.options`: type, default, bounds, help
text, heading of the help, conflicts with other options. The click option,
``--help``, the reference in the documentation, the manifest and the C struct of the same name are
derived from it, so that they cannot disagree::

    @dataclass(frozen=True)
    class MixtureOptions(Checked):
        group = "Model"
        components: int = option(60, "number of components", minimum=1)
        centers: str | None = option(None, "file of the initial means", needs=("components",))
"""

import copy
import dataclasses
import functools
import inspect
import math
import numbers
import re
import typing
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, ParamSpec, TypeVar

from dcme_w2v.errors import UnknownOptionError, UsageError, in_python_terms, warn
from dcme_w2v.hints import option_hint
from dcme_w2v.platform import default_threads

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
Conflict = tuple[str, str]  # the warning text and the error text for a conflict between options


@dataclass(frozen=True)
class Declaration:
    """The declaration of an option, with its type, default, help, bounds and conflicts.

    Attributes
    ----------
    name, type, default
        The field's name, type and default; None is also allowed if `optional`.
    help : str
        One line for ``--help`` and the reference.
    minimum, maximum, above : float, optional
        Inclusive minimum, inclusive maximum, and exclusive lower bound.
    choices : tuple of str
        The valid values; all values if empty.
    metavar : str, optional
        Name of the value in the help.
    path : str, optional
        The role of a path: see `dcme_w2v.files.paths`.
    bare : str, optional
        The value that the option has if the command line gives it without a value.
    word2vec : str, optional
        The name in word2vec.c (``size``).
    group : str, optional
        Heading of the help.
    advanced : bool
        Whether only ``--help-all`` shows the option.
    only : mapping of str to tuple
        The option has an effect only if each of these options has one of the values.
    needs : tuple of str
        The option has an effect only if at least one of these options is given.
    unless : tuple of str
        The option has no effect if one of these options is given.
    strict : bool
        Whether a conflict (`only`, `needs`, `unless`) is an error instead of a warning.
    neutral : tuple
        Values that never conflict, besides None, False and the default.
    check : callable, optional
        Raises `UsageError` if a value is invalid for a reason not covered by the attributes above.
    presets : mapping of str to mapping, optional
        The values that each choice gives to other options; see `with_preset`.
    adapted : callable, optional
        Returns a preset's values without those that the given options rule out.
    """

    name: str
    type: Any
    optional: bool
    default: Any
    help: str
    minimum: float | None = None
    maximum: float | None = None
    above: float | None = None
    choices: tuple[str, ...] = ()
    metavar: str | None = None
    path: str | None = None
    bare: str | None = None
    word2vec: str | None = None
    group: str | None = None
    advanced: bool = False
    only: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()
    strict: bool = False
    neutral: tuple[Any, ...] = ()
    check: Callable[[Any], object] | None = None
    presets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    adapted: Callable[[Mapping[str, Any], Mapping[str, Any]], Mapping[str, Any]] | None = None


def option(default: Any, help: str, **declaration: Any) -> Any:
    """Declare a dataclass field as an option.

    Parameters
    ----------
    default : object
        The default value; ``None`` means that the value is derived when training starts.
    help : str
        One line for ``--help`` and the reference.
    **declaration
        The other attributes of `Declaration`.
    """
    return field(default=default, metadata={"help": help, **declaration})


def _options_in(cls: type) -> tuple[Declaration, ...]:
    """Return a dataclass's option fields as declarations; preset names become choices."""
    found, kinds = [], typing.get_type_hints(cls)
    heading = getattr(cls, "group", "Other")
    for item in dataclasses.fields(cls):
        if "help" in item.metadata:
            kind = kinds[item.name]
            first, *others = typing.get_args(kind) or [kind]
            choices = tuple(item.metadata.get("presets", ()))
            declared = {"group": heading, "choices": choices, **item.metadata}
            found.append(Declaration(item.name, first, bool(others), item.default, **declared))
    return tuple(found)


options_in: Callable[[type], tuple[Declaration, ...]] = functools.cache(_options_in)


def paths_in(*options: Any) -> list[tuple[str, str, Any]]:
    """Return the role, the flag and the value of each option that is a path."""
    return [
        (item.path, flag_of(item.name), getattr(one, item.name))
        for one in options
        for item in options_in(type(one))
        if item.path is not None
    ]


def described(options: Sequence[Declaration], names: Mapping[str, str] | None = None) -> str:
    """Return numpydoc entries for options, using the parameter names in `names`."""
    text = "\n".join(item.help for item in options)
    helps = in_python_terms(re.sub(r"`?(--[a-z][\w-]*(=\w+)?)`?", r"`\1`", text)).splitlines()
    text = ""
    for item, help in zip(options, helps, strict=True):
        name = (names or {}).get(item.name, item.name)
        if item.type in (int, float):  # help texts call this value N or X
            help = re.sub(r"\b[NX]\b", f"`{name}`", help)
        kind = f"{{{', '.join(map(repr, item.choices))}}}" if item.choices else item.type.__name__
        end = "optional" if item.default is None else f"default {item.default!r}"
        text += f"{name} : {kind}, {end}\n"
        text += f"    {help[0].upper()}{help[1:]}.\n"
    return text


def flag_of(name: str) -> str:
    """Return the command-line flag of an option, such as ``--min-count`` for ``min_count``."""
    return "--" + name.replace("_", "-")


def values_of(options: Any, *classes: type) -> dict[str, Any]:
    """Return the values of the options that `classes` declare, by name."""
    return {item.name: getattr(options, item.name) for cls in classes for item in options_in(cls)}


def part_of(options: Any, cls: type[T]) -> T:
    """Create an object of the options class `cls` from the same-named fields of `options`."""
    names = [item.name for item in dataclasses.fields(cls)]  # type: ignore[arg-type]
    return cls(**{name: getattr(options, name) for name in names})


def filled(options: T, found: Mapping[str, Any]) -> T:
    """Return a copy of the options in which values from `found` replace None."""
    result = copy.copy(options)
    vars(result).update((name, one) for name, one in found.items() if vars(options)[name] is None)
    return result


def filled_rates(options: T, found: Mapping[str, Any]) -> T:
    """Fill in options like `filled`, and set --min-lr to --lr / 10,000 by default.

    Raises
    ------
    UsageError
        --min-lr is higher than --lr.
    """
    given = vars(options)
    rate = found["lr"] if given["lr"] is None else given["lr"]
    if (least := given["min_lr"]) is not None and least > rate:
        raise UsageError(f"--min-lr={least:g} must be at most --lr={rate:g}")
    return filled(options, {**found, "min_lr": rate / 10_000})


class Checked:
    """Base class that checks every option against its declaration.

    Numbers, including numpy's, are converted to the declared Python type.
    """

    group: ClassVar[str] = "Other"  # heading of the class's options in the help

    def __post_init__(self) -> None:
        for item in options_in(type(self)):
            value = getattr(self, item.name)
            if value is item.default:
                continue
            # Python callers may pass a file's contents instead of its path.
            in_memory = item.path == "reads" and not isinstance(value, str)
            if not (in_memory or (value is None and item.optional)):
                object.__setattr__(self, item.name, checked_value(value, item))

    @classmethod
    def from_mapping(cls: type[T], values: Mapping[str, Any]) -> T:
        """Create options from a mapping; errors about unknown names suggest similar names."""
        check_names(values, [item.name for item in options_in(cls)])
        return cls(**values)


def with_preset(items: Iterable[Declaration], given: Mapping[str, Any]) -> dict[str, Any]:
    """Fill in a preset's values for options that the user has not set.

    An invalid preset is left to the check of its choices, whose error lists the valid presets.
    """
    for item in items:
        if (values := item.presets.get(given.get(item.name, ""))) is not None:
            return {**(item.adapted(values, given) if item.adapted else values), **given}
    return dict(given)


def check_names(given: Iterable[str], known: Iterable[str]) -> None:
    """Raise `UnknownOptionError`, which suggests a similar name, if a name is unknown."""
    known = [*known]
    for name in given:
        if name not in known:
            raise UnknownOptionError(f"unknown option {name}{option_hint(name, known)}")


def checks_names(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function so that unknown arguments raise an error that suggests a similar name."""
    known = inspect.signature(function).parameters

    @functools.wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        check_names(kwargs, known)
        return function(*args, **kwargs)

    return checked


def whole_number(name: str, value: Any, least: int = 1, most: float | None = None) -> int:
    """Convert an argument to int; raise `UsageError` if it is not an integer within the bounds."""
    declared = Declaration(name, int, False, None, "", minimum=least, maximum=most)
    return int(checked_value(value, declared))


def check_choice(name: str, value: Any, choices: Iterable[str]) -> None:
    """Raise `UsageError` if the value of an option or argument is not one of its choices."""
    if value not in (known := [*choices]):
        raise UsageError(f"{name} must be {_listed(known)}, not {value!r}")


def checked_value(value: Any, declared: Declaration) -> Any:
    """Convert a value to the type of its option; raise an error if the value is invalid."""
    kind, name = declared.type, declared.name
    flag = name if name.startswith("-") else flag_of(name)
    if isinstance(value, numbers.Rational) and abs(value) >= _BEYOND:
        raise UsageError(f"{flag}: the number does not fit in 64 bits; use a smaller number")
    text = repr(value)
    if isinstance(value, _ACCEPTED[kind]) and (kind is bool or not isinstance(value, bool)):
        value = kind(value)
        text = str(value)
    given = f"{flag}{'=' if flag.startswith('--') else ' '}{text}"
    if type(value) is not kind:
        raise UsageError(f"{given} must be {_NOUNS[kind]}")
    if declared.choices:
        check_choice(flag, value, declared.choices)
    if kind is float and not math.isfinite(value):
        raise UsageError(f"{given} must be a finite number")
    if declared.minimum is not None and value < declared.minimum:
        raise UsageError(f"{given} must be at least {shown(declared.minimum)}")
    if declared.maximum is not None and value > declared.maximum:
        raise UsageError(f"{given} must be at most {shown(declared.maximum)}")
    if declared.above is not None and value <= declared.above:
        raise UsageError(f"{given} must be more than {shown(declared.above)}")
    if declared.check is not None:
        declared.check(value)
    return value


# ---- conflicts ----


def check_conflicts(
    declared: Iterable[Declaration], values: Mapping[str, Any], given: Container[str] = ()
) -> None:
    """Raise an error if options conflict; only warn if the conflict is declared as a warning.

    Parameters
    ----------
    declared : iterable of Declaration
    values : mapping
        Options and other arguments by name; missing options have their defaults.
    given : container of str
        The names of the options that the user has given; only these cause warnings.

    Raises
    ------
    UsageError
        The message names both options and what to do.
    """
    items = {item.name: item for item in declared}
    for name, item in items.items():
        value = values.get(name, item.default)
        if _is_set(item, value) if item.strict else name in given and value is not None:
            for warning, error in _conflicts(item, items, values):
                if item.strict:
                    raise UsageError(f"{_spelled(name, value)} {error}")
                warn(f"{flag_of(name)} {warning}")


def _conflicts(
    item: Declaration, items: Mapping[str, Declaration], values: Mapping[str, Any]
) -> Iterator[Conflict]:
    """Yield the reasons why an option has no effect when combined with the other options."""
    for name, wanted in item.only.items():
        other = values.get(name, items[name].default if name in items else None)
        if other is None or other in wanted:
            continue
        if name in items and any(_conflicts(items[name], items, values)):
            continue  # the option that this one requires has no effect either
        others, meant = _spelled(name, other), f"{flag_of(name)}={_listed(wanted)}"
        yield (
            f"has no effect with {others}; it requires {meant}",
            f"is not supported with {others}; use {meant}",
        )
        return
    if item.needs and not any(_is_given(name, items, values) for name in item.needs):
        missing = " or ".join(map(flag_of, item.needs))
        yield f"has no effect without {missing}", f"requires {missing}"
    for name in item.unless:
        if _is_given(name, items, values):
            other = flag_of(name)
            yield (
                f"has no effect with {other}",
                f"is not supported with {other}; omit one of the two options",
            )


def _is_set(item: Declaration, value: Any) -> bool:
    """Return whether an option is set and can therefore conflict with other options."""
    return value is not None and value is not False and value not in (item.default, *item.neutral)


def _is_given(name: str, items: Mapping[str, Declaration], values: Mapping[str, Any]) -> bool:
    value = values.get(name)
    if name in items:
        return _is_set(items[name], value)
    return value is not None and value is not False


def _spelled(name: str, value: Any) -> str:
    """Format an option for messages, with its value unless the option is a switch."""
    if value is True:
        return flag_of(name)
    return f"{flag_of(name)}={shown(value)}"


def shown(value: Any) -> str:
    """Format an option's value for messages."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def _listed(values: Sequence[Any]) -> str:
    """Join values as in "a, b or c"."""
    *first, last = map(str, values)
    return f"{', '.join(first)} or {last}" if first else last


_ACCEPTED = {int: numbers.Integral, float: numbers.Real, str: str, bool: bool}
_BEYOND: Any = 1 << 63
_NOUNS = {int: "an integer", float: "a number", str: "a string", bool: "True or False"}


# ---- options that several commands share ----


SEED: dict[str, Any] = {
    "default": 1, "help": "random seed", "minimum": 0, "maximum": 2**63 - 1, "group": "Run"
}  # fmt: skip
THREADS: dict[str, Any] = {
    "default": None,
    "help": "number of threads (default: the number of CPUs available to this process)",
    "minimum": 1,
    "maximum": 1024,
    "group": "Run",
}
ENCODING_ERRORS: dict[str, Any] = {
    "default": "strict",
    "help": "if a token is not UTF-8: fail, replace invalid bytes with U+FFFD, or skip it",
    "choices": ("strict", "replace", "skip"),
    "group": "Input",
    "advanced": True,
}


@dataclass(frozen=True)
class ThreadsOptions(Checked):
    """The option for the number of threads, used by functions that have no other options."""

    threads: int | None = option(**THREADS)


def threads_of(given: int | None) -> int:
    """Check a number of threads; if the number is None, return the number of available CPUs."""
    return ThreadsOptions(given).threads or default_threads()

"""The parameters, labels and protocol methods of all estimators, without scikit-learn.

`parameters` derives an estimator's constructor from the dataclass that declares its options.
Importing scikit-learn takes 0.9 seconds of CPU time, but its tools require only methods, not a base
class.
"""

import contextlib
import functools
import inspect
import numbers
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import numpy as np

from dcme_w2v.declarations import Declaration, described, options_in, with_preset
from dcme_w2v.errors import UsageError, in_python_terms, warn
from dcme_w2v.hints import option_hint

from .arrays import F64, Array, Bools, seal
from .sparse_rows import is_sparse


class Fitted:
    """Base class of estimators; reading a learned attribute raises an error before `fit` is called.

    Several threads may use one object: each method call sees the result of a single `fit`, and a
    `fit` that fails changes nothing; see `parameters`.
    """

    _learned = ""  # name of an attribute that exists only after `fit`

    @property
    def _progress(self) -> Any:
        """Convert `verbose` to a `progress` argument: True, False or a function."""
        return self.verbose if callable(self.verbose) else bool(self.verbose)

    def __getattr__(self, name: str) -> Any:
        if self.__sklearn_is_fitted__() or name.startswith("__"):
            raise AttributeError(f"{type(self).__name__} has no attribute {name}")
        raise not_fitted()(f"this {type(self).__name__} is not fitted; call fit first")

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether `fit` was called."""
        return self._learned in vars(self)

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        seal(self, _is_learned)


def not_fitted() -> type[Exception]:
    """Return NotFittedError, or an equivalent class if scikit-learn is not installed."""
    try:
        from sklearn.exceptions import NotFittedError
    except ImportError:
        return type("NotFittedError", (ValueError, AttributeError), {})
    return NotFittedError


class ProtocolEstimator(Fitted):
    """An estimator that has scikit-learn's protocol methods, but not its base classes."""

    _declared: tuple[type, dict[str, str]]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name."""
        return {name: getattr(self, name) for name in _names_of(self)}

    def set_params(self, **params: Any) -> Any:
        """Set parameters by name, and return self.

        Raises
        ------
        ValueError
            A parameter does not exist.
        """
        known = _names_of(self)
        for name in params:
            if name not in known:
                raise ValueError(
                    f"Invalid parameter {name!r} for estimator {self}. Valid parameters are: "
                    f"{known}."
                )
        vars(self).update(params)
        return self

    def __repr__(self) -> str:
        plain = inspect.signature(type(self)).parameters
        changed = {
            name: value
            for name, value in self.get_params().items()
            if value is not plain[name].default and repr(value) != repr(plain[name].default)
        }
        return f"{type(self).__name__}({', '.join(f'{n}={v!r}' for n, v in changed.items())})"

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type="classifier",
            target_tags=TargetTags(required=True),
            classifier_tags=ClassifierTags(),
            transformer_tags=TransformerTags(),
        )


def _names_of(estimator: Any) -> list[str]:
    return sorted(inspect.signature(type(estimator)).parameters)


def tags_of_texts(tags: Any) -> Any:
    """Change an estimator's scikit-learn tags to declare that its input is text."""
    tags.input_tags.string = tags.input_tags.one_d_array = tags.no_validation = True
    tags.input_tags.two_d_array = tags.input_tags.sparse = False
    return tags


C = TypeVar("C", bound=type)
_FITS = ("fit", "fit_transform", "fit_predict", "partial_fit")
_READS = ("predict", "predict_log_proba", "predict_proba", "decision_function", "transform",
          "score", "explain", "save", "get_feature_names_out")  # fmt: skip
VERBOSE = """verbose : int or callable, default 0
    Show a progress bar if above 0, or call this function with each `ProgressUpdate`.
"""


def parameters(
    options: type,
    *,
    first: Mapping[str, Any] | None = None,
    last: Mapping[str, Any] | None = None,
    without: tuple[str, ...] = (),
) -> Callable[[C], C]:
    """Return a class decorator that turns a dataclass's options into estimator parameters.

    The constructor only stores the parameters, as scikit-learn requires; `options_of` checks them.
    `seed` is renamed to `random_state`, and `verbose` is added. The lines ``{options}`` and
    ``{verbose}`` in the class's docstring are replaced by parameter lists. Methods work on a copy
    of the attributes, and methods that fit replace the attributes by this copy at the end.

    Parameters
    ----------
    options : dataclass
        Declares the names, defaults and help texts.
    first, last : mapping, optional
        Names and defaults of further parameters, before the options (these may be positional) and
        after them.
    without : tuple of str
        Options that do not apply to the estimator.
    """
    fields = [item for item in options_in(options) if item.name not in without]
    names = {item.name: "random_state" if item.name == "seed" else item.name for item in fields}
    kind = inspect.Parameter
    taken = [kind("self", kind.POSITIONAL_ONLY)]
    taken += [kind(n, kind.POSITIONAL_OR_KEYWORD, default=v) for n, v in (first or {}).items()]
    later = {names[item.name]: item.default for item in fields} | dict(last or {})
    later |= {} if "verbose" in without else {"verbose": 0}
    taken += [kind(name, kind.KEYWORD_ONLY, default=value) for name, value in later.items()]
    signature = inspect.Signature(taken)

    def __init__(self: Any, *args: Any, **params: Any) -> None:
        try:
            given = signature.bind(self, *args, **params)
        except TypeError as error:
            known = list(signature.parameters)[1:]
            said = "".join(option_hint(name, known) for name in params if name not in known)
            raise TypeError(f"{type(self).__name__}: {error}{in_python_terms(said)}") from None
        given.apply_defaults()
        for name, value in list(given.arguments.items())[1:]:
            setattr(self, name, value)

    def decorate(cls: C) -> C:
        __init__.__signature__ = signature  # type: ignore[attr-defined]
        __init__.__qualname__ = f"{cls.__qualname__}.__init__"
        cls.__init__ = __init__  # type: ignore[misc]
        cls._declared = (options, names)  # type: ignore[attr-defined]
        for name in (name for name in (*_FITS, *_READS) if hasattr(cls, name)):
            setattr(cls, name, _on_a_copy(getattr(cls, name), name in _FITS))
        if cls.__doc__:
            # Remove the indentation, as Python 3.13 and later already do.
            text = inspect.cleandoc(cls.__doc__)
            text = text.replace("{options}\n", described(fields, names))
            text = text.replace("{verbose}\n", VERBOSE)
            cls.__doc__ = text.replace("state : int,", "state : int, RandomState or None,")
        return cls

    return decorate


def _is_learned(attribute: str) -> bool:
    """Return whether an attribute is set by `fit` rather than by scikit-learn itself."""
    is_named = attribute.startswith("_") or attribute.endswith("_")
    return is_named and "sklearn" not in attribute


def _on_a_copy(method: Callable[..., Any], fits: bool) -> Callable[..., Any]:
    """Make a method thread-safe by running it on a copy of the estimator's attributes."""

    @functools.wraps(method)
    def run(self: Any, *args: Any, **params: Any) -> Any:
        own = object.__new__(type(self))
        own.__dict__ = dict(vars(self))
        try:
            found = method(own, *args, **params)
        except KeyboardInterrupt as error:
            if fits and getattr(error, "partial", None) is own:
                self.__dict__, error.partial = vars(own), self  # type: ignore[attr-defined]
            raise
        if fits:
            seal(own, _is_learned)
            self.__dict__ = vars(own)
        return self if found is own else found

    return run


def options_of(estimator: Any, **more: Any) -> Any:
    """Convert an estimator's parameters to an object of the dataclass that declares them.

    A preset sets only parameters that still have their defaults; `more` sets options that are not
    parameters.

    Raises
    ------
    UsageError
        A value is not valid; the message names the parameter.
    """
    options, names = estimator._declared
    values = {field: getattr(estimator, name) for field, name in names.items()}
    items = options_in(options)
    given = {item.name: values[item.name] for item in items if _is_given(item, values)}
    preset = with_preset(items, given)
    values |= {field: one for field, one in preset.items() if field in values}
    if "seed" in values:
        values["seed"] = _seed_of(values["seed"])
    return options(**values, **more)


def _is_given(item: Declaration, values: Mapping[str, Any]) -> bool:
    """Return whether a parameter differs from its default."""
    value = values.get(item.name, item.default)
    default = item.default
    return type(value) is not type(default) or bool(value != default)


def _seed_of(random_state: Any) -> int:
    """Convert `random_state` to an integer seed, which numpy's global generator draws for None."""
    if random_state is None:
        return int(np.random.randint(2**31 - 1))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    if isinstance(random_state, numbers.Integral) and 0 <= int(random_state) < 2**63:
        return int(random_state)
    raise UsageError(
        f"random_state={random_state!r} must be None, an integer from 0 to 2**63 - 1, or a "
        "RandomState"
    )


def is_unlabeled(labels: Array) -> Bools:
    """Return a boolean mask of the rows that have no label, shape (rows,).

    An unlabeled row has the label -1, None, NaN or NA, or "-1", because numpy converts -1 in a list
    of names to "-1".
    """
    if labels.dtype.kind in "iuf":
        return np.asarray((labels == -1) | (labels != labels), dtype=np.bool_)
    marks = ("-1", b"-1", -1, None)
    return np.array(
        [type(one).__name__ == "NAType" or one in marks or one != one for one in labels.tolist()],
        dtype=np.bool_,
    )


def check_all_labeled(y: Any) -> None:
    """Raise an error or a warning if rows look unlabeled but the estimator requires labels.

    Raises
    ------
    UsageError
        A label is None, NaN or NA, or is -1 among names, where it cannot be a class.
    """
    labels = _as_array(y)
    if labels.ndim != 1 or not (marked := is_unlabeled(labels)).any():
        return
    count, mark, known = int(marked.sum()), labels[marked][0], labels[~marked].tolist()
    if isinstance(mark, str | bytes):
        with contextlib.suppress(ValueError):
            np.array(known, dtype=np.float64)
            return  # if all other labels are numeric strings, "-1" is an ordinary label
    remedy = (
        "omit these rows, or use LatentClassModel or FusedFeatures, which can learn from "
        "unlabeled rows"
    )
    is_number = all(isinstance(one, numbers.Real) for one in (mark, *known))
    if not is_number or mark != -1:
        raise UsageError(f"y has {count:,} rows without a label ({mark}); {remedy}")
    if max(known, default=0) > 1:  # -1 is an ordinary label if no label exceeds 1
        warn(f"the label -1 of {count:,} rows counts as a class; if -1 means no label, {remedy}")


def split_labels(y: Any) -> tuple[Any, Bools]:
    """Replace missing labels with an existing label, and return which labels were missing.

    Integers that numpy converted to floats because of NaN become integers again; see
    `is_unlabeled`.

    Parameters
    ----------
    y : array or sequence, shape (rows,)
        Any other shape is returned unchanged, for the checks that follow.

    Returns
    -------
    labels : array, shape (rows,)
        The labels, in which unlabeled rows have the label of an arbitrary labeled row.
    unlabeled : ndarray of bool, shape (rows,)

    Raises
    ------
    UsageError
        No row has a label.
    """
    if y is None:
        return y, np.zeros(0, dtype=np.bool_)
    array = _as_array(y)
    if array.ndim != 1:
        column = array.ndim == 2 and array.shape[1] == 1
        return y, np.zeros(len(array) if column else 0, dtype=np.bool_)
    without = is_unlabeled(array)
    if not without.any():
        return y, without
    if without.all():
        raise UsageError(
            f"all labels are {array[:1].tolist()[0]!r}, which marks unlabeled rows; use labels of "
            "at least two classes"
        )
    filled = array.copy()
    filled[without] = array[~without][0]
    if array.dtype.kind == "f" and (filled == np.rint(filled)).all():
        # NaN turned integer labels into floats, so convert them back.
        filled = filled.astype(np.int64)
    return (np.array(filled.tolist()) if array.dtype == object else filled), without


def _as_array(y: Any) -> Array:
    """Convert labels to an array, whose dtype is object for a list, so that -1 remains a number."""
    if hasattr(y, "__array__") or is_sparse(y) or not isinstance(y, Iterable):
        return np.asarray(y)
    labels = list(y)
    if any(isinstance(one, list | tuple | np.ndarray) for one in labels):
        return np.asarray(y)
    found = np.empty(len(labels), dtype=object)
    found[:] = labels
    return found


def check_weights(sample_weight: Any, count: int) -> F64:
    """Convert `sample_weight` to one weight per row.

    A single number applies to all rows. If `sample_weight` is None, each row has the weight 1.

    Raises
    ------
    UsageError
        The number of weights is wrong, a weight is negative or not finite, or all are 0.
    """
    if sample_weight is None:
        return np.ones(count)
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise UsageError(f"sample_weight: weights must be numbers ({error})") from None
    if weights.ndim == 0:
        weights = np.full(count, float(weights))
    if weights.shape != (count,):
        raise UsageError(
            f"sample_weight has the shape {weights.shape}, but must have the shape ({count},); "
            "pass one weight per row"
        )
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise UsageError("sample_weight: weights must be finite and nonnegative")
    if not weights.any():
        raise UsageError(
            "sample_weight: all weights are zero; at least one weight must be positive"
        )
    return weights

"""Results and models are immutable or copies: what users get cannot change what was learned."""

import contextlib
import copy
import operator
import pickle

import numpy as np
import pytest
from objects import LABELS, OBJECTS, ROWS, SHELL, SPARSE
from scipy.sparse import issparse

import dcme_w2v as dw

KINDS = OBJECTS | SHELL
CHANGES = {
    np.ndarray: (lambda one: one.fill(0), lambda one: one.sort()),
    dict: (lambda one: one.update(a=1), lambda one: operator.setitem(one, "a", 1)),
    list: (lambda one: one.append(1), lambda one: one.clear()),
}  # fmt: skip
HOW = (copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one)), lambda one: one)


def plain(value):
    """Return a value that can be compared; the numbers of an array."""
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, list):
        return [plain(part) for part in value]
    value = value.toarray() if issparse(value) else value
    return value.tolist() if isinstance(value, np.ndarray) else value


def values_of(owner, path=(), seen=None):
    """Yield what the public attributes of an object hold, and those of its objects, with paths."""
    seen = set() if seen is None else seen
    if id(owner) in seen:
        return
    seen.add(id(owner))
    yield path, owner
    if isinstance(owner, dict):
        parts = list(owner.items())
    elif issparse(owner):
        parts = [(name, getattr(owner, name)) for name in ("data", "indices", "indptr")]
    elif type(owner).__module__.startswith("dcme_w2v"):
        names = [name for name in dir(owner) if not name.startswith("_")]
        parts = []
        for name in names:
            with contextlib.suppress(AttributeError):
                parts.append((name, getattr(owner, name)))
    else:
        return
    for name, part in parts:
        if not callable(part):
            yield from values_of(part, (*path, name), seen)


@pytest.mark.bits
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore::dcme_w2v.errors.DcmeWarning")
def test_what_users_get_cannot_change_what_was_learned(kind):
    """Copies have the bits of what they are copies of."""
    make, ask = KINDS[kind]
    made = make()
    wanted = plain(ask(made, 0))
    for how in HOW:
        check_unchanged(how(made), ask, wanted)


def check_unchanged(found, ask, wanted):
    """Try to change all that an object holds; its answer stays."""
    given, count = set(getattr(found, "get_params", dict)()), 0  # the user's own
    assert plain(ask(found, 0)) == wanted
    for path, value in list(values_of(found)):
        if not path or path[0] in given:
            continue
        before = plain(value)
        for change in next((CHANGES[type] for type in CHANGES if isinstance(value, type)), ()):
            count += 1
            with contextlib.suppress(ValueError, TypeError):
                change(value)
            again = found
            for name in path:
                again = again[name] if isinstance(again, dict) else getattr(again, name)
            assert plain(again) == before, path
    assert count or isinstance(found, dw.Search | dw.SCDV | dw.SentenceEncoder)
    assert plain(ask(found, 0)) == wanted
    assert ROWS.flags.writeable and SPARSE.data.flags.writeable


@pytest.mark.parametrize("kind", [*SHELL, *(kind for kind in OBJECTS if "TextC" in kind)])
@pytest.mark.filterwarnings("ignore::dcme_w2v.errors.DcmeWarning")
def test_attributes_of_models_cannot_be_assigned(kind):
    model = KINDS[kind][0]()
    model = getattr(model, "model_", model)
    for name in ("classes", "weights", "threshold"):
        with pytest.raises(AttributeError, match="cannot assign"):
            setattr(model, name, None)


@pytest.mark.parametrize("first", [slice(0, 30), slice(None)])
def test_partial_fit_changes_no_copy(first):
    model = dw.MaxentClassifier(solver="sgd").fit(ROWS, LABELS)
    other = copy.copy(model)
    before = other.predict_proba(ROWS)
    model.partial_fit(ROWS[first], LABELS[first][::-1])
    assert not np.array_equal(model.predict_proba(ROWS), before)
    assert np.array_equal(other.predict_proba(ROWS), before)

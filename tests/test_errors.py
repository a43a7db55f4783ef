"""Errors: built-in base classes, and options named as in Python or in the shell."""

import copy
import pickle

import pytest

from dcme_w2v import errors
from dcme_w2v.errors import DcmeError, in_python_terms, in_shell_terms

BUILT_IN = {
    "UsageError": ValueError,
    "UnknownOptionError": TypeError,
    "CorpusError": ValueError,
    "UnreadableError": OSError,
    "NoSuchFileError": FileNotFoundError,
    "NoWordsError": ValueError,
    "FormatError": ValueError,
    "UnknownWordError": KeyError,
    "ResourceError": OSError,
    "OutOfMemoryError": MemoryError,
    "DivergedError": FloatingPointError,
    "ClusterError": RuntimeError,
}


def test_every_error_is_also_a_built_in_one():
    ours = {name for name, cls in vars(errors).items()
            if isinstance(cls, type) and issubclass(cls, DcmeError)}  # fmt: skip
    assert ours == {"DcmeError", *BUILT_IN}
    for name, cls in BUILT_IN.items():
        assert issubclass(getattr(errors, name), cls)


@pytest.mark.parametrize("name", BUILT_IN)
@pytest.mark.parametrize("with_dask", [False, True])
def test_an_error_survives_pickle_and_copy(name, with_dask):
    if with_dask:  # which changes how all errors are pickled
        pytest.importorskip("distributed")
    error = getattr(errors, name)("--min-count=0: must be at least 1")
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(other) is type(error)
        assert str(other) == "min_count=0: must be at least 1"
        assert other.message == "--min-count=0: must be at least 1"


@pytest.mark.parametrize(
    "message, python, shell",
    [
        ("--dim=0: must be at least 1", "dim=0: must be at least 1", "--dim 0: must be at least 1"),
        ("lower --max-vocab or --dim, (--lr=3)", "lower max_vocab or dim, (lr=3)",
         "lower --max-vocab or --dim, (--lr 3)"),
        ("a--b, /x/--c, --d.txt and -k=2", None, None),
        ("give --no-choose", "give choose=False", None),
        ("--read-vocab='a b'", "read_vocab='a b'", "--read-vocab 'a b'"),
    ],
)  # fmt: skip
def test_options_are_named_as_in_python_or_the_shell(message, python, shell):
    assert in_python_terms(message) == (python or message)
    assert in_shell_terms(message) == (shell or message)

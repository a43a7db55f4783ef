"""The transformer SCDV; scikit-learn's conventions are tested in test_sklearn.py."""

import pytest
from helpers import SMALL_SCDV, make_texts, transform, word_vectors
from sklearn.exceptions import NotFittedError

from dcme_w2v import SCDV
from dcme_w2v.errors import UsageError
from dcme_w2v.scdv.fit import fit_documents

STRINGS = [text.decode() for text in make_texts()]


def test_the_estimator_equals_the_model():
    rows = (
        SCDV(word_vectors(), clusters=5, iterations=20, preset="paper")
        .fit(STRINGS)
        .transform(STRINGS[:9])
    )
    wanted = transform(fit_documents(make_texts(), word_vectors(), SMALL_SCDV), make_texts()[:9])
    assert (rows != wanted).nnz == 0


def test_vectors_from_a_file(tmp_path):
    word_vectors().save(tmp_path / "v.npy")
    rows = SCDV(tmp_path / "v.npy", clusters=2).fit_transform(STRINGS)
    wanted = SCDV(word_vectors(), clusters=2).fit_transform(STRINGS)
    assert (rows != wanted).nnz == 0


def test_errors_are_one_line():
    with pytest.raises(NotFittedError):
        SCDV(word_vectors()).transform(STRINGS)
    with pytest.raises(ValueError, match="needs word vectors"):
        SCDV().fit(STRINGS)
    with pytest.raises(ValueError, match="not one document"):
        SCDV(word_vectors()).fit("w1 w2")
    with pytest.raises(ValueError, match="document 1 is a int"):
        SCDV(word_vectors()).fit(["w1", 2])
    with pytest.raises(UsageError, match="features=x: must be one of"):
        SCDV(word_vectors(), features="x").fit(STRINGS)
    assert SCDV(word_vectors(), clusters=2).fit(STRINGS).transform([]).shape == (0, 14 + 48)

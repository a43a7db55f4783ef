"""Defaults that depend on other options, and presets."""

import pytest

from dcme_w2v.errors import UsageError
from dcme_w2v.words.defaults import resolved
from dcme_w2v.words.options import TrainOptions


def test_default_rate_of_cbow_depends_on_negatives_and_corpus_size():
    def rate(**given):
        return resolved(TrainOptions(**given)).lr

    low = rate(negative=5, sample=1e-3)
    assert low == rate(negative=9, sample=2e-4) == rate(negative=5, sample=0.0)
    assert rate() == rate(negative=5) == rate(sample=1e-3) > low
    assert rate(negative=20, lr=0.01) == 0.01
    assert rate(negative=20, model="skipgram") == rate(model="skipgram")


def test_default_sample_depends_on_the_vocabulary_size():
    def sample(words, **given):
        return resolved(TrainOptions(**given), words).sample

    assert sample(10**6) == sample(10**5) == resolved(TrainOptions()).sample == 1e-4
    assert sample(1000) == 0.01 and sample(5) == 1
    assert sample(1000, sample=1e-5) == 1e-5
    assert sample(1000, model="skipgram") == sample(5, objective="dcme") == 1e-3


@pytest.mark.parametrize(
    "flag, given",
    [
        ("model=skipgram", {"model": "skipgram", "window_mode": "fixed"}),
        ("objective=hs", {"objective": "hs", "window_mode": "fixed"}),
        ("window_mode=shrink", {}),
        (
            "dcme_update=paper",
            {"objective": "dcme", "dcme_update": "paper", "window_mode": "linear"},
        ),
        ("negative=0", {"objective": "dcme", "negative": 0, "window_mode": "fixed"}),
    ],
)
def test_blocks_are_refused_where_they_are_not_supported(flag, given):
    with pytest.raises(UsageError, match=f"block=16: is not supported with {flag}; "):
        resolved(TrainOptions(**given, block=16))
    assert resolved(TrainOptions(**given, block=1)).block == 1

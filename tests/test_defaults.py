"""Defaults that depend on other options, and presets."""

import dataclasses

import pytest

from dcme_w2v.options import PRESETS, TrainOptions
from dcme_w2v.words.defaults import resolved


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_is_what_training_then_uses(name):
    preset = {key: value for key, value in PRESETS[name].items() if key != "vectors"}
    used = dataclasses.asdict(resolved(TrainOptions(**preset)))
    assert preset.items() <= used.items()
    assert used != dataclasses.asdict(resolved(TrainOptions()))


def test_cbow_learns_at_a_higher_rate_with_many_noise_words_or_few_targets():
    def rate(**given):
        return resolved(TrainOptions(**given)).lr

    low = rate(negative=5, sample=1e-3)
    assert low == rate(negative=9, sample=2e-4) == rate(negative=5, sample=0.0)
    assert rate() == rate(negative=5) == rate(sample=1e-3) > low
    assert rate(negative=20, lr=0.01) == 0.01
    assert rate(negative=20, model="skipgram") == rate(model="skipgram")


def test_a_small_vocabulary_keeps_more_of_its_tokens():
    def sample(words, **given):
        return resolved(TrainOptions(**given), words).sample

    assert sample(10**6) == sample(10**5) == resolved(TrainOptions()).sample == 1e-4
    assert sample(1000) == 0.01 and sample(5) == 1
    assert sample(1000, sample=1e-5) == 1e-5
    assert sample(1000, model="skipgram") == sample(5, objective="dcme") == 1e-3

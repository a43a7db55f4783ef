"""Defaults that depend on other options, and presets."""

import dataclasses

import pytest

from dcme_w2v.options import PRESETS, TrainOptions
from dcme_w2v.words.defaults import resolved


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_is_what_training_then_uses(name):
    used = dataclasses.asdict(resolved(TrainOptions(**PRESETS[name])))
    assert PRESETS[name].items() <= used.items()
    assert used != dataclasses.asdict(resolved(TrainOptions()))


def test_many_noise_words_learn_at_a_higher_rate_unless_one_is_given():
    few, also_few, many = (resolved(TrainOptions(negative=n)).lr for n in (5, 9, 10))
    assert few == also_few < many
    assert resolved(TrainOptions(negative=20, lr=0.01)).lr == 0.01
    assert resolved(TrainOptions(negative=20, model="skipgram")).lr == few

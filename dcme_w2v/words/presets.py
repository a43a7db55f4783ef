"""Presets: sets of defaults for `TrainOptions` and --vectors.

word2vec.c's command lines get its defaults, so that they reproduce its results. A high likelihood
(all tokens, a wide window, no subsampling) and good similarities need different settings;
docs/results/likelihood.md has the figures.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dcme_w2v.declarations import Checked, option

PRESETS: dict[str, dict[str, Any]] = {
    "word2vec": {"negative": 5, "noise_power": 0.75, "sample": 1e-3, "vectors": "input"},
    "similarity": {"objective": "dcme", "window": 10, "negative": 20, "top_items": 0},
    "likelihood": {
        "objective": "dcme",
        "window": 10,
        "window_mode": "fixed",
        "sample": 0.0,
        "negative": 32,
        "word_order": True,
        "neighbor_classes": 63,
        "block": 16,
    },
}
# Of likelihood, where blocks are not supported, or do not pay: without word order.
WITHOUT_BLOCKS = {"negative": 15, "top_items": 0}


def preset_values(preset: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that a preset sets, without those that the given ones do not support."""
    values = dict(PRESETS[preset])
    without_order = (
        given.get("model") == "skipgram" or given.get("objective") == "hs",
        given.get("subwords") is not None,
        given.get("cluster") is not None,
        given.get("word_order") is False,
    )
    if any(without_order):
        values.pop("word_order", None)
    is_paper = given.get("dcme_update") == "paper"
    if any(without_order) or is_paper:
        values.pop("neighbor_classes", None)
    others = given.get("window_mode") == "shrink", given.get("block") == 1
    if "block" in values and (any(without_order) or is_paper or any(others)):
        values.pop("block")
        values |= WITHOUT_BLOCKS
    return values


@dataclass(frozen=True)
class PresetOptions(Checked, group="Model"):
    """One of `PRESETS`."""

    preset: str | None = option(
        None,
        "a set of defaults: the defaults of word2vec.c (word2vec), or dcme for word vectors "
        "(similarity) or for a language model (likelihood); explicit options override it",
        choices=tuple(PRESETS),
        former_values={"vectors": "similarity"},
        sets=PRESETS,
    )

"""A preset sets declared options, explicit options override it, and the model's record shows it."""

import pytest

import dcme_w2v as dw
from dcme_w2v.classify.options import PRESETS as OF_CLASSES
from dcme_w2v.few_labels.options import PRESETS as OF_FEW_LABELS
from dcme_w2v.scdv.options import PAPER
from dcme_w2v.words.options import PRESETS as OF_WORDS

DCME, VECTORS = OF_CLASSES["dcme-2017"], OF_WORDS["scdv-2017"]
OTHER = {name: one for name, one in DCME.items() if name not in ("lr", "dcme_update")}
TRAIN = "train c.txt --preset scdv-2017"
CLASSIFY = "classify train d.txt --preset dcme-2017"
SCDV = "scdv fit d.txt --vectors v.txt --clusters 2 --preset paper"
FUSE = "fuse fit d.txt --unlabeled d2.txt --preset paper"
SMALL = {"epochs": 1, "dim": 4, "min_count": 1}


def recorded(path):
    """Return all options that a file records."""
    found = dw.info(path)
    return {**found.get("features", {}), **found["options"]}


@pytest.mark.parametrize(
    "line, flags, wanted",
    [
        (TRAIN, "--epochs 1 --dim 4 --min-count 1", {**VECTORS, **SMALL, "preset": "scdv-2017"}),
        (CLASSIFY, "", {**DCME, "preset": "dcme-2017"}),
        (CLASSIFY, "--lr 3 --weighting count", {**DCME, "lr": 3, "weighting": "count"}),
        (CLASSIFY, "--epochs 2 --dcme-update robust",
         {**OTHER, "epochs": 2, "dcme_update": "robust"}),
        (CLASSIFY, "--objective nce", {**OTHER, "objective": "nce", "lr": 8}),
        (SCDV, "", {**PAPER, "preset": "paper"}),
        (SCDV, "--covariance tied --tfidf 1", {**PAPER, "covariance": "tied", "tfidf": 1}),
        (FUSE, "", {**OF_FEW_LABELS["paper"], "preset": "paper"}),
        (FUSE, "--impact log", {**OF_FEW_LABELS["paper"], "impact": "log"}),
    ],
)  # fmt: skip
def test_a_preset_is_a_table_of_options_that_others_override(cli, work, line, flags, wanted):
    cli(f"{line} {flags} --threads 1 --quiet --output own.safetensors")
    found = recorded("own.safetensors")
    assert {name: found[name] for name in wanted} == wanted


def test_estimators_have_the_presets_of_the_commands(work):
    texts, labels = ["green tea", "black tea", "a red bus", "the bus stops"], ["t", "t", "b", "b"]
    classifier = dw.TextClassifier(preset="dcme-2017", epochs=3).fit(texts, labels).model_
    own = {**vars(classifier.options), **vars(classifier.text.options)}
    wanted = {**DCME, "epochs": 3}
    assert {name: own[name] for name in wanted} == wanted
    model = dw.SCDV("v.txt", clusters=2, preset="paper", power=0.7).fit(["aa bb", "cc"]).model_
    assert {name: getattr(model.options, name) for name in PAPER} == {**PAPER, "power": 0.7}

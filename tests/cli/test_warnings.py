"""Warnings of options without effect: in Python, and as a line of the program."""

import dataclasses

import pytest
from data import write_corpus
from helpers import ALL_COMMANDS

import dcme_w2v as dw
from dcme_w2v.classify.options import ClassifyOptions, FeatureOptions
from dcme_w2v.cli.options import Option
from dcme_w2v.declarations import options_in
from dcme_w2v.errors import CorpusError, DcmeWarning
from dcme_w2v.latent.options import LatentOptions
from dcme_w2v.options import TokenizerOptions
from dcme_w2v.scdv.options import ScdvOptions
from dcme_w2v.sentences.options import EncodeOptions
from dcme_w2v.words.options import PostprocessOptions
from dcme_w2v.words.train import FIELDS

SENTENCES = [["tea", "with", "milk"]] * 20
SMALL = {"dim": 2, "threads": 1, "epochs": 1, "sample": 0}


@pytest.mark.parametrize(
    "options, message",
    [
        ({"clusters": 7}, "clusters has no effect with objective=ns; it is for objective=dcme"),
        ({"clusters": 20}, "clusters has no effect"),
        ({"checkpoint_every": 2}, "checkpoint_every has no effect without checkpoint or resume"),
        ({"model": "skipgram", "gradient": "exact"}, "gradient has no effect"),
    ],
)
def test_train_warns_of_what_has_no_effect(options, message):
    with pytest.warns(DcmeWarning, match=message) as caught:
        dw.train(SENTENCES, **SMALL, **options)
    assert len(caught) == 1 and caught[0].filename == __file__


def test_options_with_an_effect_cause_no_warning():
    dw.train(SENTENCES, **SMALL, preset="similarity", virtual_samples=3, gradient="exact")
    dw.train(SENTENCES, **SMALL, checkpoint="k", checkpoint_every=1, lr=0.1)


@pytest.mark.parametrize(
    "flags, line",
    [
        ("--clusters 7", "--clusters has no effect with --objective ns"),
        ("-hs 1", "-hs 1: hierarchical softmax is trained alone"),
        ("-hs 1 -negative 5", "-hs 1: hierarchical softmax is trained alone"),
    ],
)  # fmt: skip
def test_the_program_prints_a_warning_line(here, cli, flags, line):
    write_corpus(here / "c", lines=60)
    command = f"train c --output o --dim 16 --epochs 1 {flags}"
    cli(command)
    (warning,) = [one for one in cli.err.splitlines() if one.startswith("warning: ")]
    assert warning.startswith(f"warning: {line}")
    cli(f"{command} --quiet")
    assert cli.err == ""


def test_conditions_name_existing_options():
    known = set(FIELDS) | {"read_table"}
    others = (
        TokenizerOptions,
        EncodeOptions,
        ClassifyOptions,
        FeatureOptions,
        LatentOptions,
        PostprocessOptions,
        ScdvOptions,
    )
    known |= {item.name for cls in others for item in dataclasses.fields(cls)}
    for command in ALL_COMMANDS.values():
        for param in command.params:
            if isinstance(param, Option) and param.declared is not None:
                (item,) = (one for one in options_in(param.declared) if one.name == param.name)
                assert {*item.only, *item.needs, *item.unless} <= known


def test_a_run_that_trains_nothing_fails(here, cli):
    (here / "c").write_text("a b c d\ne f g h\n")
    error = cli.error("train c --output o --quiet --min-count 1 --sample 1e-300")
    advice = "(raise --sample, or give --sample 0)"
    assert error == f"error: no token was trained: 40 were dropped by subsampling {advice}\n"
    assert [path.name for path in here.iterdir()] == ["c"]
    with pytest.raises(CorpusError, match="no token was trained: 90 have no context"):
        dw.train([["one"], ["two"]] * 9, dim=2, threads=1, sample=0)  # no context

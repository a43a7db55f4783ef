"""Warnings of options without effect: in Python, and as a line of the program."""

import dataclasses

import numpy as np
import pytest
from data import write_corpus
from helpers import ALL_COMMANDS

import dcme_w2v as dw
from dcme_w2v.classify.options import ClassifyOptions, FeatureOptions
from dcme_w2v.cli.options import Option
from dcme_w2v.errors import CorpusError, DcmeWarning
from dcme_w2v.latent.options import LatentOptions
from dcme_w2v.options import TokenizerOptions
from dcme_w2v.scdv.options import ScdvOptions
from dcme_w2v.sentences.options import EncodeOptions
from dcme_w2v.words.options import ConvertOptions
from dcme_w2v.words.train import FIELDS

SENTENCES = [["tea", "with", "milk"]] * 20
SMALL = {"dim": 2, "threads": 1, "epochs": 1, "sample": 0}


@pytest.mark.parametrize(
    "options, message",
    [
        ({"clusters": 7}, "clusters has no effect with objective=ns; it requires objective=dcme"),
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
        ("-hs 1", "-hs 1: only hierarchical softmax is trained"),
        ("-hs 1 -negative 5", "-hs 1: only hierarchical softmax is trained"),
    ],
)  # fmt: skip
def test_the_program_prints_a_warning_line(cli, flags, line):
    write_corpus("c", lines=60)
    command = f"train c --output o --dim 16 --epochs 1 {flags}"
    cli(command)
    (warning,) = [one for one in cli.err.splitlines() if one.startswith("warning: ")]
    assert warning.startswith(f"warning: {line}")
    cli(f"{command} --quiet")
    assert cli.err == ""


def test_conditions_name_existing_options():
    known = set(FIELDS) | {"read_table", "vectors"}  # the latter are flags
    others = (
        TokenizerOptions,
        EncodeOptions,
        ClassifyOptions,
        FeatureOptions,
        LatentOptions,
        ConvertOptions,
        ScdvOptions,
    )
    known |= {item.name for cls in others for item in dataclasses.fields(cls)}
    for command in ALL_COMMANDS.values():
        for param in command.params:
            if isinstance(param, Option) and param.declared is not None:
                item = param.declared
                assert {*item.only, *item.needs, *item.unless} <= known


def test_a_run_that_trains_nothing_fails(here, cli):
    (here / "c").write_text("a b c d\ne f g h\n")
    error = cli.error("train c --output o --quiet --min-count 1 --sample 1e-300")
    advice = "(raise --sample, or use --sample 0)"
    assert (
        error == f"error: training used no tokens: 40 tokens were dropped by subsampling {advice}\n"
    )
    assert [path.name for path in here.iterdir()] == ["c"]
    with pytest.raises(CorpusError, match="training used no tokens: 90 tokens have no context"):
        dw.train([["one"], ["two"]] * 9, dim=2, threads=1, sample=0)  # no context


EXTREME = {
    "huge": [3e38, -3e38, 1.0], "mixed": [3e38, -3e38, 1e-45, 0.0, 1.0],
    "tiny": [1e-45, -1e-45, 1e-38], "zero": [0.0],
}  # fmt: skip


@pytest.mark.parametrize("values", EXTREME)
def test_extreme_numbers_cause_no_raw_warning(here, cli, values):
    """Warnings of numpy are errors in tests, and would be reported as a bug."""
    random = np.random.default_rng(1)
    rows = random.choice(EXTREME[values], (40, 6)).astype(np.float32)
    words = [f"w{i}" for i in range(40)]
    dw.Vectors(words, rows).save("v.txt")
    (here / "t").write_text("\n".join(" ".join(random.choice(words, 8)) for _ in range(60)))
    (here / "q").write_text(": a\n" + "w1 w2 w3 w4\n" * 3)
    (here / "pairs").write_text("w1 w2 1\nw2 w3 2\nw4 w5 3\n")
    (here / "sts").write_text("w1\tw2 w3\t1\nw2\tw4\t2\n")
    numbers = (" ".join(f"{i}:{x!r}" for i, x in enumerate(row)) for row in rows.tolist())
    (here / "d.svm").write_text("\n".join(f"{'ab'[i % 2]} {row}" for i, row in enumerate(numbers)))
    for command in (
        "neighbors v.txt w1 w2", "neighbors v.txt +w1 -w2 +w3", "compare v.txt --with v.txt",
        "classes v.txt --classes 5 --output -", "check v.txt", "eval analogies v.txt q",
        "eval similarity v.txt pairs", "eval sts v.txt sts", "convert v.txt o.txt --reduce 3",
        "convert v.txt o.txt --unit", "convert v.txt o.txt --postprocess center",
        "convert v.txt o.safetensors --quantize int8", "convert v.txt s --to sentence-transformers",
        "encode v.txt t --output e.npy", "encode v.txt t --output e.npy --pooling usif",
        "explore v.txt --output e.html --method pca", "plot v.txt --output p.png --method pca",
        "classify train d.svm --output m --threads 1",
        "classify train d.svm --output tree --objective tree --threads 1",
        "classify train d.svm --output ns --objective ns --threads 1",
        "classify test m d.svm", "classify predict m d.svm --output p", "classify explain m",
        "latent fit d.svm --output l --latent 2 --unsupervised --starts 3",
        "transform l d.svm --output r.svm",
        "train t --output i.bin --dim 6 --init v.txt --epochs 1 --threads 1",
    ):  # fmt: skip
        assert cli.run(command) in (0, 1, 2)
        assert "a bug" not in cli.err and cli.err.count("error:") <= 1, command

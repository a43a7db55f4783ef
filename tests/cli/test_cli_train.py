"""`dcme-w2v train` from text to files, through the program's own entry point."""

from pathlib import Path

import pytest
from data import write_corpus
from helpers import manifest, topic_margin


@pytest.fixture(autouse=True)
def corpus():
    write_corpus(Path("c"))


LINE = "train c --dim 16 --quiet --output"


@pytest.mark.parametrize(
    "kind",
    ["cbow --objective ns", "cbow --preset similarity", "cbow --objective hs",
     "skipgram --objective nce", "skipgram --objective hs"],
)  # fmt: skip
def test_words_of_a_topic_become_similar(cli, kind):
    cli(f"{LINE} v.txt --epochs 30 --sample 0 --lr 0.1 --threads 1 --model {kind}")
    assert topic_margin("v.txt") > 0.3


@pytest.mark.parametrize(
    "flags, word_order, block",
    [
        ("--objective dcme", True, 1),
        ("--window-mode shrink", True, 1),
        ("--block 1", True, 1),
        ("--model skipgram", False, 1),
        ("-hs 1", False, 1),
        ("--objective ns --subwords 3-3 --buckets 20 --lr 0.02", False, 1),
    ],
)
def test_a_preset_has_word_order_and_blocks_where_they_are_supported(cli, flags, word_order, block):
    cli(f"{LINE} v.bin --preset likelihood --epochs 1 {flags}")
    used = manifest("v.bin")["options"]
    assert used["word_order"] == word_order
    samples = 0 if used["objective"] in ("hs", "dcme") else 15
    assert (used["block"], used["negative"]) == (block, samples)


def test_stdin_can_be_trained_for_several_epochs(cli):
    cli(f"{LINE} a.bin --threads 1")
    line = LINE.replace("train c", "train -")
    cli(f"{line} b.bin --threads 1", stdin=Path("c").read_bytes())
    assert manifest("b.bin")["options"]["epochs"] == 5
    assert Path("a.bin").read_bytes() == Path("b.bin").read_bytes()


def test_kernels_are_selected_by_the_environment(cli, monkeypatch):
    monkeypatch.setenv("DCME_W2V_KERNELS", "scalar")
    cli(f"{LINE} v.bin")
    assert manifest("v.bin")["kernels"] == "scalar"
    monkeypatch.setenv("DCME_W2V_KERNELS", "mmx")
    assert "scalar" in cli.error(f"{LINE} v.bin")

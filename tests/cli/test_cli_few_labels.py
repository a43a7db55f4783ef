"""The commands of fuse: files, streams, exit codes, one-line errors."""

from pathlib import Path

import numpy as np
import pytest
from data import run_all
from helpers import arrays_in, link_all
from scipy.sparse import load_npz

TOPICS = {"tea": "cup leaf pot water green", "bus": "wheel road stop seat driver"}

FIT = "fuse fit labeled.tsv --threads 1 --unlabeled"


def text_of(topic, random):
    words = [*TOPICS[topic].split(), "the", "and"]
    return " ".join(random.choice(words, 6))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Labeled and unlabeled documents, and a model of levels."""
    folder, random = tmp_path_factory.mktemp("fuse"), np.random.default_rng(1)
    topics = list(TOPICS) * 40
    texts = [text_of(topic, random) for topic in topics]
    lines = [f"{topic}\t{text}\n" for topic, text in zip(topics, texts, strict=True)]
    (folder / "labeled.tsv").write_text("".join(lines[:8]))
    (folder / "test.tsv").write_text("".join(lines[8:30]))
    (folder / "texts.txt").write_text("".join(f"{text}\n" for text in texts[30:]))
    (folder / "named.tsv").write_text("".join(f"x|y\t{text}\n" for text in texts[30:]))
    for number, part in enumerate((texts[30:50], texts[50:60], texts[60:])):
        (folder / f"shard{number}.txt").write_text("".join(f"{text}\n" for text in part))
    run_all(
        folder,
        "fuse fit labeled.tsv --unlabeled texts.txt --preset paper --output levels",
    )
    return folder


@pytest.fixture
def here(files, here):
    link_all(files, here)
    return here


def accuracy(cli, model, docs="test.tsv"):
    return cli.json(f"classify test {model} {docs}")["accuracy"]


@pytest.mark.parametrize("options", ["", "--final beside"])
def test_a_fused_model_tests_predicts_and_explains(cli, options):
    cli(f"{FIT} texts.txt --output m {options}")
    assert accuracy(cli, "m") > 0.8
    predicted = cli.rows("classify predict m texts.txt")
    assert len(predicted) == 50 and predicted[0][0] in TOPICS
    assert len(cli.rows("classify explain m tea -k 2")) == 2


def test_columns_are_in_the_order_of_the_documents(cli):
    line = "transform levels"
    cli(f"{line} test.tsv --output x.npz")
    rows = load_npz("x.npz")
    assert rows.shape == (22, 16)
    Path("back.tsv").write_text("".join(Path("test.tsv").read_text().splitlines(True)[::-1]))
    found = cli(f"{line} back.tsv --output -")
    assert found.count("\n") == 22 and found.startswith("1")
    for row in found.splitlines():
        columns = [int(field.split(":")[0]) for field in row.split()[1:]]
        assert columns == sorted(set(columns))
    cli(f"{line} back.tsv --output y.npz")
    assert (load_npz("y.npz")[::-1] != rows).nnz == 0


def test_only_hash_values_that_occur_take_memory(cli):
    cli("classify train test.tsv --hashing 2^30 --output m --quiet --threads 1")
    assert Path("m").stat().st_size < 20000
    assert "hash value " in cli("classify explain m tea -k 1")
    cli("classify shrink m --output s")
    assert min(accuracy(cli, name, "labeled.tsv") for name in "ms") > 0.8


@pytest.mark.bits
def test_unlabeled_documents_come_from_any_files_and_their_labels_are_ignored(cli):
    found = []
    for given in ("texts.txt", "named.tsv", "shard0.txt shard1.txt shard2.txt"):
        cli(f"{FIT} {given} --no-choose --output m --quiet")
        found.append(arrays_in("m"))
    assert found[0] == found[1] == found[2]

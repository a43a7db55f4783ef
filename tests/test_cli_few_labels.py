"""The commands of fuse: files, streams, statistics in parts, exit codes, one-line errors."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from helpers import refused, run_all
from scipy.sparse import csr_matrix, load_npz, save_npz

from dcme_w2v.cli.main import program, run

TOPICS = {"tea": "cup leaf pot water green", "bus": "wheel road stop seat driver"}


def text_of(topic, random):
    words = [*TOPICS[topic].split(), "the", "and"]
    return " ".join(random.choice(words, 6))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Labeled and unlabeled documents, an initial model and a model of levels."""
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
        "classify train test.tsv --solver lbfgs --output model0",
        "fuse fit labeled.tsv --unlabeled texts.txt --preset paper --output levels",
    )
    return folder


@pytest.fixture
def here(files, monkeypatch, tmp_path):
    for path in files.iterdir():
        (tmp_path / path.name).symlink_to(path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def invoke(line, stdin=None):
    threads = ["--threads", "1"] * line.startswith(("fuse fit", "classify train"))
    result = CliRunner().invoke(program, [*line.split(), *threads], input=stdin)
    assert result.exit_code == 0, result.output
    return result


def arrays_of(model):
    return {path.name: path.read_bytes() for path in model.glob("*.npy")}


def test_a_fused_model_tests_predicts_and_explains(here):
    for options in (
        "",
        "--final beside",
    ):
        invoke(f"fuse fit labeled.tsv --unlabeled texts.txt --output m {options}")
        found = json.loads(invoke("classify test m test.tsv --json").stdout)
        assert found["accuracy"] > 0.8, options
        predicted = invoke("classify predict m texts.txt").stdout.splitlines()
        assert len(predicted) == 50 and predicted[0].split("\t")[0] in TOPICS
        assert len(invoke("classify explain m tea -k 2").stdout.splitlines()) == 2


def test_labels_of_unlabelled_documents_are_ignored(here):
    for name in ("texts.txt", "named.tsv"):
        invoke(f"fuse fit labeled.tsv --unlabeled {name} --output {name}.m")
    assert arrays_of(here / "texts.txt.m") == arrays_of(here / "named.tsv.m")


def test_several_files_after_one_flag_and_standard_input(here):
    one = "fuse fit labeled.tsv --unlabeled shard0.txt shard1.txt shard2.txt --output m --quiet"
    invoke(one)
    text = "".join((here / f"shard{i}.txt").read_text() for i in range(3))
    invoke("fuse fit labeled.tsv --unlabeled - --output n --quiet", stdin=text)
    assert arrays_of(here / "m") == arrays_of(here / "n")


def test_shards_give_the_same_model_as_all_documents(here):
    fit = "fuse fit labeled.tsv --reference model0 --quiet --preset paper"
    invoke(f"{fit} --unlabeled texts.txt --output whole --statistics whole.npz")
    for number in range(3):
        line = f"fuse statistics model0 shard{number}.txt --output p{number}.npz --threads 2"
        invoke(f"{line} --binary")
    invoke(f"{fit} --resume-statistics p2.npz p0.npz p1.npz --output joined")
    invoke(f"{fit} --unlabeled shard1.txt --resume-statistics p2.npz p0.npz --output mixed")
    assert arrays_of(here / "whole") == arrays_of(here / "joined") == arrays_of(here / "mixed")
    invoke("fuse statistics model0 texts.txt --output all.npz --binary")
    assert (here / "all.npz").read_bytes() == (here / "whole.npz").read_bytes()


def test_columns_are_in_the_order_of_the_documents(here):
    invoke("fuse transform levels test.tsv --output x.npz")
    rows = load_npz("x.npz")
    assert rows.shape == (22, 16)
    (here / "reversed.tsv").write_text(
        "".join((here / "test.tsv").read_text().splitlines(keepends=True)[::-1])
    )
    found = invoke("fuse transform levels reversed.tsv --output -").stdout
    assert found.count("\n") == 22 and found.startswith("1")
    for line in found.splitlines():
        columns = [int(field.split(":")[0]) for field in line.split()[1:]]
        assert columns == sorted(set(columns))
    invoke("fuse transform levels reversed.tsv --output y.npz")
    assert (load_npz("y.npz")[::-1] != rows).nnz == 0


def test_levels_are_listed(here):
    found = json.loads(invoke("fuse levels levels --json").stdout)
    values = [one["value"] for one in found["levels"]]
    assert len(values) == 8 and values == sorted(values, reverse=True)
    pairs = sum(one["positive"] + one["negative"] for one in found["levels"])
    assert pairs == found["pairs"] > 0
    assert len(invoke("fuse levels levels").stdout.splitlines()) == 9


def test_only_hash_values_that_occur_take_memory(here):
    fit = "fuse fit labeled.tsv --unlabeled texts.txt --hashing 2^30"
    shown = invoke(f"{fit} --output m").stderr
    assert "12 features (of 1,073,741,824 hash values)" in shown
    assert json.loads(invoke("classify test m test.tsv --json").stdout)["accuracy"] > 0.8
    assert sum(path.stat().st_size for path in (here / "m").iterdir()) < 20000
    assert "hash value " in invoke("classify explain m tea -k 1").stdout
    invoke("fuse shrink m --output s")
    assert json.loads(invoke("classify test s test.tsv --json").stdout)["accuracy"] > 0.8
    invoke("classify train test.tsv --hashing 2^30 --output k --quiet")
    assert json.loads(invoke("classify test k labeled.tsv --json").stdout)["accuracy"] > 0.8


ERRORS = [
    ("fit labeled.tsv --output m", "no unlabeled documents; give --unlabeled, or use classify"),
    ("fit texts.txt --unlabeled texts.txt --output m", "no document has a label"),
    ("fit one.tsv --unlabeled texts.txt --output m", "all documents have the label 'tea'"),
    ("fit labeled.tsv --unlabeled other.txt --output m", "0 of the"),
    ("fit labeled.tsv --unlabeled texts.txt --output m --folds 9", "fewer than --folds 9"),
    ("fit labeled.tsv --unlabeled u.npz --output m", "text and vectors"),
    ("fit wide.svm --unlabeled negative.svm --output m", "unlabeled row 0, column 1: is -1;"),
    ("fit l2.npz --labels l2.txt --unlabeled u.npz --output m", "l2.npz: 2, u.npz: 3"),
    ("fit labeled.tsv --resume-statistics p.npz --output m", "give it by --reference"),
    ("fit labeled.tsv --reference model0 --resume-statistics other.npz --output m",
     "other.npz: has statistics of other features"),
    ("fit labeled.tsv --reference again --resume-statistics p.npz --output m",
     "p.npz: has statistics of another initial model"),
    ("fit labeled.tsv --reference model0 --resume-statistics p.npz --output m --final distill",
     "--final distill: needs the unlabeled"),
    ("fit labeled.tsv --reference model0 --unlabeled texts.txt --output m --final beside",
     "leave out --reference"),
    ("statistics model0 empty.txt --output p2.npz", "has no documents"),
    ("transform model0 test.tsv --output x.npz", "has no levels"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "said"), ERRORS, ids=[line for line, _ in ERRORS])
def test_errors_are_one_line(line, said, here, capsys):
    (here / "one.tsv").write_text("tea\tcup\n" * 4)
    (here / "other.txt").write_text("qqq zzz\n" * 4)
    (here / "empty.txt").write_text("")
    (here / "wide.svm").write_text("a 0:1 1:1\nb 2:1\n" * 3)
    (here / "negative.svm").write_text("0:1 1:-1\n" * 3)
    (here / "infinite.svm").write_text("0:1 1:inf\n" * 3)
    save_npz("u.npz", csr_matrix(np.eye(3)))
    save_npz("l2.npz", csr_matrix(np.ones((2, 2))))
    (here / "l2.txt").write_text("a\nb\n")
    if "statistics" in line:
        invoke("fuse statistics model0 shard0.txt --output p.npz")
        train = "classify train test.tsv --solver lbfgs --quiet"
        invoke(f"{train} --l2 0.1 --output again")
        invoke(f"{train} --ngrams 2 --output bigrams")
        invoke("fuse statistics bigrams shard0.txt --output other.npz")
    capsys.readouterr()
    quiet = ["--quiet"] * line.startswith(("fit", "statistics"))
    code = run(["fuse", *line.split(), *quiet])
    assert said in refused(capsys, code)
    assert not (here / "m").exists() and not (here / "p2.npz").exists()

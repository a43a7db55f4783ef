"""New text for earlier vectors (--init-vocab) and one vector for rare words (--unk)."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import dcme_w2v as dw
from dcme_w2v.cli.main import run
from dcme_w2v.words.tables import load_tables

SMALL = ["--dim", "4", "--epochs", "1", "--threads", "1", "--quiet", "--sample", "0"]
OLD = "a b c d\n" * 9 + "rare b\n" * 2 + "only old\n" * 6
NEW = "a b e f\n" * 7 + "g e\n" * 3 + "f a\n"


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "old.txt").write_text(OLD)
    (tmp_path / "new.txt").write_text(NEW)
    return tmp_path


def train(corpus, *flags):
    return run(["train", corpus, *SMALL, *flags])


@pytest.fixture
def tables():
    assert train("old.txt", "--output", "old.bin", "--output-tables", "tables") == 0
    return load_tables("tables")


def counts_of(folder):
    vocabulary = load_tables(folder).vocabulary
    return dict(zip(vocabulary, vocabulary.counts.tolist(), strict=True))


BOTH = {"a": 17, "b": 18, "c": 9, "d": 9, "only": 6, "old": 6, "e": 10, "f": 8}


@pytest.mark.parametrize(
    ("kept", "counts"),
    [
        ("new", {"a": 8, "b": 7, "e": 10, "f": 8}),
        ("old", {word: BOTH[word] for word in ("b", "a", "c", "d", "only", "old")}),
        ("union", BOTH),
    ],
)
def test_which_words_are_kept_and_their_counts(tables, kept, counts):
    flags = ["--init", "tables", "--output", "o.npy", "--output-tables", "new", "--lr", "1e-9"]
    assert train("new.txt", *flags, "--init-vocab", kept) == 0
    # words of the old vocabulary have the counts of the text they were trained on
    if kept != "new":
        counts = {**counts, "b": 9 + 2 + 7}
    assert counts_of("new") == counts
    found = load_tables("new")
    assert list(found.vocabulary.counts) == sorted(counts.values(), reverse=True)
    for row, word in enumerate(found.vocabulary):
        old = tables.vocabulary.find(word)
        if old is not None:
            np.testing.assert_allclose(found.input[row], tables.input[old], atol=1e-6)
            np.testing.assert_allclose(found.output[row], tables.output[old], atol=1e-6)
        else:
            assert np.any(found.input[row])
    manifest = json.loads(Path("o.npy.json").read_text())
    assert manifest["options"]["init_vocab"] == kept
    tokens = manifest["tokens"]
    assert tokens["corpus"] == sum(v for k, v in tokens.items() if k != "corpus")


def test_a_limit_includes_old_words(tables):
    flags = ["--init", "tables", "--init-vocab", "union", "--output-tables", "new"]
    assert train("new.txt", *flags, "--output", "o", "--max-vocab", "7") == 0
    assert set(counts_of("new")) == set(tables.vocabulary) | {"e"}
    assert train("new.txt", *flags, "--output", "o", "--max-vocab", "2") == 0
    assert set(counts_of("new")) == set(tables.vocabulary)


def test_a_resumed_run_has_the_same_words(tables):
    flags = ["--init", "tables", "--init-vocab", "union", "--output", "o.bin"]
    whole = ["--epochs", "4", "--checkpoint-every", "2"]
    assert train("new.txt", *flags, *whole, "--checkpoint", "state") == 0
    expected = Path("o.bin").read_bytes()
    newest = sorted(path.name for path in Path("state").iterdir() if path.name.isdigit())[-1]
    assert newest != "000001"
    shutil.rmtree(Path("state") / newest)
    assert train("new.txt", *flags, *whole, "--resume", "state") == 0
    assert Path("o.bin").read_bytes() == expected


@pytest.mark.parametrize(
    ("flags", "error"),
    [
        (["--init-vocab", "old"], "--init-vocab old: requires --init"),
        (
            ["--init", "v.txt", "--init-vocab", "old", "--read-vocab", "counts"],
            "--init-vocab old: is not supported with --read-vocab; remove one",
        ),
        (["--init", "other.txt", "--init-vocab", "old", "--dim", "1"], "of --init; give other vec"),
        (["--unk", "two words"], "--unk 'two words': must be one word, such as <unk>"),
        (["--unk", "--subwords", "3-6"], "--unk <unk>: is not supported with --subwords"),
    ],
)
def test_wrong_usage(here, capsys, flags, error):
    (here / "v.txt").write_text("b 4 3 2 1\n")
    (here / "other.txt").write_text("zzz 4\n")
    (here / "counts").write_text("a 5\n")
    before = sorted(here.iterdir())
    assert train("new.txt", "--output", "o", *flags) in (1, 2)
    message = capsys.readouterr().err
    assert error in message
    assert message.count("\n") == 1
    assert sorted(here.iterdir()) == before


def test_a_bare_unk_before_the_corpus_is_explained(capsys):
    assert run(["train", "--unk", "new.txt", "--output", "o"]) == 2
    message = capsys.readouterr().err
    assert "no corpus: --unk new.txt is its word; give --unk after the corpus" in message


@pytest.mark.parametrize(("flags", "word"), [(["--unk"], "<unk>"), (["--unk", "UNK"], "UNK")])
def test_rare_words_share_a_vector(flags, word):
    assert train("new.txt", "--output", "o.txt", "--save-vocab", "counts", *flags) == 0
    assert Path("counts").read_text() == f"e 10\na 8\nf 8\nb 7\n{word} 3\n"
    vectors = dw.Vectors.load("o.txt")
    assert np.any(vectors[word])
    manifest = json.loads(Path("o.txt.json").read_text())
    assert manifest["unk_tokens"] == 3
    assert manifest["options"]["unk"] == word
    assert manifest["tokens"] == {
        "corpus": 36, "trained": 36, "out_of_vocabulary": 0, "subsampled": 0,
        "without_context": 0, "held_out": 0,
    }  # fmt: skip


def test_without_rare_words_there_is_no_vector(here, capsys):
    (here / "c.txt").write_text("a b c\n" * 6)
    assert run(["train", "c.txt", "--output", "o", *SMALL[:-3], "--unk"]) == 0
    assert (
        "warning: no vector for <unk>: all words are in the vocabulary" in capsys.readouterr().err
    )
    assert "<unk>" not in dw.Vectors.load("o")


@pytest.mark.parametrize("holdout", ["0.3", "held.txt"])
def test_unk_with_other_options(here, tables, holdout):
    (here / "held.txt").write_text("a b unseen e\n" * 9)
    (here / "new.txt").write_text(NEW + "".join(f"a x{n}\n" for n in range(20)))
    flags = ["--init", "tables", "--init-vocab", "union", "--unk", "--holdout", holdout]
    flags += ["--epochs", "2", "--checkpoint-every", "1"]
    assert train("new.txt", "--output", "o", *flags, "--checkpoint", "state") == 0
    manifest = json.loads((here / "o.json").read_text())
    tokens = manifest["tokens"]
    assert 2 * tokens["corpus"] == sum(v for k, v in tokens.items() if k != "corpus")
    assert "<unk>" in dw.Vectors.load("o")
    assert train("new.txt", "--output", "o", *flags, "--resume", "state") == 0


def test_new_words_in_python():
    sentences = [["tea", "with", "milk"], ["tea", "with", "lemon"]] * 3 + [["rare", "tea"]]
    vectors = dw.train(sentences, dim=4, min_count=3, unk="<unk>", threads=1)
    assert "<unk>" in vectors
    more = dw.train(
        [["cocoa", "with", "milk"]] * 5, dim=4, init=vectors, init_vocab="union", min_count=3
    )
    assert set(more) == {*vectors, "cocoa"}
    assert dict(zip(more, more.counts.tolist(), strict=True))["with"] == 11
    with pytest.raises(ValueError, match="init_vocab=old: requires init"):
        dw.train(sentences, init_vocab="old")

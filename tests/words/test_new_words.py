"""New text for earlier vectors (--init-vocab) and one vector for rare words (--unk)."""

from pathlib import Path

import numpy as np
import pytest
from helpers import manifest

import dcme_w2v as dw

SMALL = "--dim 4 --epochs 1 --threads 1 --quiet --sample 0"
OLD = "a b c d\n" * 9 + "rare b\n" * 2 + "only old\n" * 6
NEW = "a b e f\n" * 7 + "g e\n" * 3 + "f a\n"


@pytest.fixture
def tables(cli):
    cli(f"train old.txt --output old.bin --output-tables tables {SMALL}")
    return dw.Vectors.load("tables")


def counts_of(folder):
    found = dw.Vectors.load(folder)
    return dict(zip(found, found.counts.tolist(), strict=True))


BOTH = {"a": 17, "b": 18, "c": 9, "d": 9, "only": 6, "old": 6, "e": 10, "f": 8}

UNION = f"train new.txt {SMALL} --init tables --init-vocab union --output o"


def manifest_of(path):
    """Return the manifest of vectors, whose tokens add up."""
    found = manifest(path)
    tokens, epochs = found["tokens"], found["options"]["epochs"]
    assert epochs * tokens["corpus"] == sum(v for k, v in tokens.items() if k != "corpus")
    return found


@pytest.mark.parametrize("counts", [None, [3, 2, 0]])
def test_a_kept_word_that_the_text_lacks_counts_once(counts):
    """The noise distribution and the sampling of frequent words need a count."""
    start = dw.Vectors(["a", "b", "gone"], np.eye(3, 4), counts=counts)
    own = {"dim": 4, "epochs": 1, "threads": 1, "min_count": 1, "progress": False}
    v = dw.train([["a", "b"]] * 5, init=start, init_vocab="old", **own)
    assert dict(zip(v.words, v.counts.tolist(), strict=True))["gone"] == 1


@pytest.mark.parametrize(
    "kept, counts",
    [
        ("new", {"a": 8, "b": 7, "e": 10, "f": 8}),
        ("old", {word: BOTH[word] for word in ("b", "a", "c", "d", "only", "old")}),
        ("union", BOTH),
    ],
)
def test_which_words_are_kept_and_their_counts(tables, cli, kept, counts):
    line = f"train new.txt {SMALL} --init tables --output o.bin --output-tables new --lr 1e-9"
    cli(f"{line} --init-vocab {kept}")
    # words of the old vocabulary have the counts of the text they were trained on
    if kept != "new":
        counts = {**counts, "b": 9 + 2 + 7}
    assert counts_of("new") == counts
    found = dw.Vectors.load("new")
    assert list(found.counts) == sorted(counts.values(), reverse=True)
    for row, word in enumerate(found):
        old = tables.words.find(word)
        if old is not None:
            np.testing.assert_allclose(found.vectors[row], tables.vectors[old], atol=1e-6)
            np.testing.assert_allclose(
                found.context.vectors[row], tables.context.vectors[old], atol=1e-6
            )
        else:
            assert np.any(found.vectors[row])
    assert manifest_of("o.bin")["options"]["init_vocab"] == kept


def test_a_limit_includes_old_words(tables, cli):
    for limit, more in ((7, {"e"}), (2, set())):
        cli(f"{UNION} --output-tables new --max-vocab {limit}")
        assert set(counts_of("new")) == set(tables) | more


@pytest.mark.parametrize("flags, word", [("--unk", "<unk>"), ("--unk UNK", "UNK")])
def test_rare_words_share_a_vector(cli, flags, word):
    cli(f"train new.txt {SMALL} --output o.txt --output-tables t {flags}")
    assert counts_of("t") == {"e": 10, "a": 8, "f": 8, "b": 7, word: 3}
    assert np.any(dw.Vectors.load("o.txt")[word])
    found = manifest_of("o.txt")
    assert found["unk_tokens"] == 3 and found["options"]["unk"] == word
    assert found["tokens"]["corpus"] == found["tokens"]["trained"] == 36


def test_without_rare_words_there_is_no_vector(cli):
    Path("c.txt").write_text("a b c\n" * 6)
    cli("train c.txt --output o --dim 4 --epochs 1 --threads 1 --unk")
    assert (
        "warning: <unk> has no vector, because the corpus contains no out-of-vocabulary words"
        in cli.err
    )
    assert "<unk>" not in dw.Vectors.load("o")


@pytest.fixture(autouse=True)
def texts():
    Path("old.txt").write_text(OLD)
    Path("new.txt").write_text(NEW)


def test_the_end_of_a_line_is_not_a_word_of_earlier_vectors():
    """word2vec.c writes it first; the counts of the others remain theirs."""
    vectors = dw.Vectors(["</s>", "tea", "milk"], np.eye(3, 4), [90, 20, 7])
    more = dw.train([["milk", "tea"]] * 5, init=vectors, init_vocab="union", dim=4, threads=1)
    assert dict(zip(more, more.counts.tolist(), strict=True)) == {"tea": 25, "milk": 12}


def test_new_words_without_context_vectors_are_warned_of(tables, cli):
    line = f"train new.txt {SMALL} --output o.bin".replace(" --quiet", "")
    cli(f"{line} --init old.bin")
    found = "old.bin has no context vectors, so the 2 new words learn slowly; use "
    assert found in cli.err
    for rest in ("--init tables", "--init old.bin --init-vocab old"):
        cli(f"{line} {rest}")
        assert "context vectors" not in cli.err

"""Tags of tokens: CoNLL's columns, features, best paths, entities, and the commands by token."""

import itertools
import json

import numpy as np
import pytest
from data import run_all
from helpers import described, link_all
from hypothesis import given
from hypothesis import strategies as st

from dcme_w2v.classify import sequences
from dcme_w2v.errors import CorpusError
from dcme_w2v.formats.artifact import read_artifact
from dcme_w2v.formats.documents import read_sentences, shape, token_features


def sentences_of(count, seed, tags=True):
    """Return sentences such as "Ann Smith lives in New Rome .", with tags."""
    random, lines = np.random.default_rng(seed), []
    for _ in range(count):
        person = [(random.choice(["Ann", "Bob"]), "B-PER")]
        person += [(random.choice(["Smith", "Lee"]), "I-PER")] * int(random.integers(2))
        place = [("New", "B-LOC")] * int(random.integers(2))
        place += [(random.choice(["Rome", "Oslo"]), "I-LOC" if place else "B-LOC")]
        rows = [*person, ("lives", "O"), ("in", "O"), *place, (".", "O")]
        lines += [f"{token}\tX\t{tag}\n" if tags else f"{token}\n" for token, tag in rows] + ["\n"]
    return "".join(lines)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokens")
    (folder / "train.conll").write_text("-DOCSTART- -X- O\n\n" + sentences_of(30, 1))
    (folder / "texts.conll").write_text(sentences_of(60, 2, tags=False))
    (folder / "test.conll").write_text(sentences_of(20, 3))
    run_all(folder, "classify train train.conll --by token --threads 1 --output model")
    return folder


@pytest.fixture
def here(files, here):
    link_all(files, here)
    return here


# ---- reading ----


def read(tmp_path, text):
    path = tmp_path / "a.conll"
    path.write_bytes(text.encode())
    return list(read_sentences([str(path)]))


def test_columns_are_separated_by_tabs_or_spaces_and_the_last_is_the_tag(tmp_path):
    text = "-DOCSTART- -X- O\r\n\r\n\r\nEU NNP B-ORG\r\nrejects VBZ O\r\n \n1\u00a0000\tCD\tO\n"
    first, second, third = read(tmp_path, text + "x y O\n\u0085\u00a0\nz O\n")
    assert (first.tokens, first.tags, first.line) == (["EU", "rejects"], ["B-ORG", "O"], 4)
    assert (second.tokens, second.tags, second.line) == (["1000", "x"], ["O", "O"], 7)
    assert (third.tokens, third.tags) == (["z"], ["O"])


@pytest.mark.parametrize(
    "text, message",
    [
        ("EU X B-ORG\nrejects\n", "line 2: only some tokens in the sentence have a tag"),
        ("EU\nrejects X O\n", "line 2: only some tokens"),
        ("EU\tO\n\tO\n", "line 2 has no token"),
        ("EU O\n\u00a0 O\n", "line 2 has no token"),
        ("EU\0 O\n", "byte 2 of line 1 is a NUL byte"),
    ],
)
def test_an_invalid_line_is_named(tmp_path, text, message):
    with pytest.raises(CorpusError, match=message):
        read(tmp_path, text)


def test_features_of_a_token_are_of_its_neighbors_its_shape_and_its_affixes():
    first, second = token_features(["In", "1984"])
    assert {"w+0=in", "w-1=<s>", "w+1=1984", "w+2=</s>", "token=In", "shape+0=Xx"} <= set(first)
    assert {"w-1,w=in,1984", "w,w+1=1984,</s>", "prefix=198", "suffix=4", "shape+0=0"} <= set(
        second
    )
    assert shape("McX-12") == "XxX-0"


# ---- paths and entities ----


@pytest.mark.parametrize("length", [1, 2, 4])
def test_the_best_path_equals_a_search_of_all_paths(length):
    random = np.random.default_rng(length)
    log_p, steps = random.normal(size=(length, 3)), random.normal(size=(4, 4))

    def total(path):
        pairs = itertools.pairwise([3, *path, 3])
        return sum(steps[a, b] for a, b in pairs) + sum(log_p[i, j] for i, j in enumerate(path))

    best = max(itertools.product(range(3), repeat=length), key=total)
    assert sequences.best_path(log_p, steps) == list(best)


def test_pairs_of_tags_are_counted_within_sentences():
    labels, first = [("a",), ("b",), ("b",), ("a",)], [True, False, True, False]
    found = sequences.tag_pairs(labels, first, ["a", "b"])
    np.testing.assert_array_equal(found, [[0, 1, 1], [1, 0, 1], [1, 1, 0]])


@given(st.lists(st.sampled_from(["O", *(f"{p}-{t}" for p in "BIES" for t in ("X", "Y"))])))
def test_entities_equal_those_of_seqeval(tags):
    labeling = pytest.importorskip("seqeval.metrics.sequence_labeling")
    assert sequences.entities(tags) == [tuple(one) for one in labeling.get_entities(tags)]


# ---- commands ----


def test_a_model_by_token_tags_sentences(cli):
    found = cli.json("classify test model test.conll")
    assert found["sentences"] == 20 and found["entities"] == 40
    assert found["entity_f1"] > 0.95 and found["accuracy"] > 0.95
    rows = cli.rows("classify predict model -", stdin="Bob\nlives\nin\nNew\nOslo\n.\n\nAnn\n")
    assert [" ".join(row[:2]) for row in rows] == [
        "Bob B-PER", "lives O", "in O", "New B-LOC", "Oslo I-LOC", ". O", "", "Ann B-PER", "",
    ]  # fmt: skip
    one, two = map(json.loads, cli("classify predict model test.conll --json").splitlines()[:2])
    assert one["tokens"][0]["tag"] == two["tokens"][0]["tag"] == "B-PER"


def test_whole_sentences_are_held_out(cli):
    cli("classify train train.conll --by token --holdout 0.3 --output held")
    record = described("held")["record"]
    pairs = read_artifact("held")[1]["tag_pairs"]
    assert pairs[-1].sum() == pairs[:, -1].sum() < 30
    assert pairs[:, :-1].sum() == record["documents"]


def test_fused_features_learn_from_sentences_without_tags(cli):
    fit = "fuse fit train.conll --by token --unlabeled texts.conll --impact centered"
    cli(f"{fit} --final beside --threads 1 --output fused")
    cli("classify shrink fused --keep 1/2 --output small")
    for name in ("fused", "small"):
        assert cli.json(f"classify test {name} test.conll")["entity_f1"] > 0.9


@pytest.mark.parametrize(
    "line, message",
    [
        ("classify predict model test.conll -k 2", "-k is not supported by a token classifier"),
        (
            "classify test model test.conll --min-probability 0.5",
            "--min-probability is supported only for models",
        ),
        (
            "classify predict model test.conll -o o.csv",
            "--output o.csv is not supported by a token classifier",
        ),
        ("classify test model texts.conll", "texts.conll: no sentence has tags"),
        (
            "classify train texts.conll --by token --output x",
            "no sentence has tags; write one line TOKEN",
        ),
        ("classify train train.conll --by word --output x", "must be document or token"),
    ],
)
def test_wrong_use_is_one_line(cli, line, message):
    assert message in cli.error(line)


CONLLU = """# sent_id = 1
# text = Vámonos al mar
1-2\tVámonos\t_\t_\t_\t_\t_\t_\t_\t_
1\tVamos\tir\tVERB\t_\t_\t0\troot\t_\t_
2\tnos\tnosotros\tPRON\t_\t_\t1\tobj\t_\t_
3.1\tx\tx\tX\t_\t_\t_\t_\t_\t_
"""


@pytest.mark.parametrize("text, tokens, tags", [
    (CONLLU, ["Vamos", "nos"], ["VERB", "PRON"]),
    (CONLLU.replace("VERB", "_").replace("PRON", "_").replace("\tX", "\t_"), ["Vamos", "nos"], []),
    ("# id 1\na\tX\n#\tY\n", ["a", "#"], ["X", "Y"]),
    ("# X\na Y\n", ["#", "a"], ["X", "Y"]),
    ("#\tX\na\tY\n", ["#", "a"], ["X", "Y"]),
    ("# newdoc\n# text = a b\n# id = 1\na NN X\n# NN Y\n", ["a", "#"], ["X", "Y"]),
    ("# id = 1\na X\n", ["a"], ["X"]), ("# a\n# b\n", ["#", "#"], ["a", "b"]),
])  # fmt: skip
def test_conllu_and_comments(here, text, tokens, tags):
    (here / "d").write_text(text + "\n")
    (sentence,) = read_sentences(["d"])
    assert (sentence.tokens, sentence.tags) == (tokens, tags)

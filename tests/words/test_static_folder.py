"""Folders of static embeddings: what other programs load, and reading theirs."""

import errno
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import dcme_w2v as dw
from dcme_w2v.formats.artifact import tensor_pieces

WORDS = ["the", "king", "queen", "tea", "café", "car"]
NEW = ["x", "Tea,", "kings", "tealeaf", "2024", "t" * 1001, "\u03a9a"]
COUNTS = np.array([50, 20, 10, 8, 5, 2])
TEXTS = ["The KING's car, and tea!", "Cafe\u0301; queen", "", "?", "unknown words", "the the tea"]
CONVERT = "convert v.safetensors m --to sentence-transformers --tokenize words"


@pytest.fixture
def vectors():
    rows = np.random.default_rng(1).normal(size=(6, 4)).astype(np.float32)
    manifest = {"version": "0", "options": {}, "corpus": [{"path": "a/b.txt", "bytes": 9}],
                "argv": ["dcme-w2v", "train", "a/b.txt"]}  # fmt: skip
    return dw.Vectors(WORDS, rows, counts=COUNTS, manifest=manifest)


@pytest.fixture(autouse=True)
def folder(vectors):
    vectors.save("v.safetensors")
    Path("s.txt").write_text("King!\n")


def cosines(rows):
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    unit = np.divide(rows, lengths, out=np.zeros(rows.shape), where=lengths > 0)
    return unit @ unit.T


def sentences(count=200):
    draws = np.random.default_rng(2).integers(0, 13, size=(count, 12))
    return [" ".join([*WORDS, *NEW][i] for i in row[: 1 + n % 12])
            for n, row in enumerate(draws)] + TEXTS  # fmt: skip


def encoded_by(package, texts):
    """Return the rows of texts by another program that loads the folder m."""
    loaded = pytest.importorskip(package)
    if package == "model2vec":
        return loaded.StaticModel.from_pretrained("m").encode(texts)
    return loaded.SentenceTransformer("m", device="cpu").encode(texts)


@pytest.mark.parametrize("package", ["model2vec", "sentence_transformers"])
@pytest.mark.parametrize(
    "flags, tolerance",
    [("", 1e-5), ("--limit 5 --reduce 3", 1e-5), ("--quantize float16", 2e-3),
     ("--quantize int8", 0.02)],
)  # fmt: skip
def test_cosines_are_those_of_encode_elsewhere_and_here(cli, vectors, package, flags, tolerance):
    cli(f"{CONVERT} {flags}")
    dim = 3 if "reduce" in flags else None
    encoder = dw.SentenceEncoder(vectors, dim=dim, tokenize="words").fit([])
    here = cosines(dw.SentenceEncoder("m").fit_transform(sentences()))
    assert_allclose(here, cosines(encoded_by(package, sentences())), atol=tolerance)
    if "limit" not in flags:  # which makes other pieces
        assert_allclose(here, cosines(encoder.transform(sentences())), atol=tolerance)


def test_the_vectors_of_the_folder_are_the_pooled_rows(vectors):
    rule = {"tokenize": "words"}
    saved = dw.save_sentence_model(vectors, "m", tokenize=rule, numbers="int8")
    loaded = dw.Vectors.load("m", limit=5)
    assert list(loaded.words) == WORDS[:5]
    assert_allclose(loaded.vectors, saved.vectors[:5], atol=0.01)
    assert loaded.manifest["tokenizer"]["tokenize"] == "words"
    loaded.save("w.safetensors")
    assert_allclose(dw.Vectors.load("w.safetensors").vectors, loaded.vectors)


def test_rows_of_the_mean_keep_neighbors(cli, vectors):
    vectors.save("v.safetensors")
    cli("convert v.safetensors plain --to sentence-transformers --pooling mean")
    assert "weighted for sentences" not in cli.err
    found = dw.Vectors.load("plain")
    assert list(found.words[: len(vectors)]) == list(vectors.words)
    np.testing.assert_array_equal(found.vectors[: len(vectors)], vectors.vectors)
    cli("convert v.safetensors plain --to sentence-transformers")
    assert "--pooling mean keeps the neighbors of words" in cli.err


@pytest.mark.parametrize("kind", ["WordPiece", "Unigram"])
def test_a_folder_of_model2vec_or_sentence_transformers(kind):
    """A potion model's layout: pieces of words, weights and a mapping."""
    tk = pytest.importorskip("tokenizers")
    tokens = ["[UNK]", "tea", "##s", "a b", "king"]
    model = (
        tk.models.WordPiece({t: i for i, t in enumerate(tokens)}, unk_token="[UNK]")
        if kind == "WordPiece"
        else tk.models.Unigram([(t, -1.0) for t in tokens], unk_id=0)
    )
    tokenizer = tk.Tokenizer(model)
    tokenizer.normalizer = tk.normalizers.Lowercase()
    tokenizer.pre_tokenizer = tk.pre_tokenizers.Whitespace()
    place = Path("p", "0_StaticEmbedding") if kind == "Unigram" else Path("p")
    place.mkdir(parents=True)
    tokenizer.save(f"{place}/tokenizer.json")
    rows, mapping = np.eye(3, dtype=np.float16), np.array([0, 1, 2, 2, 0])
    parts = {"embedding.weight": rows, "mapping": mapping, "weights": np.arange(1.0, 6)}
    write_tensors(place, **parts)
    loaded = dw.Vectors.load("p")
    assert list(loaded.words) == ["tea", "##s", "king"]
    assert_allclose(loaded.vectors, [[0, 2, 0], [0, 0, 3], [5, 0, 0]])
    encoded = dw.SentenceEncoder("p").fit_transform(["Tea king zzz", ""])
    assert_allclose(encoded, [[2.5, 1, 0], [0, 0, 0]])


def bert_tokenizer():
    """The tokenizer of the potion models, with a small vocabulary."""
    tk = pytest.importorskip("tokenizers")
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    words = [*special, "the", "tea", "king", "##s", "caf", "##e", "new", "##york", "!", "人", "2"]
    model = tk.models.WordPiece({one: i for i, one in enumerate(words)}, unk_token="[UNK]")
    tokenizer = tk.Tokenizer(model)
    tokenizer.normalizer = tk.normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = tk.pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = tk.processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.add_special_tokens(special)
    return tokenizer


THEIRS = ["The TEA, kings!", "Caf\u00e9 newyork 2 人人", "", "zzz", "a the " * 9]

BASE = np.random.default_rng(5).normal(size=(15, 6)).astype(np.float32)


@pytest.mark.parametrize("change", [
    {}, {"quantize_to": "int8"}, {"quantize_to": "float64"}, {"vocabulary_quantization": 3},
    {"dimensionality": 3},
])  # fmt: skip
@pytest.mark.parametrize("normalize", [False, True])
def test_folders_that_model2vec_saves(cli, change, normalize):
    static_model = pytest.importorskip("model2vec").StaticModel
    static_model(BASE, bert_tokenizer(), normalize=normalize).save_pretrained("base")
    static_model.from_pretrained("base", **change).save_pretrained("m")
    ours, theirs = dw.SentenceEncoder("m").fit_transform(THEIRS), encoded_by("model2vec", THEIRS)
    assert_allclose(ours, theirs, atol=1e-5)
    cli("neighbors m King -k 1")
    cli("check m")
    assert dw.Vectors.load("m").tokenizer.tokens("CAF\u00c9, tea") == ["cafe", ",", "tea"]


def test_folders_that_sentence_transformers_saves():
    package = pytest.importorskip("sentence_transformers")
    models = pytest.importorskip("sentence_transformers.models")
    module = models.StaticEmbedding(bert_tokenizer(), embedding_weights=BASE)
    package.SentenceTransformer(modules=[module], device="cpu").save("m")
    texts = ["The TEA kings!", "Caf\u00e9 newyork 2 人人"]  # without [UNK], which is left out here
    here = dw.SentenceEncoder("m").fit_transform(texts)
    assert_allclose(here, encoded_by("sentence_transformers", texts), atol=1e-5)


def write_tensors(place="m", **parts):
    Path(place, "model.safetensors").write_bytes(b"".join(tensor_pieces(parts)))


def edit_json(change):
    found = json.loads(Path("m/tokenizer.json").read_text())
    change(found)
    Path("m/tokenizer.json").write_text(json.dumps(found))


def edit_model(**change):
    """Change the model of the tokenizer."""
    edit_json(lambda found: found["model"].update(change))


DAMAGES = {
    "tokenizer of config": '{"dcme_w2v": {"tokenizer": {"tokenize": "other"}}}',
    "config": '{"dcme_w2v": 3}',
    "a constant that JSON has not": '{"dcme_w2v": NaN}',
    "truncated": lambda: os.truncate("m/model.safetensors", 150),
    "fewer tokens": lambda: edit_json(lambda f: f["model"]["vocab"].pop("car")),
    "negative id": lambda: edit_json(lambda f: f["model"]["vocab"].update(car=-1)),
    "vocabulary is a number": lambda: edit_model(vocab=3),
    "token is a number": lambda: edit_model(vocab=[[1, 2]] * 7),
    "unknown id": lambda: edit_model(unk_id=99),
    "not JSON": lambda: Path("m/tokenizer.json").write_text("{"),
    "deep": lambda: Path("m/tokenizer.json").write_text("[" * 100_000),
    "rows are missing": lambda: write_tensors(other=np.ones(3, "f")),
    "mapping": lambda: write_tensors(embeddings=np.ones((7, 2), "f"), mapping=np.arange(7) + 1),
    "link in a circle": lambda: relink("model.safetensors", "model.safetensors"),
    "link to nothing": lambda: relink("tokenizer.json", "nothing"),
    "link to a device": lambda: relink("model.safetensors", "/dev/zero"),
}


def relink(name, target):
    Path("m", name).unlink()
    Path("m", name).symlink_to(target)


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_folder_is_one_error_line(cli, damage):
    cli(CONVERT)
    Path("m/config.json").write_text(damage) if isinstance(damage, str) else damage()
    error = cli.error("encode m s.txt -o o.tsv")
    assert error.startswith("error: m") and not Path("o.tsv").exists()


@pytest.mark.parametrize(
    "line, message",
    [
        ("convert v.safetensors m --tokenize words", "supported only with --to"),
        (f"{CONVERT} --unit", "omit --format"),
        ("convert v.safetensors other --to sentence-transformers", "did not write"),
        ("convert m w.safetensors --invalid skip", "is a folder"),
        ("convert v.safetensors . --to sentence-transformers", "cannot be replaced"),
        ("convert m m2 --to sentence-transformers", "are already pooled"),
        ("encode m s.txt -o o.tsv --pooling usif", "are already pooled"),
        ("encode m s.txt -o m/o.tsv", "is inside the input folder"),
    ],
)
def test_wrong_use(cli, line, message):
    for _ in range(2):  # a folder of ours is replaced
        cli(CONVERT)
    shutil.copytree("m", "other")
    Path("other", "mine.txt").write_text("mine")
    assert message in cli.error(line)
    assert Path("other", "mine.txt").read_text() == "mine"


@pytest.mark.parametrize("owner, name", [(Path, "rename"), (os, "fsync")])
def test_a_folder_that_cannot_be_replaced_stays(cli, monkeypatch, owner, name):
    cli(CONVERT)
    before, works = (
        {one.name: one.read_bytes() for one in Path("m").iterdir()},
        getattr(owner, name),
    )

    def fails(path, *more):
        if owner is os or path.suffix == ".part":
            raise OSError(errno.EIO, "no such luck")
        return works(path, *more)

    monkeypatch.setattr(owner, name, fails)
    entries = {*Path().iterdir()}
    assert "error: m cannot be written: no such luck" in cli.error(f"{CONVERT} --pooling mean")
    assert {one.name: one.read_bytes() for one in Path("m").iterdir()} == before
    assert {*Path().iterdir()} == entries


def test_rows_of_unit_length(cli, vectors):
    """A folder declares them, in either file; with other vectors they are an option."""
    pytest.importorskip("tokenizers")
    cli(CONVERT)
    Path("t.txt").write_text("the king\ntea\nqueen car\n")
    for name in ("config.json", "modules.json"):
        rows = cli.rows("encode m t.txt --output -")
        assert_allclose(np.linalg.norm(np.array(rows, float), axis=1), 1, atol=1e-5)
        Path("m", name).write_text(json.dumps([] if "mod" in name else {}))
    for pooling in ("mean", "usif"):
        given = f"encode v.safetensors t.txt --output - --pooling {pooling}"
        raw, unit = (np.array(cli.rows(given + more), float) for more in ("", " --unit"))
        lengths = np.linalg.norm(raw, axis=1, keepdims=True)
        assert_allclose(raw / lengths, unit, atol=1e-4)
        encoder = dw.SentenceEncoder(vectors, pooling=pooling, unit=True)
        assert_allclose(encoder.fit_transform(["the king", "tea", "queen car"]), unit, atol=1e-4)


def test_an_edited_tokenizer_file_is_used_as_it_is(cli):
    """Here as in other programs, whatever the rule in config.json."""
    pytest.importorskip("tokenizers")
    cli(CONVERT)
    edit_json(lambda found: found.update(normalizer=None))
    rows = dw.SentenceEncoder("m").fit_transform(["TEA", "tea"])
    assert not np.allclose(rows[0], rows[1])
    assert_allclose(cosines(rows), cosines(encoded_by("model2vec", ["TEA", "tea"])), atol=1e-6)


@pytest.mark.parametrize("pattern", ["((", "(a+)+$"])
def test_a_pattern_that_tokenizers_does_not_take_is_one_line(cli, pattern):
    """The second is a panic of Rust, which is no Exception."""
    pytest.importorskip("tokenizers")
    cli(CONVERT)
    split = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated"}
    edit_json(lambda found: found.update(normalizer=None, pre_tokenizer={**split, "invert": False}))
    Path("s.txt").write_text("a" * 60 + "b\n")
    assert "tokenizer.json: " in cli.error("encode m s.txt --output o.tsv")


def test_an_edited_manifest_is_described_as_far_as_it_is_one(cli, vectors):
    edited = [1, [], {}, {"path": 3}, {"path": "a/c.txt", "bytes": "x"}]
    files = vectors.manifest["corpus"] + edited
    manifest = {**vectors.manifest, "corpus": files, "argv": 5}
    dw.Vectors(WORDS, vectors.vectors, counts=COUNTS, manifest=manifest).save("v.safetensors")
    cli(CONVERT)
    assert "## Data\n\n- b.txt, 9 bytes\n- c.txt\n" in Path("m/README.md").read_text("utf-8")

"""The data of the tests: texts, encoded corpora, vectors, documents, and a file of every kind."""

import functools
import random
from pathlib import Path

import numpy as np
import pytest
from reference import LAST
from scipy.sparse import csr_matrix, save_npz

from dcme_w2v import Vectors
from dcme_w2v.cli.main import run
from dcme_w2v.formats.vocabulary import Words
from dcme_w2v.scdv.options import PAPER, ScdvOptions

# ---- texts ----


def write_corpus(path, lines=400, seed=0, end="\n"):
    """Two topics with separate words, common words, rare words and odd lines."""
    chance = random.Random(seed)
    topics = [[f"{name}{i}" for i in range(20)] for name in ("fish", "wheel")]
    common = ["the", "of", "and"]
    text = []
    for number in range(lines):
        words = chance.choices(topics[number % 2] + common, k=chance.randint(0, 14))
        if number % 50 == 0:
            words.append(f"rare{number}")
        text.append(" ".join(words))
    Path(path).write_text(end.join(text), newline="")
    return str(path)


# ---- encoded corpora ----


@functools.cache
def corpus(words=120, tokens=1200, seed=5):
    """Zipf's law within topics, a topic to a sentence; sentences of 1 to 30 words, one of 600."""
    random = np.random.default_rng(seed)
    share = 1 / np.arange(3, words + 3)
    topics = [share * np.where(np.arange(words) % 4 == topic, 8, 1) for topic in range(4)]
    sentences = []
    while sum(map(len, sentences)) < tokens:
        topic = topics[random.integers(4)]
        length = 600 if len(sentences) == 3 else random.integers(1, 31)
        sentences.append(random.choice(words, length, p=topic / topic.sum()))
    return encoded(sentences)


def encoded(sentences):
    """Ids by descending frequency, the last word of a sentence marked; and counts."""
    text = np.concatenate(sentences)
    found, counts = np.unique(text, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    number = np.zeros(text.max() + 1, dtype=np.uint32)
    number[found[order]] = np.arange(len(found), dtype=np.uint32)
    ids = number[text]
    ids[np.cumsum([len(sentence) for sentence in sentences]) - 1] |= np.uint32(LAST)
    return ids, counts[order].astype(np.int64)


def lines(lengths, words=30):
    """Random words on lines of given lengths; the last line has no line feed."""
    random = np.random.default_rng(sum(lengths))
    ids, counts = encoded([random.zipf(1.4, length) % words for length in lengths])
    ids[-1] &= np.uint32(LAST - 1)
    return ids, counts


# ---- word vectors ----

STEMS = [f"word{i}" for i in range(60)]


def word_list():
    """Sixty words, some of them also in other cases at lower frequency."""
    return STEMS + [s.upper() for s in STEMS[:30]] + [s.capitalize() for s in STEMS[:20]]


def analogy_vectors(seed=0, dim=12, spread=0.02):
    """Structured so that analogies often hold: stem i = pair (i // 2) plus one of two forms."""
    random = np.random.default_rng(seed)
    words = word_list()
    pairs, forms = random.normal(size=(30, dim)), random.normal(size=(2, dim))
    rows = [
        pairs[STEMS.index(word.lower()) // 2] + forms[STEMS.index(word.lower()) % 2]
        for word in words
    ]
    matrix = np.array(rows) + spread * random.normal(size=(len(words), dim))
    matrix *= random.uniform(0.2, 3, size=(len(words), 1))
    return Vectors(Words.from_words(words), matrix.astype(np.float32))


def word_vectors(dim=7, seed=1):
    """Return vectors of the words w0 to w39, in five groups."""
    random = np.random.default_rng(seed)
    centers = random.normal(size=(5, dim)) + 0.5
    matrix = centers[np.arange(40) % 5] + random.normal(size=(40, dim)) * 0.6
    words = Words.from_words([f"w{i}" for i in range(40)])
    return Vectors(words, matrix.astype(np.float32))


# ---- documents ----

SMALL_SCDV = ScdvOptions(clusters=5, iterations=20, **PAPER)


def make_texts(count=80, seed=2):
    """Documents with known and out-of-vocabulary words; some are empty or have only the latter."""
    random = np.random.default_rng(seed)
    made = []
    for number in range(count):
        length = random.integers(1, 60)
        words = [f"w{i}" for i in random.zipf(1.4, length) % 45]
        made.append(" ".join([] if number % 13 == 4 else words).encode())
    made[7] = b"unknown words only"
    return made


def text_of(data):
    """Return labeled rows as lines of words."""
    rows = [" ".join(map("w{}".format, row.indices)) for row in data.matrix]
    names = ["|".join(map("c{}".format, own)) for own in data.labels]
    return "".join(f"{name}\t{row}\n" for name, row in zip(names, rows, strict=True))


def cloud(count=600, dim=5, clusters=4, spread=0.2, seed=3):
    random = np.random.default_rng(seed)
    centers = random.normal(size=(clusters, dim)) + 3  # far from the origin, as word vectors may be
    own = random.integers(clusters, size=count)
    noise = random.normal(size=(count, dim)) * np.linspace(0.5, 1.5, dim) * spread
    return (centers[own] + noise).astype(np.float32), own


# ---- a file of every kind ----

CORPUS = "".join(f"{a}{b} {b}{c} {c}{a} aa bb cc\n" for a in "abc" for b in "abc" for c in "abc")
DOCS = "".join(f"{'xy'[i % 2]}\t{('aa bb ab', 'cc bc ca')[i % 2]} ac\n" for i in range(20))
SMALL = "--dim 4 --epochs 1 --min-count 1 --sample 0 --threads 1"


def run_all(folder, *lines):
    """Run command lines in a folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for line in lines:
            assert run(line.split()) == 0, line


def write_files(folder):
    """Write all files that commands read."""
    texts = {
        "c.txt": CORPUS, "h.txt": CORPUS[:90], "d.txt": DOCS, "d2.txt": DOCS, "d.svm": DOCS,
        "l.txt": "x\ny\n" * 10, "words": "aa\n", "q.txt": "aa bb cc ab\n",
        "v.svm": "1 0:1 1:2\n2 2:1\n" * 10,
        "sts.tsv": "1\taa bb\tcc\n2\tab\tac\n",
        "one": "x\tcat dog\n" * 4, "plain": "cat dog\nsaw axe\n" * 6, "empty": "",
        "wordless": "a\t\nb\t.\n", "two.txt": "a 1 2\nb 3 4\n", "nan.txt": "a 1 2\nb nan 4\n",
        "short": "a\nb\n", "bytes": "\udcff\n", "ended": '{"event": "end", "seconds": 1}\n',
        "nul": "of\0the\n", "many": " ".join(map(str, range(255))),
        "of": "1\ta\tb\t3\t1\tof\n1\tof\tb\t3\t1\n",
        "asked": "who are they now\n", "other.voc": "who 1\n",
        "p.txt": "aa\tbb\t1\naa\tcc\t2\nab\tbb\t3\n", "half.tsv": "1.5\ttea\n2.5\tboat\n" * 6,
        "other.txt": "x 1 2\ny 3 4\n", "c-1.txt": CORPUS, "5.json": '{"address": 5}',
    }  # fmt: skip
    event = '{"event": "epoch", "seconds": 1, "epoch": %d, "loss": 1}\n'
    texts["lv.txt"] = "x\ny\nz\n" * 3
    texts["log"] = event % 1 + event % 2
    for name, text in texts.items():
        (folder / name).write_text(text, "utf-8", "surrogateescape")
    for name in ("w.npz", "w2.npz"):
        save_npz(folder / name, csr_matrix([[1.0, 0, 0.5], [0, 1, 0.25]] * 10))
    run_all(
        folder,
        f"train c.txt --output v.txt {SMALL}",
        f"train c.txt --output o --checkpoint ck --checkpoint-every 1 {SMALL}",
        f"train c.txt --output-tables ta --output o {SMALL}",
        f"train c.txt --output-tables tb --output i.safetensors {SMALL}",
        f"train c.txt --output i.bin --format fasttext --subwords 3-6 --buckets 50 {SMALL}",
        "vocab c.txt --output voc --min-count 1",
        "phrases c.txt --output o --save-table tab --threshold 0 --min-count 1",
        "classify train d.txt --output k --epochs 1",
        "latent fit d.txt --output z",
        "latent fit v.svm --output zv",
        "classify train d.txt --output k --epochs 1 --threads 1 --checkpoint kc "
        "--checkpoint-every 1",
        "scdv fit d.txt --vectors v.txt --output m --clusters 2",
        "transform m d.txt --output r.npz",
        "fuse fit d.txt --unlabeled d2.txt --output f --preset paper",
        "classify train w.npz --labels l.txt --output kr --epochs 1",
        "classify shrink k --keep 0.5 --output s",
    )
    for name in ("o", "o.json"):
        (folder / name).unlink()

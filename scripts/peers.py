"""Train the same corpus with this program, gensim and fastText; used by the other scripts.

Each training runs in a process of its own and reports the seconds of its parts. gensim and fastText
come with `pip install dcme-w2v[bench]`.
"""

from __future__ import annotations

import dataclasses
import json
import lzma
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


@dataclass(frozen=True)
class Setting:
    """Settings of training, the same for every program."""

    model: str = "cbow"
    dim: int = 100
    window: int = 5
    negative: int = 5  # 0 is hierarchical softmax
    sample: float = 1e-3
    noise_power: float | None = None  # 0.75; nce: 1
    min_count: int = 5
    epochs: int = 5
    threads: int = 2
    lr: float | None = None
    seed: int = 1


@dataclass(frozen=True)
class Run:
    """Seconds and memory of one training run."""

    count_seconds: float
    train_seconds: float
    total_seconds: float
    peak_memory_bytes: int
    tokens: int


def development_data() -> Path:
    """Return the folder of development data, or end with a message where there is none."""
    if not DATA.is_dir():
        sys.exit(f"skipped: there is no {DATA}; give --corpus and the evaluation sets")
    return DATA


def plain_corpus(folder: Path) -> Path:
    """Decompress the development corpus into a folder, once, and return its path."""
    target = folder / "enwiki17.txt"
    if not target.exists():
        packed = development_data() / "corpora" / "enwiki17.txt.xz"
        with lzma.open(packed) as source, target.with_suffix(".part").open("wb") as file:
            shutil.copyfileobj(source, file, 1 << 22)
        target.with_suffix(".part").rename(target)
    return target


def work_folder(given: str | None) -> Path:
    """Return a folder for corpora and vectors: the one given, or a new temporary one."""
    folder = Path(given or tempfile.mkdtemp(prefix="dcme-w2v-"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def train_ours(
    corpus: Path, output: Path, setting: Setting, own_noise: bool = False, **options: Any
) -> Run:
    """Run `dcme-w2v train`; `options` are further flags by name.

    Noise, vectors and, for CBOW with few negative samples, the learning rate are word2vec's unless
    they are given, as all programs train the same; with `own_noise` they are this program's
    defaults.
    """
    given = {"vectors": "input", **dataclasses.asdict(setting), **options}
    if setting.negative == 0:
        given |= {"objective": "hs", "negative": None}
    if own_noise:
        given |= dict.fromkeys(("negative", "sample", "noise_power", "vectors"))
    elif given.get("objective", "ns") == "ns":
        given["noise_power"] = given["noise_power"] or 0.75
        if given["lr"] is None and setting.model == "cbow" and setting.negative < 10:
            given["lr"] = 0.05
    flags = [
        f"--{name.replace('_', '-')}={value}" for name, value in given.items() if value is not None
    ]
    command = [sys.executable, "-m", "dcme_w2v", "train", str(corpus), "--output", str(output)]
    subprocess.run([*command, "--quiet", *flags], check=True)
    manifest = json.loads(Path(f"{output}.json").read_text())
    return Run(
        manifest["count_seconds"],
        manifest["train_seconds"],
        manifest["total_seconds"],
        manifest["peak_memory_bytes"],
        manifest["tokens"]["corpus"],
    )


GENSIM = """
import json, resource, sys, time
from gensim.models import Word2Vec
corpus, output, setting = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
start = time.perf_counter()
model = Word2Vec(
    vector_size=setting["dim"], window=setting["window"], negative=setting["negative"],
    sample=setting["sample"], min_count=setting["min_count"], workers=setting["threads"],
    sg=int(setting["model"] == "skipgram"), hs=int(setting["negative"] == 0),
    alpha=setting["lr"], seed=setting["seed"], ns_exponent=setting["noise_power"] or 0.75,
)
model.build_vocab(corpus_file=corpus)
counted = time.perf_counter()
model.train(
    corpus_file=corpus, total_words=model.corpus_total_words, epochs=setting["epochs"],
    total_examples=model.corpus_count,
)
trained = time.perf_counter()
if setting["both"]:
    model.wv.vectors += model.syn1neg
model.wv.save_word2vec_format(output, binary=output.endswith(".bin"))
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print(json.dumps([counted - start, trained - counted, time.perf_counter() - start, peak,
                  model.corpus_total_words]))
"""

FASTTEXT = """
import json, resource, sys, time
import fasttext
corpus, output, setting = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
start = time.perf_counter()
model = fasttext.train_unsupervised(
    corpus, model=setting["model"], dim=setting["dim"], ws=setting["window"],
    neg=setting["negative"], t=setting["sample"], minCount=setting["min_count"], minn=0, maxn=0,
    epoch=setting["epochs"], thread=setting["threads"], lr=setting["lr"], verbose=0,
)
total = time.perf_counter() - start
words = [word for word in model.get_words() if word != "</s>"]
with open(output, "w", encoding="utf-8") as file:
    file.write(f"{len(words)} {setting['dim']}\\n")
    for word in words:
        numbers = " ".join(f"{number:.6g}" for number in model.get_word_vector(word))
        file.write(f"{word} {numbers}\\n")
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print(json.dumps([0.0, total, total, peak, 0]))
"""


def train_gensim(corpus: Path, output: Path, setting: Setting, both: bool = False) -> Run:
    """Train with gensim's fast path, corpus_file; its BLAS has one thread per worker.

    With `both` the sum of its two tables is written, which gensim itself does not support.
    """
    return _train_peer(GENSIM, corpus, output, setting, both=both)


def train_fasttext(corpus: Path, output: Path, setting: Setting) -> Run:
    """Train with fastText without subwords; its seconds include reading and counting."""
    return _train_peer(FASTTEXT, corpus, output, setting)


def _train_peer(program: str, corpus: Path, output: Path, setting: Setting, **more: bool) -> Run:
    # word2vec.c's rates, the defaults of all of these programs
    rate = setting.lr or (0.05 if setting.model == "cbow" else 0.025)
    given = json.dumps({**dataclasses.asdict(dataclasses.replace(setting, lr=rate)), **more})
    command = [sys.executable, "-W", "ignore", "-c", program, str(corpus), str(output), given]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment)
    return Run(*json.loads(done.stdout.splitlines()[-1]))


def evaluate(vectors: Path, data: Path) -> dict[str, float]:
    """Return the figures of word vectors by `dcme-w2v eval`, shares as numbers from 0 to 1."""
    questions = str(data / "analogies" / "questions-words.txt")
    figures = {}
    for name, restrict in (("analogies_30000", "30000"), ("analogies_all", "10000000")):
        found = _eval("analogies", str(vectors), questions, "--restrict", restrict)
        figures[name] = found["accuracy"]
    for name in ("ws353", "simlex999"):
        found = _eval("similarity", str(vectors), str(data / "wordsim" / f"{name}.txt"))
        figures[name] = found["spearman"]
    return figures


def _eval(*arguments: str) -> Any:
    command = [sys.executable, "-m", "dcme_w2v", "eval", *arguments, "--json"]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)

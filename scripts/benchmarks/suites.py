"""The suites of run.py: each runs commands on files of the data folder and yields numbers."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from many_labels import write_documents

from dcme_w2v._core.train import has_kernels
from dcme_w2v.numeric.core import INSTRUCTION_SETS

Line = tuple[str, int, str, float, str]  # setting, seed, metric, number, unit


@dataclass(frozen=True)
class Setup:
    """Where the data are, a folder to work in, and how to run."""

    data: Path
    work: Path
    seeds: Sequence[int]
    threads: int

    def file(self, name: str) -> str:
        """Return the path of a file of the data; fail if it is missing."""
        path = self.data / name
        if not path.exists():
            raise FileNotFoundError(f"{path} is missing")
        return str(path)

    def out(self, name: str) -> str:
        """Return the path of a new file in the folder for work."""
        return str(self.work / name)

    def run(self, *arguments: object, **environment: str) -> tuple[str, float]:
        """Run dcme-w2v; return its output and the CPU seconds of the process."""
        return _timed([sys.executable, "-m", "dcme_w2v", *map(str, arguments)], environment)

    def json(self, *arguments: object) -> dict[str, Any]:
        """Run a command with --json and return what it prints."""
        found = json.loads(self.run(*arguments, "--json")[0])
        return dict(found if isinstance(found, dict) else found[0])


def _timed(command: list[str], environment: Mapping[str, str] = {}) -> tuple[str, float]:
    start = os.times()
    variables = {**os.environ, **environment}
    variables.pop("PYTHONDONTWRITEBYTECODE", None)  # pip compiles the modules it installs
    done = subprocess.run(command, capture_output=True, text=True, env=variables)
    end = os.times()
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr[-500:]}")
    seconds = end.children_user + end.children_system - start.children_user - start.children_system
    return done.stdout, seconds


GENSIM = """
import sys, time
from gensim.models import Word2Vec
text, out, *numbers = sys.argv[1:]
dim, window, negative, sg, threads, seed = map(int, numbers)
model = Word2Vec(corpus_file=text, vector_size=dim, window=window, negative=negative, sg=sg,
                 workers=threads, seed=seed, min_count=5, sample=1e-3, epochs=5)
model.wv.save_word2vec_format(out, binary=True)
"""


def speed(s: Setup) -> Iterator[Line]:
    """Compare the CPU seconds of one thread with gensim's corpus_file, for all kernels."""
    text = s.file("corpus.txt")
    for model, dim, window, negative in (
        ("cbow", 100, 5, 5),
        ("cbow", 100, 10, 20),
        ("cbow", 300, 5, 5),
        ("skipgram", 100, 5, 5),
    ):
        for seed in s.seeds:
            ours = ["train", text, "--preset", "word2vec", "--model", model, "--dim", dim,
                    "--window", window, "--negative", negative, "--threads", 1,
                    "--seed", seed, "--quiet", "--output", s.out("ours.bin")]  # fmt: skip
            numbers = (dim, window, negative, int(model == "skipgram"), 1, seed)
            theirs = [sys.executable, "-c", GENSIM, text, s.out("gensim.bin"), *map(str, numbers)]
            _, gensim = _timed(theirs)
            for kernels in filter(has_kernels, INSTRUCTION_SETS[1:]):
                _, seconds = s.run(*ours, DCME_W2V_KERNELS=kernels)
                name = f"{model} {dim}/{window}/{negative}"
                yield name, seed, f"ours / gensim, {kernels}", gensim / seconds, ""


FIXED = ["--window", "10", "--window-mode", "fixed", "--sample", "0"]
BLOCKS: dict[str, list[str]] = {
    "ns, 20 samples": [*FIXED, "--objective", "ns", "--negative", "20"],
    "preset likelihood": ["--preset", "likelihood"],
}


def blocks(s: Setup) -> Iterator[Line]:
    """Compare the CPU seconds of blocks with the seconds of negative sampling, for all kernels."""
    text, out = s.file("corpus.txt"), s.out("blocks.safetensors")
    for seed in s.seeds:
        for kernels in filter(has_kernels, INSTRUCTION_SETS[1:]):
            base = 0.0
            for name, options in BLOCKS.items():
                options = [*options, "--threads", "1", "--seed", str(seed), "--quiet"]
                ours = ["train", text, *options, "--output", out]
                _, seconds = s.run(*ours, DCME_W2V_KERNELS=kernels)
                base = base or seconds
                yield name, seed, f"speed, {kernels}", base / seconds, ""


WORDS: dict[str, list[str]] = {
    "cbow, defaults": [],
    "cbow ns": ["--preset", "word2vec"],
    "cbow nce": ["--objective", "nce"],
    "cbow dcme": ["--objective", "dcme"],
    "cbow hs": ["--objective", "hs"],
    "skipgram ns": ["--model", "skipgram"],
    "skipgram nce": ["--model", "skipgram", "--objective", "nce"],
}


def words(s: Setup) -> Iterator[Line]:
    """Analogies, word similarity and the seconds of training, by objective."""
    text, questions = s.file("corpus.txt"), s.file("questions-words.txt")
    for name, options in WORDS.items():
        for seed in s.seeds:
            out = s.out("words.safetensors")
            _, seconds = s.run("train", text, *options, "--threads", s.threads, "--seed", seed,
                               "--quiet", "--output", out)  # fmt: skip
            yield name, seed, "CPU seconds", seconds, ""
            for found in _of_words(s, out, questions):
                yield name, seed, *found


def _of_words(s: Setup, vectors: str, questions: str) -> Iterator[tuple[str, float, str]]:
    """Yield the analogies and the word similarities of vectors."""
    yield "analogies", 100 * s.json("eval", "analogies", vectors, questions)["accuracy"], "%"
    for pairs in ("wordsim353.tsv", "simlex999.tsv"):
        if (s.data / pairs).exists():
            found = s.json("eval", "similarity", vectors, s.file(pairs))
            yield pairs[:-4], found["spearman"], ""


SENTENCES: dict[str, list[object]] = {
    "train's defaults": [],
    "--window 10": ["--window", 10],
    "--window 10 --epochs 10": ["--window", 10, "--epochs", 10],
}


def sentences(s: Setup) -> Iterator[Line]:
    """Pearson's correlation on STS: a year's files weighted by their pairs, mean of the years."""
    text, pairs, out = s.file("corpus.txt"), s.file("sts"), s.out("sentences.safetensors")
    for seed in s.seeds:
        for name, options in SENTENCES.items():
            s.run("train", text, *options, "--threads", s.threads, "--seed", seed,
                               "--quiet", "--output", out)  # fmt: skip
            for pooling in ("static", "usif", "idf", "mean"):
                found = s.run("eval", "sts", out, pairs, "--tokenize", "words", "--strip-accents",
                              "--pooling", pooling, "--json")[0]  # fmt: skip
                years: dict[str, list[tuple[float, int]]] = {}
                for one in json.loads(found)["sets"]:
                    year = Path(one["name"]).name.partition(".")[0]
                    years.setdefault(year, []).append((one["pearson"], one["pairs"]))
                means = {
                    year: sum(r * n for r, n in sets) / sum(n for _, n in sets)
                    for year, sets in years.items()
                }
                for year, mean in {**means, "mean": sum(means.values()) / len(means)}.items():
                    yield f"{pooling}, {name}", seed, year, 100 * mean, ""


MODEL2VEC = """
import sys
import numpy as np
from model2vec import StaticModel
folder, text, out = sys.argv[1:]
lines = open(text, encoding="utf-8").read().splitlines()
np.save(out, StaticModel.from_pretrained(folder).encode(lines, use_multiprocessing=False))
"""


def encode(s: Setup) -> Iterator[Line]:
    """Sentences of 12 words encoded in a CPU second, the start of the program included."""
    vectors, folder, text = s.out("e.safetensors"), s.out("folder"), s.out("sentences.txt")
    s.run("train", s.file("corpus.txt"), "--epochs", 1, "--quiet", "--output", vectors)
    s.run("convert", vectors, folder, "--to", "sentence-transformers", "--tokenize", "words")
    count = 0
    with Path(s.file("corpus.txt")).open() as lines, Path(text).open("w") as made:
        for line in lines:
            words = line.split()
            for first in range(0, len(words) - 11, 12):
                made.write(" ".join(words[first : first + 12]).capitalize() + ".\n")
                count += 1
            if count > 400_000:
                break
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    for seed in s.seeds:
        for form, source in (("vectors", vectors), ("the folder", folder)):
            more = ["--tokenize", "words"] if source == vectors else []
            _, seconds = s.run("encode", source, text, *more, "--threads", 1, "--output",
                               s.out("rows.npy"))  # fmt: skip
            yield f"dcme-w2v encode, {form}", seed, "sentences / CPU second", count / seconds, ""
        theirs = [sys.executable, "-c", MODEL2VEC, folder, text, s.out("theirs.npy")]
        _, seconds = _timed(theirs)
        yield "model2vec, the folder", seed, "sentences / CPU second", count / seconds, ""


def raw_text(s: Setup) -> Iterator[Line]:
    """CPU seconds of `train` on raw text and columns, beside prepared text of the same tokens."""
    import pyarrow as pa
    from pyarrow import parquet

    with Path(s.file("corpus.txt")).open(encoding="utf-8") as text:
        words = text.read(30_000_000).split()
    prepared = [" ".join(words[first : first + 25]) for first in range(0, len(words), 25)]
    raw = [line.capitalize() + "." for line in prepared]
    Path(s.out("prepared.txt")).write_text("\n".join(prepared), encoding="utf-8")
    Path(s.out("raw.txt")).write_text("\n".join(raw), encoding="utf-8")
    rows = "".join(json.dumps({"text": line}) + "\n" for line in raw)
    Path(s.out("raw.jsonl")).write_text(rows, encoding="utf-8")
    parquet.write_table(pa.table({"text": raw}), s.out("raw.parquet"))
    column = ["--text-column", "text", "--tokenize", "words"]
    forms: dict[str, tuple[str, list[str]]] = {
        "prepared text": ("prepared.txt", []),
        "raw text, --tokenize words": ("raw.txt", column[2:]),
        "Parquet, --tokenize words": ("raw.parquet", column),
        "JSON lines, --tokenize words": ("raw.jsonl", column),
    }
    for seed in s.seeds:
        base = 0.0
        for name, (file, options) in forms.items():
            _, seconds = s.run("train", s.out(file), *options, "--threads", 1, "--seed", seed,
                               "--quiet", "--output", s.out("raw.safetensors"))  # fmt: skip
            base = base or seconds
            yield name, seed, "CPU seconds", seconds, ""
            yield name, seed, "speed", 100 * base / seconds, "%"


def likelihood(s: Setup) -> Iterator[Line]:
    """Held-out log-likelihood after the last epoch, by the exact softmax."""
    text = s.file("corpus.txt")
    settings = {name: ["--objective", name] for name in ("ns", "nce", "dcme")}
    for name, options in {**settings, "preset likelihood": ["--preset", "likelihood"]}.items():
        for seed in s.seeds:
            log = s.out("log.jsonl")
            s.run("train", text, *options, "--holdout", 0.02, "--seed", seed, "--threads",
                  s.threads, "--quiet", "--log-json", log, "--output", s.out("l.bin"))  # fmt: skip
            events = [json.loads(line) for line in Path(log).read_text().splitlines()]
            for key in ("heldout_log_probability", "heldout_log_mean_probability"):
                values = [event[key] for event in events if key in event]
                yield name, seed, key.removeprefix("heldout_").replace("_", " "), values[-1], ""


CLASSIFIERS: dict[str, list[str]] = {
    "defaults": [],
    "gd": ["--objective", "gd"],
    "dcme": ["--objective", "dcme"],
    "nce": ["--objective", "nce"],
    "hinge": ["--loss", "hinge"],
    "L-BFGS": ["--solver", "lbfgs"],
    "--tune": ["--tune"],
}


def classify(s: Setup) -> Iterator[Line]:
    """Accuracy (micro F1 where documents have several labels) and CPU seconds of classifiers."""
    train, test = s.file("train.tsv"), s.file("test.tsv")
    for name, options in CLASSIFIERS.items():
        for seed in s.seeds:
            model = s.out("classifier")
            _, seconds = s.run("classify", "train", train, *options, "--threads", s.threads,
                               "--seed", seed, "--quiet", "--output", model)  # fmt: skip
            found = s.json("classify", "test", model, test)
            yield name, seed, "CPU seconds", seconds, ""
            yield name, seed, "micro F1", 100 * found["micro_f1"], "%"
            yield name, seed, "macro F1", 100 * found["macro_f1"], "%"


ON_SAME_ROWS = """
import sys
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.svm import LinearSVC
from dcme_w2v.classify.model import load_classifier
name, model, *files = sys.argv[1:]

def likelihood(fitted, rows, labels):
    columns = {label: column for column, label in enumerate(fitted.classes_)}
    found = fitted.predict_proba(rows)
    of_labels = [found[i, columns[one]] if one in columns else 0 for i, one in enumerate(labels)]
    return np.log(np.maximum(of_labels, 1e-4)).mean()

penalties = {"C": 10.0 ** np.arange(6)}
maxent = LogisticRegression(max_iter=1000)
peers = {
    "LinearSVC": LinearSVC(),
    "maximum entropy": GridSearchCV(maxent, penalties, scoring=likelihood, cv=KFold(5)),
}
model = load_classifier(model)
rows, labels = [], []
for file in files:
    with open(file, newline="\\n", encoding="utf-8") as lines:
        pairs = [line.rstrip("\\n").split("\\t", 1) for line in lines]
    rows.append(model.rows([text.encode() for _, text in pairs]))
    labels.append(np.array([label for label, _ in pairs]))
print((peers[name].fit(rows[0], labels[0]).predict(rows[1]) == labels[1]).mean())
"""


SAME_ROWS = [sys.executable, "-c", ON_SAME_ROWS]


def label_sets(s: Setup) -> Iterator[Line]:
    """Compare the defaults with trees, small models and LinearSVC (C = 1) on the same rows."""
    for folder in sorted(Path(s.file("sets")).iterdir()):
        train, test, model = str(folder / "train.tsv"), str(folder / "test.tsv"), s.out("m")
        for seed in s.seeds:
            own = ["--seed", seed, "--threads", 1, "--quiet"]
            runs: list[tuple[str, list[object]]] = [
                ("defaults", ["classify", "train", train, *own])
            ]
            for name, command in runs:
                out = model if name == "defaults" else s.out(name)
                _, seconds = s.run(*command, "--output", out)
                found = s.json("classify", "test", out, test)
                size = sum(file.stat().st_size for file in Path(out).iterdir()) / 1e6
                for metric in ("accuracy", "precision_at_1", "precision_at_5", "r_precision_at_5"):
                    if metric in found:
                        yield f"{folder.name}: {name}", seed, metric, 100 * found[metric], "%"
                yield f"{folder.name}: {name}", seed, "micro F1", 100 * found["micro_f1"], "%"
                yield f"{folder.name}: {name}", seed, "CPU seconds", seconds, ""
                yield f"{folder.name}: {name}", seed, "on disk", size, "MB"
                if name == "defaults" and "precision_at_1" in found:
                    trees = ["classify", "train", train, "--objective", "tree", *own]
                    runs.append(("three trees", trees))
                    runs.append(("8 MB", ["fuse", "shrink", model, "--max-bytes", 8_000_000]))
            if "accuracy" in found:
                line, _ = _timed([*SAME_ROWS, "LinearSVC", model, train, test])
                yield f"{folder.name}: LinearSVC", seed, "accuracy", 100 * float(line), "%"


SINGLE = ["--ngrams", "1", "--lead-ngrams"]
LABEL_OPTIONS: dict[str, list[str]] = {
    "defaults": [],
    "single words": [*SINGLE, "1"],
    "pairs of the first 80": [*SINGLE, "2"],
    "all pairs": ["--ngrams", "2"],
    "pairs and n-grams of characters": [*SINGLE, "2", "--subwords", "1-4"],
    "softmax": ["--loss", "softmax"],
}


def label_options(s: Setup) -> Iterator[Line]:
    """Compare the defaults of classifiers with other features and another loss."""
    for folder, seed in product(sorted(Path(s.file("sets")).iterdir()), s.seeds):
        for name, options in LABEL_OPTIONS.items():
            s.run("classify", "train", folder / "train.tsv", *options, "--seed", seed,
                  "--threads", 1, "--quiet", "--output", s.out("m"))  # fmt: skip
            found = s.json("classify", "test", s.out("m"), folder / "test.tsv")
            right = found.get("accuracy", found.get("precision_at_1", 0.0))
            yield folder.name, seed, name, 100 * right, "%"
            if name in ("defaults", "softmax") and "log_likelihood" in found:
                yield folder.name, seed, f"{name}: log-likelihood", found["log_likelihood"], ""


def few_documents(s: Setup) -> Iterator[Line]:
    """Compare the defaults with peers on single words, from few documents of ten classes."""
    few, test, model = s.out("few.tsv"), s.out("test.tsv"), s.out("m")
    for folder, count, seed in product(_one_label(s), (60, 100, 200, 300), s.seeds):
        random = np.random.default_rng(seed)
        parts = [_labeled(folder / f"{part}.tsv") for part in ("train", "test")]
        frequent = [name for name, n in Counter(parts[0][0]).most_common(30) if n >= 60]
        classes = set(random.permutation(frequent)[:10].tolist())
        for path, (labels, lines), most in zip((few, test), parts, (count, 2000), strict=True):
            order = [i for i in random.permutation(len(lines)).tolist() if labels[i] in classes]
            Path(path).write_text("".join(lines[i] for i in order[:most]), encoding="utf-8")
        train = ["classify", "train", few, "--threads", 1, "--seed", seed, "--quiet", "--output"]
        s.run(*train, model)
        accuracy = s.json("classify", "test", model, test)["accuracy"]
        setting = f"{folder.name}; {len(classes)}; {count}"
        yield setting, seed, "defaults", 100 * accuracy, "%"
        s.run(*train, s.out("single"), *SINGLE, "1", "--subwords", "none")
        for peer in ("maximum entropy", "LinearSVC"):
            line, _ = _timed([*SAME_ROWS, peer, s.out("single"), few, test])
            yield setting, seed, peer, 100 * float(line), "%"


def _one_label(s: Setup) -> Iterator[Path]:
    """Yield the folders of sets whose documents have one label."""
    for folder in sorted(Path(s.file("sets")).iterdir()):
        if not any("|" in label for label in _labeled(folder / "train.tsv")[0]):
            yield folder


def _labeled(file: Path) -> tuple[list[str], list[str]]:
    """Return the labels and the lines of a file."""
    with file.open(encoding="utf-8", newline="\n") as opened:
        lines = list(opened)
    return [line.partition("\t")[0] for line in lines], lines


def many_labels(s: Setup) -> Iterator[Line]:
    """Train on documents with tens of thousands of labels, made of paragraphs and headings."""
    write_documents(s.file("corpus.txt"), s.file("articles.txt"), s.out("many"))
    train, test, one = s.out("many/train.tsv"), s.out("many/test.tsv"), s.out("one.tsv")
    lines = Path(test).read_text(encoding="utf-8").splitlines(keepends=True)
    Path(one).write_text(lines[0], encoding="utf-8")
    for seed in s.seeds:
        own = ["--seed", seed, "--threads", 1]
        _, seconds, private = _watched(s, "classify", "train", train, *own, "--output", s.out("m"))
        made = s.json("info", s.out("m"))
        setting = f"{made['record']['documents']:,} documents, {len(made['classes']):,} labels"
        yield setting, seed, "CPU seconds", seconds, ""
        yield setting, seed, "memory", private / 1e6, "MB"
        size = Path(s.out("m")).stat().st_size
        yield setting, seed, "on disk", size / 1e6, "MB"
        predict = ("classify", "predict", s.out("m"), "--threads", 1)
        all_of_them, start = (s.run(*predict, file)[1] for file in (test, one))
        yield setting, seed, "a document", 1000 * (all_of_them - start) / (len(lines) - 1), "ms"
        found = s.json("classify", "test", s.out("m"), test)
        for metric in ("precision_at_1", "precision_at_5", "micro_f1"):
            yield setting, seed, metric, 100 * found[metric], "%"


def documents(s: Setup) -> Iterator[Line]:
    """Classify by SCDV, the mean of the same word vectors of the training documents, and tf-idf."""
    for folder in sorted(Path(s.file("documents")).iterdir()):
        files = {part: str(folder / f"{part}.tsv") for part in ("train", "test")}
        lines = Path(files["train"]).read_text(encoding="utf-8").splitlines(keepends=True)
        Path(s.out("d.txt")).write_text("".join(x.partition("\t")[2] for x in lines))
        for seed in s.seeds:
            own = ["--threads", s.threads, "--seed", seed, "--quiet", "--output"]
            vectors = s.out("d.safetensors")
            s.run("train", s.out("d.txt"), "--tokenize", "words", "--model", "skipgram", *own,
                  vectors)  # fmt: skip
            for name, options in {
                "SCDV": [],
                "mean": ["--features", "weighted-average"],
                "mean, centered": ["--features", "weighted-average", "--center"],
                "tf-idf": ["--features", "tfidf"],
            }.items():
                model = s.out("scdv")
                _, seconds = s.run("scdv", "fit", files["train"], "--vectors", vectors,
                                   *options, *own, model)  # fmt: skip
                for part, file in files.items():
                    s.run("scdv", "transform", model, file, "--output", s.out(f"{part}.npz"),
                          "--labels", s.out(f"{part}.labels"))  # fmt: skip
                s.run("classify", "train", s.out("train.npz"), "--labels", s.out("train.labels"),
                      *own, s.out("on-rows"))  # fmt: skip
                found = s.json("classify", "test", s.out("on-rows"), s.out("test.npz"), "--labels",
                               s.out("test.labels"))  # fmt: skip
                setting = f"{folder.name}: {name}"
                yield setting, seed, "CPU seconds of fit", seconds, ""
                yield setting, seed, "micro F1", 100 * found["micro_f1"], "%"


FEW_LABELS: dict[str, tuple[list[str], list[str]]] = {
    "classify train": (["classify", "train"], []),
    "fuse fit": (["fuse", "fit"], ["--unlabeled"]),
    "distill": (["fuse", "fit", "--no-choose"], ["--unlabeled"]),
    "beside": (["fuse", "fit", "--no-choose", "--final", "beside"], ["--unlabeled"]),
    "paper": (["fuse", "fit", "--preset", "paper"], ["--unlabeled"]),
}


def few_labels(s: Setup) -> Iterator[Line]:
    """Classify from few labels a class; 10,000 other documents are unlabeled."""
    few, rest = s.out("few.tsv"), s.out("rest.tsv")
    for folder in _one_label(s):
        labels, lines = _labeled(folder / "train.tsv")
        for count, seed in product((10, 50), s.seeds):
            taken: Counter[str] = Counter()
            parts: dict[bool, list[str]] = {True: [], False: []}
            for i in np.random.default_rng(seed).permutation(len(lines)).tolist():
                taken[labels[i]] += 1
                parts[taken[labels[i]] <= count].append(lines[i])
            Path(few).write_text("".join(parts[True]), encoding="utf-8")
            others = (line[line.index("\t") :] for line in parts[False][:10_000])
            Path(rest).write_text("".join(others), encoding="utf-8")
            for name, (command, more) in FEW_LABELS.items():
                documents = [few] if name == "classify train" else [few, *more, rest]
                model = s.out(name.replace(" ", "-"))
                s.run(*command, *documents, "--seed", seed, "--quiet", "--output", model)
                found = s.json("classify", "test", model, str(folder / "test.tsv"))
                setting = f"{folder.name}; {len(taken)}; {count}"
                yield setting, seed, name, 100 * found["accuracy"], "%"


def cluster(s: Setup) -> Iterator[Line]:
    """One process and Dask workers, by tokens: CPU time, quality, bytes, scheduler's memory."""
    questions, pairs = s.file("questions-words.txt"), s.file("wordsim353.tsv")
    for size, text in _growing(s, (1, 6, 18)):
        for workers, seed in itertools.product((1, 2, 4), s.seeds):
            options = ["--cluster", f"local:{workers}"] if workers > 1 else ["--threads", 1]
            command, out = (
                ["train", text, *options, "--epochs", 1, "--seed", seed],
                s.out("c.safetensors"),
            )
            _, seconds, memory = _watched(s, *command, "--output", out)
            found = {
                "analogies, %": 100 * s.json("eval", "analogies", out, questions)["accuracy"],
                "WS-353": s.json("eval", "similarity", out, pairs)["spearman"],
                "CPU time, s": seconds,
            }
            if workers > 1:
                made = s.json("info", out)["cluster"]
                forecast = s.json(*command, "--dry-run")["bytes_a_round"] * made["rounds"]
                found |= {
                    "rounds": made["rounds"],
                    "forecast, GB": forecast / 1e9,
                    "sent, GB": made["bytes_sent"] / 1e9,
                    "program with scheduler at most, MB": memory / 1e6,
                }
            setting = f"{16.95 * size:.0f} million tokens, workers: {workers}"
            for metric, number in found.items():
                yield setting, seed, metric, number, ""


ON_CLUSTER: dict[str, list[str]] = {
    "one machine": ["--threads", "1"],
    "2 shards, no worker": ["--cluster", "local:0", "--shards", "2"],
    "2 shards, 2 workers": ["--cluster", "local:2", "--shards", "2"],
}


def cluster_quality(s: Setup) -> Iterator[Line]:
    """Vectors of a quarter of the text, and classifiers, by one machine and in two shards."""
    questions, train, test = map(s.file, ("questions-words.txt", "train.tsv", "test.tsv"))
    _, text = next(_growing(s, (1 / 4,)))
    out, model = s.out("c.safetensors"), s.out("model")
    for seed, (name, where) in product(s.seeds, ON_CLUSTER.items()):
        own = [*where, "--seed", seed, "--quiet"]
        s.run("train", text, *own, "--output", out)
        for found in _of_words(s, out, questions):
            yield f"word vectors; {name}", seed, *found
        for method in ("mixture", "iterate", "vote", "gradient"):
            options = ["--solver", "lbfgs"] if method == "gradient" else ["--solver", "sgd"]
            options += ["--distribute", method] * ("--cluster" in where)
            s.run("classify", "train", train, *options, *own, "--output", model)
            accuracy = 100 * s.json("classify", "test", model, test)["accuracy"]
            yield f"classifier; {name}", seed, method, accuracy, "%"


def cluster_time(s: Setup) -> Iterator[Line]:
    """Compare two workers of one thread with one process of one and of two threads, by tokens."""
    for size, text in _growing(s, (1, 3, 6)):
        for seed in s.seeds:
            seconds = {}
            for name, options in {
                "one thread": ["--threads", 1],
                "two threads": ["--threads", 2],
                "two workers": ["--cluster", "local:2"],
            }.items():
                start = time.perf_counter()
                s.run("train", text, *options, "--seed", seed, "--output", s.out("c.safetensors"))
                seconds[name] = time.perf_counter() - start
            for name in ("two threads", "two workers"):
                speed = seconds["one thread"] / seconds[name]
                yield f"{17 * size:,} million tokens", seed, f"{name}, speed", speed, ""


def _grown(text: str, rare: int = 40, once: int = 13) -> Iterator[memoryview]:
    """Yield copies of a text in which words that occur fewer than `rare` times are renamed.

    Each occurrence of a word that occurs fewer than `once` times (26 at most) has its own name.
    """
    lines = Path(text).read_bytes().splitlines()
    counts = Counter(word for line in lines for word in line.split())
    seen: Counter[bytes] = Counter()

    def name(word: bytes) -> bytes:
        if counts[word] >= rare:
            return word
        seen[word] += 1
        return word + b"~~" + (bytes([64 + seen[word]]) if counts[word] < once else b"")

    copy = bytearray(b"".join(b" ".join(map(name, line.split())) + b"\n" for line in lines))
    places = [found.start() for found in re.finditer(b"~~", copy)]
    for number in range(26 * 26):
        for place in places:
            copy[place : place + 2] = bytes((65 + number // 26, 65 + number % 26))
        yield memoryview(copy)


def _growing(s: Setup, sizes: Sequence[float]) -> Iterator[tuple[float, str]]:
    """Yield sizes, in copies of corpus.txt, and a file of that size; the file is reused."""
    parts, path, written = _grown(s.file("corpus.txt")), Path(s.out("grown.txt")), 0
    for size in sizes:
        with path.open("ab" if written else "wb") as file:
            while written < size:
                part = next(parts)
                if size < 1:
                    file.write(part[: bytes(part).index(b"\n", int(len(part) * size)) + 1])
                    break
                file.write(part)
                written += 1
        yield size, str(path)


def scale(s: Setup) -> Iterator[Line]:
    """Train on corpora with a growing vocabulary: CPU time, memory that is not page cache, disk."""
    for _, text in _growing(s, (1 / 17, 10 / 17, 1, 6, 18, 60)):
        yield from _measured(s, text)


def scale_vocabulary(s: Setup) -> Iterator[Line]:
    """Compare vocabularies of one text's copies by the CPU time of one thread."""
    options = ("--epochs", 1, "--threads", 1, "--sample", 1e-4, "--output", s.out("v.safetensors"))
    for rare in (0, 8, 100):
        parts, text = _grown(s.file("corpus.txt"), rare, 0), Path(s.out("six.txt"))
        text.write_bytes(b"".join(bytes(next(parts)) for _ in range(6)))
        for seed in s.seeds:
            _, seconds = s.run("train", text, *options, "--seed", seed, "--quiet")
            made = s.json("info", s.out("v.safetensors"))
            setting = f"fewer than {rare} times" if rare else "none"
            yield setting, seed, "vocabulary, thousand words", made["vocabulary"] / 1000, ""
            yield setting, seed, "CPU time a token", seconds / made["tokens"]["corpus"] * 1e9, "ns"


def _watched(s: Setup, *arguments: object) -> tuple[str, float, int]:
    """Run dcme-w2v; return its messages, CPU seconds, and memory that is not page cache."""
    command = [sys.executable, "-m", "dcme_w2v", *map(str, arguments)]
    start, private = os.times(), 0
    with Path(s.out("log")).open("w") as log, subprocess.Popen(command, stderr=log) as run:
        while run.poll() is None:
            with contextlib.suppress(OSError, TypeError):
                status = Path(f"/proc/{run.pid}/status").read_text()
                found = re.search(r"RssAnon:\s*(\d+)", status)
                private = max(private, 1024 * int(found[1]) if found else 0)
            time.sleep(0.005)  # peaks of small corpora are short
    end, messages = os.times(), Path(s.out("log")).read_text()
    if run.returncode:
        raise RuntimeError(messages[-500:])
    seconds = end.children_user + end.children_system - start.children_user - start.children_system
    return messages, seconds, private


def _measured(s: Setup, text: str) -> Iterator[Line]:
    out = s.out("scale.safetensors")
    messages, seconds, private = _watched(s, "train", text, "--epochs", 1, "--threads", s.threads,
                                          "--output", out)  # fmt: skip
    made = s.json("info", out)
    tokens, dropped = made["tokens"]["corpus"], made["tokens"]["out_of_vocabulary"]
    forecast = re.search(r"([\d,]+) MB of memory", messages)
    assert forecast
    for metric, number, unit in (
        ("vocabulary, thousand words", made["vocabulary"] / 1000, ""),
        ("CPU time a token", seconds / tokens * 1e9, "ns"),
        ("memory", private / 1e6, "MB"),
        ("memory forecast", float(forecast[1].replace(",", "")), "MB"),
        ("id cache on disk", (tokens - dropped) * 4 / 1e6, "MB"),
        ("text on disk", Path(text).stat().st_size / 1e6, "MB"),
    ):
        yield f"{tokens / 1e6:,.0f} million tokens", 1, metric, number, unit


ALL = {
    suite.__name__: suite
    for suite in (
        speed,
        blocks,
        words,
        likelihood,
        classify,
        label_sets,
        label_options,
        few_documents,
        many_labels,
        documents,
        few_labels,
        cluster,
        cluster_quality,
        cluster_time,
        sentences,
        encode,
        raw_text,
        scale,
        scale_vocabulary,
    )
}

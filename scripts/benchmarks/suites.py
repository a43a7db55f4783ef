"""The suites of run.py. Each runs commands on files in the data folder and yields numbers."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import random
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any
from unittest import mock

import numpy as np
from changes import by_procrustes, planted_halves
from passages import read

import dcme_w2v as dw
from dcme_w2v._core.models import KERNELS
from dcme_w2v.classify import fit
from dcme_w2v.classify.calibration import Calibration
from dcme_w2v.classify.model import load_classifier
from dcme_w2v.classify.options import ClassifyOptions, resolved

Line = tuple[str, int, str, float, str]  # setting, seed, metric, number, unit
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # limits for BLAS


@dataclass(frozen=True)
class Done:
    """The output and the costs of a finished command."""

    output: str
    messages: str
    seconds: float  # CPU time
    elapsed: float
    memory: int  # peak bytes, without page cache


@dataclass(frozen=True)
class Setup:
    """The folders for data and work, the seeds and the number of threads."""

    data: Path
    work: Path
    seeds: Sequence[int]
    threads: int

    def file(self, name: str) -> str:
        """Return the path of a file in the data folder or in gensim; fail if it is in neither."""
        found = importlib.util.find_spec("gensim")
        gensim = map(Path, (found and found.submodule_search_locations) or [])
        for folder in (self.data, *(one / "test" / "test_data" for one in gensim)):
            if (folder / name).exists():
                return str(folder / name)
        raise FileNotFoundError(f"{self.data / name} is missing")

    def out(self, name: str) -> str:
        """Return the path of a new file in the work folder."""
        return str(self.work / name)

    def python(self, *arguments: object, **environment: str) -> Done:
        """Run Python in a new process, and measure its costs."""
        variables = {**os.environ, "TOKENIZERS_PARALLELISM": "false", **environment}
        variables.pop("PYTHONDONTWRITEBYTECODE", None)  # pip compiles the modules it installs
        command = [sys.executable, *map(str, arguments)]
        paths, memory = [self.work / name for name in ("stdout", "stderr")], 0
        before, start = os.times(), time.perf_counter()
        with paths[0].open("w") as out, paths[1].open("w") as err:
            run = subprocess.Popen(command, stdout=out, stderr=err, env=variables)
        while run.poll() is None:
            with contextlib.suppress(OSError, TypeError):
                status = Path(f"/proc/{run.pid}/status").read_text(encoding="utf-8")
                found = re.search(r"RssAnon:\s*(\d+)", status)
                memory = max(memory, 1024 * int(found[1]) if found else 0)
            time.sleep(0.005)  # with small corpora, peaks are short
        end, elapsed = os.times(), time.perf_counter() - start
        output, messages = (path.read_text() for path in paths)
        if run.returncode:
            raise RuntimeError(f"{' '.join(command)}: {messages[-500:]}")
        seconds = sum(end[2:4]) - sum(before[2:4])
        return Done(output, messages, seconds, elapsed, memory)

    def run(self, line: str, *more: object, **environment: str) -> Done:
        """Run dcme-w2v with the arguments in a line and further arguments."""
        return self.python("-m", "dcme_w2v", *line.split(), *more, **environment)

    def json(self, line: str, *more: object) -> dict[str, Any]:
        """Run a command with --json and return what it prints."""
        found = json.loads(self.run(line, *more, "--json").output)
        return dict(found if isinstance(found, dict) else found[0])

    def sets(self, folder: str, one_label: bool = False) -> list[Path]:
        """Return the folders of labeled documents, with or without multi-label data sets."""
        found = sorted(Path(self.file(folder)).iterdir())
        return [one for one in found if not one_label or not _has_several(one)]


def _labeled(file: Path) -> tuple[list[str], list[str]]:
    """Return the labels and the lines in a file."""
    with file.open(encoding="utf-8", newline="\n") as opened:
        lines = list(opened)
    return [line.partition("\t")[0] for line in lines], lines


def _has_several(folder: Path) -> bool:
    return any("|" in label for label in _labeled(folder / "train.tsv")[0])


# ---- settings that are trained and measured with each seed ----

Measures = Iterator[tuple[str, float, str]]


def _analogies(s: Setup, out: str) -> Measures:
    found = s.json("eval analogies", out, s.file("questions-words.txt"))
    yield "analogies", 100 * found["accuracy"], "%"


def _similarity(s: Setup, out: str) -> Measures:
    yield "wordsim353", s.json("eval similarity", out, s.file("wordsim353.tsv"))["spearman"], ""
    yield "simlex999", s.json("eval similarity", out, s.file("simlex999.txt"))["spearman"], ""


def _heldout(s: Setup, out: str) -> Measures:
    made = s.json("info", out)
    for key in ("log_probability", "log_mean_probability"):
        yield key.replace("_", " "), made[f"heldout_{key}"], ""


def _sts(s: Setup, out: str) -> Measures:
    """Return Pearson's correlation: the mean over years, with files weighted by their pairs."""
    for pooling in ("static", "usif", "mean"):
        line = f"eval sts {out} {s.file('sts')} --tokenize words --strip-accents --json --pooling"
        years: dict[str, list[tuple[float, int]]] = {}
        for one in json.loads(s.run(line, pooling).output)["sets"]:
            year = Path(one["name"]).name.partition(".")[0]
            years.setdefault(year, []).append((one["pearson"], one["pairs"]))
        means = {
            year: sum(r * n for r, n in sets) / sum(n for _, n in sets)
            for year, sets in years.items()
        }
        for year, mean in {**means, "mean": sum(means.values()) / len(means)}.items():
            yield f"{pooling}, {year}", 100 * mean, ""


def _tested(s: Setup, model: str, test: object, *more: object) -> Measures:
    found = s.json("classify test", model, test, *more)
    names: tuple[str, ...] = (
        "accuracy",
        "precision_at_1",
        "precision_at_5",
        "r_precision_at_5",
        "micro_f1",
    )
    names += ("macro_recall",) * ("class_weight" in load_classifier(model).record)
    for name in filter(found.__contains__, names):
        yield name.replace("_f1", " F1"), 100 * found[name], "%"
    if "log_likelihood" in found:
        yield "log-likelihood", found["log_likelihood"], ""


GENSIM = """
import json, sys
from gensim.models import Word2Vec
text, out, settings, tables = sys.argv[1:]
model = Word2Vec(corpus_file=text, min_count=5, **json.loads(settings))
if tables == "both":
    model.wv.vectors += model.syn1neg
model.wv.save_word2vec_format(out, binary=True)
"""


def _gensim(s: Setup, text: str, out: str, seed: int, tables: str = "one", **settings: Any) -> Done:
    """Train vectors on a text with gensim, for five epochs."""
    given = json.dumps({"seed": seed, "workers": s.threads, "epochs": 5, **settings})
    return s.python("-c", GENSIM, text, out, given, tables)


WORDS = {
    "cbow, defaults": "",
    "cbow ns": "--preset word2vec",
    "cbow nce": "--objective nce",
    "cbow dcme": "--objective dcme",
    "cbow hs": "--objective hs",
    "skipgram ns": "--model skipgram",
    "skipgram nce": "--model skipgram --objective nce",
}
RATED = {
    "defaults, 2 epochs": ("--epochs 2", 0.075),
    "defaults, 5 epochs": ("", 0.075),
    "300 dimensions, 2 epochs": ("--dim 300 --epochs 2", 0.075),
    "300 dimensions, 5 epochs": ("--dim 300", 0.075),
    "window 10, 20 samples": ("--window 10 --negative 20", 0.075),
    "nce": ("--objective nce", 0.2),
    "preset similarity": ("--preset similarity", 0.2),
    "hs": ("--objective hs", 0.05),
    "skipgram ns": ("--model skipgram", 0.05),
}
RATES = {
    f"{name}, rates {rates}": f"{options} --rates {rates}" + f" --lr {lr}" * (rates == "equal")
    for (name, (options, lr)), rates in product(RATED.items(), ("count", "equal"))
}
LIKELIHOODS = {name: f"--objective {name}" for name in ("ns", "nce", "dcme")}
LIKELIHOODS["nce, rates equal"] = "--objective nce --rates equal"
LIKELIHOODS["dcme, no prior"] = "--objective dcme --prior 0"
LIKELIHOODS["preset likelihood"] = "--preset likelihood"
SENTENCES = {
    "train's defaults": "",
    "--window 10": "--window 10",
    "--window 10 --epochs 10": "--window 10 --epochs 10",
}
TRAINED: dict[str, tuple[dict[str, str], list[Callable[[Setup, str], Measures]]]] = {
    "words": (WORDS, [_analogies, _similarity]),
    "rates": (RATES, [_analogies, _similarity]),
    "likelihood": (
        {name: f"{options} --holdout 0.02" for name, options in LIKELIHOODS.items()},
        [_heldout],
    ),
    "sentences": (SENTENCES, [_sts]),
}


def trained(s: Setup, suite: str) -> Iterator[Line]:
    """Train word vectors with each setting in a suite, and measure them."""
    settings, measures = TRAINED[suite]
    text, out = s.file("corpus.txt"), s.out("vectors.safetensors")
    for (name, options), seed in product(settings.items(), s.seeds):
        line = f"train {text} {options} --threads {s.threads} --seed {seed} --quiet --output"
        yield name, seed, "CPU seconds", s.run(line, out).seconds, ""
        for measure in measures:
            yield from ((name, seed, *one) for one in measure(s, out))


OURS = ("--epochs 1", "--epochs 2", "--epochs 3", "", "--epochs 2 --rates equal")
GENSIMS: dict[str, dict[str, Any]] = {
    "gensim, alpha .05": {"alpha": 0.05},
    "gensim, our settings, both its tables": {
        "alpha": 0.06,
        "negative": 10,
        "ns_exponent": 0.5,
        "sample": 1e-4,
        "tables": "both",
    },
}


BY_TIME: dict[str, tuple[Sequence[str], dict[str, dict[str, Any]]]] = {
    "quality_time": (OURS, GENSIMS),
    "skipgram": (("--model skipgram",), {"gensim, skip-gram": {"alpha": 0.025, "sg": 1}}),
}


def by_time(s: Setup, suite: str) -> Iterator[Line]:
    """Compare quality and time: this program with few epochs, and gensim with five."""
    ours, others = BY_TIME[suite]
    text, out = s.file("corpus.txt"), s.out("v.bin")
    line = f"train {text} --threads {s.threads} --quiet --output {out}"
    programs = {
        **{
            f"dcme-w2v {one or '(5 epochs)'}": partial(s.run, f"{line} {one} --seed")
            for one in ours
        },
        **{name: partial(_gensim, s, text, out, **settings) for name, settings in others.items()},
    }
    for seed, (name, train) in product(s.seeds, programs.items()):
        done = train(seed)
        yield name, seed, f"CPU seconds, --threads {s.threads}", done.seconds, ""
        yield name, seed, f"seconds, --threads {s.threads}", done.elapsed, ""
        for measure in (_analogies, _similarity):
            yield from ((name, seed, *one) for one in measure(s, out))


AGREEING = ((1, ""), (1, "--epochs 20 --lr 0.025"), (4, ""))


def agreement(s: Setup) -> Iterator[Line]:
    """Yield the share of the ten nearest neighbors that vectors from two seeds have in common."""
    text, outs = Path(s.out("tokens.txt")), [s.out("a.safetensors"), s.out("b.safetensors")]
    for seed, (millions, options) in product(s.seeds, AGREEING):
        with Path(s.file("corpus.txt")).open(encoding="utf-8") as corpus:
            text.write_text(corpus.read(6_000_000 * millions), encoding="utf-8")
        near: list[list[set[str]]] = []
        for out, other in zip(outs, (seed, seed + 100), strict=True):
            s.run(f"train {text} {options} --threads {s.threads} --seed {other} --quiet -o {out}")
            v = dw.Vectors.load(out)
            answers = v.most_similar_batch(list(v), topn=10)
            near.append([{one.word for one in answer} for answer in answers])
        shared = [10 * len(one & other) for one, other in zip(*near, strict=True)]
        setting = ", ".join([f"{millions} million tokens", *([f"`{options}`"] if options else [])])
        yield setting, seed, "3,000 most frequent words", fmean(shared[:3000]), "%"
        yield setting, seed, "all words", fmean(shared), "%"


def divergence(s: Setup) -> Iterator[Line]:
    """Train at the default rates, with settings whose steps add up."""
    wide = {"window_mode": "fixed", "epochs": 1}
    settings: list[dict[str, Any]] = [
        {"objective": objective, **drawn, "window": window, "sample": sample, "dim": dim, **wide}
        for window, sample, dim in product((20, 2), (0, None), (50, 300))
        for objective in ("ns", "nce", "hs", "dcme")
        for drawn in ([{"negative": n} for n in (5, 30)] if objective in ("ns", "nce") else [{}])
    ]
    settings += [{"objective": "dcme", **options} for options in LONG_DCME]
    for options, seed in product(settings, s.seeds):
        given = {key: n for key, n in options.items() if n is not None and wide.get(key) != n}
        objective = given.pop("objective")
        setting = ", ".join([objective, *(f"--{key} {n}" for key, n in given.items())])
        losses: list[float] = []

        def watch(now: Any, losses: list[float] = losses) -> None:
            losses.extend([now.loss] if now.loss else [])

        found = None
        with contextlib.suppress(FloatingPointError):
            text = s.file("corpus.txt")
            found = dw.train(text, threads=s.threads, progress=watch, seed=seed, **options)
        yield setting, seed, "diverged", float(found is None), ""
        if found is not None:
            yield setting, seed, "rate", found.manifest["options"]["lr"], ""
            yield setting, seed, "loss, end / lowest", losses[-1] / min(losses), ""


# Settings in which the steps of dcme add up for long or are not averaged over many words.
LONG_DCME: list[dict[str, Any]] = [
    {"dim": 50, "epochs": 20},
    {"dim": 300, "epochs": 5},
    {"dim": 50, "sample": 0, "epochs": 5},
    {"dim": 50, "sample": 0.002, "epochs": 5, "window": 2},
    {"dim": 50, "model": "skipgram", "epochs": 5, "window": 2},
]


def changes(s: Setup) -> Iterator[Line]:
    """Plant changes in the second of two texts with 4 million tokens each, and find them."""
    texts = {"": "corpus.txt", "laws, ": "laws.txt"}
    for (text, path), seed, alternate in product(texts.items(), s.seeds, (True, False)):
        first, second, planted = planted_halves(s.file(path), 4_000_000, alternate, seed)
        a, b = (
            [dw.train(lines, threads=s.threads, seed=number) for number in (1, 2, 3)]
            for lines in (first, second)
        )
        for name, words in {
            "Procrustes, all words": by_procrustes(a[0], b[0], 1),
            "Procrustes, from 100 occurrences": by_procrustes(a[0], b[0], 100),
            "compare, one file each": [one.word for one in dw.compare(a[0], b[0])],
            "compare, three seeds each": [one.word for one in dw.compare(a, b)],
        }.items():
            setting = f"{text}{'alternate' if alternate else 'adjacent'}: {name}"
            yield setting, seed, "precision at 20", 5.0 * len(planted & {*words}), "%"


OWN = "--threads 1 --quiet --seed"
SINGLE = "--ngrams 1 --lead-ngrams 1"
PAIRS = "--ngrams 1 --lead-ngrams 2"
CLASSIFIED: dict[str, dict[str, str]] = {
    "label_sets": {
        "defaults": "",
        "three trees": "--objective tree",
        "8 MB": "--max-bytes 8000000",
    },
    "label_options": {
        "defaults": "",
        "single words": SINGLE,
        "pairs of the first 80": PAIRS,
        "all pairs": "--ngrams 2",
        "pairs and n-grams of characters": f"{PAIRS} --subwords 1-4",
        "softmax": "--loss softmax",
    },
}

ON_SAME_ROWS = """
import sys, time
import numpy as np
from sklearn.svm import LinearSVC
from dcme_w2v.classify.model import load_classifier
model, *files = sys.argv[1:]
model = load_classifier(model)
rows, labels = [], []
for file in files:
    with open(file, newline="\\n", encoding="utf-8") as lines:
        pairs = [line.rstrip("\\n").split("\\t", 1) for line in lines]
    rows.append(model.rows([text.encode() for _, text in pairs]))
    labels.append(np.array([label for label, _ in pairs]))
start = time.process_time()
fitted = LinearSVC().fit(rows[0], labels[0])
seconds = time.process_time() - start
print((fitted.predict(rows[1]) == labels[1]).mean(), seconds)
"""

SCRIPT = """
import sys
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.svm import LinearSVC
sets = []
for file in sys.argv[1:]:
    with open(file, newline="\\n", encoding="utf-8") as lines:
        sets.append(list(zip(*(line.rstrip("\\n").split("\\t", 1) for line in lines))))
words, classifier = TfidfVectorizer(sublinear_tf=True), LinearSVC()
classifier.fit(words.fit_transform(sets[0][1]), sets[0][0])
for labels, texts in sets[1:]:
    print(classifier.score(words.transform(texts), labels))
"""

RECIPE = """
import sys
import numpy as np
from scipy.sparse import hstack
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import cross_val_score
from sklearn.svm import LinearSVC
texts, labels = [], []
for file in sys.argv[1:]:
    with open(file, newline="\\n", encoding="utf-8") as lines:
        pairs = [line.rstrip("\\n").split("\\t", 1) for line in lines]
    texts.append([text for _, text in pairs])
    labels.append(np.array([label for label, _ in pairs]))
found = []
for options in ({"ngram_range": (1, 2)}, {"analyzer": "char_wb", "ngram_range": (2, 5)}):
    terms = TfidfVectorizer(sublinear_tf=True, **options)
    found.append((terms.fit_transform(texts[0]), terms.transform(texts[1])))
sets = [found[0], [hstack(parts, format="csr") for parts in zip(*found)]]
scores = {
    (i, c): cross_val_score(LinearSVC(C=c), sets[i][0], labels[0], cv=3).mean()
    for i in (0, 1) for c in (0.3, 1, 3)
}
i, c = max(scores, key=scores.get)
right = LinearSVC(C=c).fit(sets[i][0], labels[0]).predict(sets[i][1]) == labels[1]
print(right.mean())
"""


def classified(s: Setup, suite: str) -> Iterator[Line]:
    """Train classifiers with each setting on each data set, and LinearSVC (C = 1) on the rows.

    Trees and small models are measured only on data sets with several labels.
    """
    model = s.out("model")
    for folder in s.sets("sets"):
        several, files = _has_several(folder), [folder / f"{one}.tsv" for one in ("train", "test")]
        for seed, (name, options) in product(s.seeds, CLASSIFIED[suite].items()):
            if name in ("three trees", "8 MB") and not several:
                continue
            line = f"classify train {options} --threads {s.threads} --seed {seed} --quiet --output"
            done, setting = s.run(line, model, files[0]), f"{folder.name}: {name}"
            yield setting, seed, "CPU seconds", done.seconds, ""
            yield setting, seed, "on disk", Path(model).stat().st_size / 1e6, "MB"
            yield from ((setting, seed, *one) for one in _tested(s, model, files[1]))
            if suite == "label_sets" and not several:
                peer = s.python("-c", ON_SAME_ROWS, model, *files)
                accuracy, seconds = map(float, peer.output.split())
                setting = f"{folder.name}: LinearSVC"
                yield setting, seed, "accuracy", 100 * accuracy, "%"
                yield setting, seed, "CPU seconds of fit alone", seconds, ""


def recipe(s: Setup) -> Iterator[Line]:
    """Compare the defaults with an expert's recipe on 1,000 documents drawn by the seed.

    The recipe is LinearSVC on words, pairs and character n-grams, chosen by cross-validation. Both
    programs read, train and label the test documents.
    """
    few, test, model = Path(s.out("few.tsv")), Path(s.out("test.tsv")), s.out("m")
    for folder, seed in product(s.sets("sets", True), s.seeds):
        lines = _labeled(folder / "train.tsv")[1]
        random.Random(seed).shuffle(lines)
        few.write_text("".join(lines[:1000]), encoding="utf-8")
        known, (labels, lines) = {*_labeled(few)[0]}, _labeled(folder / "test.tsv")
        pairs = zip(labels, lines, strict=True)
        test.write_text("".join(line for label, line in pairs if label in known), "utf-8")
        line = f"classify train --threads 1 --seed {seed} --output {model}"
        trained = s.run(line, few, **ONE_THREAD)
        tested = s.run("classify test --threads 1 --json", model, test, **ONE_THREAD)
        peer = s.python("-c", RECIPE, few, test, **ONE_THREAD)
        accuracy = json.loads(tested.output)["accuracy"]
        yield f"{folder.name}: defaults", seed, "accuracy", 100 * accuracy, "%"
        seconds = trained.seconds + tested.seconds
        yield f"{folder.name}: defaults", seed, "CPU seconds", seconds, ""
        yield f"{folder.name}: recipe", seed, "accuracy", 100 * float(peer.output), "%"
        yield f"{folder.name}: recipe", seed, "CPU seconds", peer.seconds, ""


def script(s: Setup) -> Iterator[Line]:
    """Compare training with a script that fits LinearSVC to the tf-idf of words.

    The third setting has the features and the C of the script. The times include start-up, but not
    the test documents.
    """
    model, same = s.out("m"), "--subwords none --lead-ngrams 1 --loss hinge --solver dual"
    for folder, seed in product(s.sets("sets", True), s.seeds):
        files = [folder / f"{one}.tsv" for one in ("train", "test")]
        l2 = 0.5 / len(_labeled(files[0])[0])
        for name, options in {
            "defaults": "",
            "the script's features and C": f"{same} --epochs 6 --bias 1 --l2 {l2}",
        }.items():
            line = f"classify train {options} --threads 1 --seed {seed} --output {model}"
            done = s.run(line, files[0], **ONE_THREAD)
            accuracy = s.json("classify test", model, files[1])["accuracy"]
            yield f"{folder.name}: {name}", seed, "accuracy", 100 * accuracy, "%"
            yield f"{folder.name}: {name}", seed, "CPU seconds", done.seconds, ""
        done, tested = (
            s.python("-c", SCRIPT, files[0], **ONE_THREAD),
            s.python("-c", SCRIPT, *files),
        )
        yield f"{folder.name}: script", seed, "accuracy", 100 * float(tested.output), "%"
        yield f"{folder.name}: script", seed, "CPU seconds", done.seconds, ""


BALANCED = """
import sys
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import balanced_accuracy_score
from sklearn.svm import LinearSVC
import dcme_w2v as dw
model, *files = sys.argv[1:]
labels, texts = [], []
for file in files:
    with open(file, newline="\\n", encoding="utf-8") as lines:
        pairs = [line.rstrip("\\n").split("\\t", 1) for line in lines]
    pairs = [(a, b) for a, b in pairs if not labels or a in labels[0]]
    labels.append([a for a, _ in pairs])
    texts.append([b for _, b in pairs])
terms = TfidfVectorizer(sublinear_tf=True)
peer = LinearSVC(class_weight="balanced").fit(terms.fit_transform(texts[0]), labels[0])
for found in dw.load(model).predict(texts[1]), peer.predict(terms.transform(texts[1])):
    print(balanced_accuracy_score(labels[1], found))
"""

# The data, a command, and other values of the constants that control the choice of settings.
LEARN = "classify train {learned}"
STEERED = (
    ("few", LEARN, "FEW = 0", "C_OF_FEW = 3", "C_OF_FEW = 30", "LONG = 5", "LONG = 20",
     "RATE_OF_HINGE = 0.25", "RATE_OF_HINGE = 1", "LEAD = 40", "LEAD = 160",
     "MANY_FEATURES = 5_000", "KEPT_BYTES = 0", "FEW_CLASSES = 10", "CLEARLY = 0", "CLEARLY = 2",
     "IDLE_IMPACT = 0", "IDLE_IMPACT = 0.02"),
    ("few", f"{LEARN} --loss softmax", "RATE = 4", "RATE = 16"),
    ("few", f"{LEARN} --solver lbfgs", "PENALTIES = (1e-6, 1e-3)"),
    ("few", "fuse fit {learned} --unlabeled {others}", "SEPARABLE = 0"),
    ("short", LEARN, "FOLDS = 3", "FOLDS = 10", "SHORT_TEXT = 0", "SHORT_TEXT = 64"),
    ("wrong", LEARN, "LOWER = 0.1", "LOWER = 0.5"),
    ("titles", LEARN, "CLEARLY = 0", "CLEARLY = 1e9"),
    ("several", LEARN, "MANY_NUMBERS = 0", "TRIAL_DOCUMENTS = 500", "CERTAIN = 100",
     "TABLE_CLASSES = 50",
     "BALANCES = ()", "BALANCES = (0.4,)"),
    ("rare", LEARN, "FEW_CLASSES = 2000", "TABLE_CLASSES = 500", "TRIAL_DOCUMENTS = 2_000"),
    ("rare", f"{LEARN} --loss softmax", "FEW_CLASSES = 2000"),
    ("newsgroups", LEARN, "IDLE_IMPACT = 0.002", "IDLE_IMPACT = 0.02", "TRIAL_EPOCHS = 0.3",
     "TRIAL_EPOCHS = 1"),
    ("skewed", LEARN, "IDLE_IMPACT = 0.002", "IDLE_IMPACT = 0.02", "TRIAL_EPOCHS = 0.3",
     "TRIAL_EPOCHS = 1"),
    ("newsgroups", f"{LEARN} --class-weight balanced", "UNEQUAL = 1"),
    ("skewed", f"{LEARN} --class-weight balanced", "LOW_STRENGTHS = ()",
     "LOW_STRENGTHS = (0.01,)"),
    ("minority", f"{LEARN} --class-weight balanced", "LOW_STRENGTHS = ()",
     "LOW_STRENGTHS = (0.01,)", "UNEQUAL = 50"),
    ("words", "train {text} --cluster local:0 --shards 2", "RAISED = 1", "RAISED = 2",
     "ROUNDS = 10", "ROUNDS = 40", "TOKENS_A_ROUND = 100_000"),
)  # fmt: skip
WITH_CONSTANTS = """
import sys
from dcme_w2v.classify import constants
exec(sys.argv.pop(1), vars(constants))
from dcme_w2v.__main__ import main
main()
"""
NUMBERS_WITH_CONSTANTS = """
import sys
from dcme_w2v.classify import constants
exec(sys.argv.pop(1), vars(constants))
from sklearn.datasets import load_wine
from sklearn.model_selection import cross_val_score
from dcme_w2v import MaxentClassifier
print(cross_val_score(MaxentClassifier(threads=1), *load_wine(return_X_y=True)).mean())
"""


def constants(s: Setup) -> Iterator[Line]:
    """Train on a quarter of the training documents with other constants, and test on the others."""
    files = {part: Path(s.out(f"{part}.tsv")) for part in ("learned", "measured", "others")}
    for (name, line, *others), seed in product(STEERED, s.seeds):
        if name == "words":
            files["text"] = Path(s.file("constants/words/train.txt"))
        else:
            _, lines = _labeled(Path(s.file(f"constants/{name}/train.tsv")))
            order, count = np.random.default_rng(seed).permutation(len(lines)), len(lines) // 4
            parts = [[lines[i] for i in some] for some in (order[:count], order[count:])]
            parts.append([one[one.index("\t") :] for one in parts[1]])
            for path, part in zip(files.values(), parts, strict=False):
                path.write_text("".join(part), encoding="utf-8")
        for other in ("", *others):
            Path(out := s.out("model.safetensors")).unlink(missing_ok=True)
            made = f"{line.format(**files)} --threads 1 --seed {seed} --quiet --output".split()
            done = s.python("-c", WITH_CONSTANTS, other, *made, out)
            setting = f"{name}: {line}; {other or 'as they are'}"
            yield setting, seed, "CPU seconds", done.seconds, ""
            yield setting, seed, "on disk", Path(out).stat().st_size / 1e6, "MB"
            found = (
                (*_analogies(s, out), *_similarity(s, out))
                if name == "words"
                else _tested(s, out, files["measured"])
            )
            yield from ((setting, seed, *one) for one in found)
    for other in ("", "SMALL = (0, 0)"):
        accuracy = s.python("-c", NUMBERS_WITH_CONSTANTS, other).output
        yield f"wine; {other or 'as they are'}", 1, "accuracy", 100 * float(accuracy), "%"


def sampled_losses(s: Setup) -> Iterator[Line]:
    """Divide the final losses of objectives that draw samples by that of an untrained softmax.

    The limit `ABOVE_WITH_SAMPLES` must separate learning rates that learn from those that diverge.
    """
    grid = product(("few", "short"), (5, None), ("nce", "ns"), (1, 4, 16, 64), s.seeds)
    check_loss = fit._check_loss
    for name, count, objective, factor, seed in grid:
        labels, lines = _labeled(Path(s.file(f"constants/{name}/train.tsv")))
        order = np.random.default_rng(seed).permutation(len(lines))
        learned, measured = np.split(order, [count or len(order) // 4])
        rate = resolved(ClassifyOptions(objective=objective), len({*labels})).lr or 0.0
        given = {"objective": objective, "lr": factor * rate, "threads": 1, "random_state": seed}
        texts, own = [lines[i].partition("\t")[2] for i in learned], [labels[i] for i in learned]
        setting = f"{name}, {len(learned)} documents, {objective}, {factor} times the default rate"
        messages: list[str] = []

        def check(*trained: Any, messages: list[str] = messages) -> None:
            try:
                check_loss(*trained)
            except FloatingPointError as error:
                messages.append(str(error))

        with (
            mock.patch.object(fit, "ABOVE_WITH_SAMPLES", 0.0),
            mock.patch.object(fit, "_check_loss", check),
        ):
            model = dw.TextClassifier(**given).fit(texts, own)
        found = re.search("loss is (.*), compared with (.*) for an", messages[0])
        assert found
        yield setting, seed, "loss / untrained loss", float(found[1]) / float(found[2]), ""
        asked, wanted = ([some[i] for i in measured] for some in (lines, labels))
        right = model.score([line.partition("\t")[2] for line in asked], wanted)
        yield setting, seed, "accuracy", 100 * right, "%"


def balanced(s: Setup) -> Iterator[Line]:
    """Compare balanced accuracy with LinearSVC on tf-idf, both with balanced class weights.

    The seed draws nine tenths of the training documents.
    """
    few, model = Path(s.out("few.tsv")), s.out("m")
    for folder, seed in product(s.sets("skewed"), s.seeds):
        lines = _labeled(folder / "train.tsv")[1]
        few.write_text("".join(random.Random(seed).sample(lines, len(lines) * 9 // 10)), "utf-8")
        line = f"classify train --class-weight balanced --threads 1 --seed {seed} --quiet --output"
        s.run(line, model, few)
        scores = s.python("-c", BALANCED, model, few, folder / "test.tsv").output.split()
        for name, score in zip(("defaults", "LinearSVC"), scores, strict=True):
            yield f"{folder.name}: {name}", seed, "balanced accuracy", 100 * float(score), "%"


def calibrated(s: Setup) -> Iterator[Line]:
    """Measure the probabilities of labels if documents have several.

    Test documents may be newer than training documents, hence one random split of all documents.
    Sets of more than 20,000 documents are trained once, on the given documents only.
    """
    files, model = [Path(s.out(f"{part}.tsv")) for part in ("train", "test")], s.out("m")
    for folder in filter(_has_several, s.sets("sets")):
        given = [_labeled(folder / file.name)[1] for file in files]
        once, size = len(given[0]) > 20_000, len(given[0])
        for seed in s.seeds[:1] if once else s.seeds:
            splits, both = {folder.name: given}, given[0] + given[1]
            random.Random(seed).shuffle(both)
            if not once and seed == s.seeds[0]:
                splits[f"{folder.name}, random split"] = [both[:size], both[size:]]
            for name, parts in splits.items():
                for file, lines in zip(files, parts, strict=True):
                    file.write_text("".join(lines), "utf-8")
                s.run(f"classify train --threads 1 --seed {seed} --quiet --output", model, files[0])
                found = s.json("classify test --calibration", model, files[1])
                error = found["expected_calibration_error"]
                yield name, seed, "expected calibration error", error, ""
                yield name, seed, "micro F1", 100 * found["micro_f1"], "%"
                for metric, loss in _log_losses(model, *_labeled(files[1])).items():
                    yield name, seed, metric, loss, ""


def _log_losses(path: str, labels: list[str], lines: list[str]) -> dict[str, float]:
    """Return the log-loss of all labels per document, with and without calibration."""
    found, model = {}, load_classifier(path)
    place = {name: i for i, name in enumerate(model.classes)}
    for metric, calibration in (
        ("log-loss", model.calibration), ("log-loss without calibration", Calibration("logistic"))
    ):  # fmt: skip
        one, losses = replace(model, calibration=calibration), 0.0
        for begin in range(0, len(lines), 500):
            some = slice(begin, begin + 500)
            texts = [line.partition("\t")[2] for line in lines[some]]
            p = np.exp(one.predict_log_proba(texts))
            for row, own in zip(p, labels[some], strict=True):
                known = [place[label] for label in own.split("|") if label in place]
                row[known] = 1 - row[known]
            losses -= float(np.log1p(-np.minimum(p, 1 - 1e-12)).sum())
        found[metric] = losses / len(lines)
    return found


def few_tokens(s: Setup) -> Iterator[Line]:
    """Train on few tokens of the start or the end of the corpus; `FEW_TOKENS` is the default."""
    lines = Path(s.file("corpus.txt")).read_text(encoding="utf-8").splitlines(keepends=True)
    text, out = Path(s.out("few.txt")), s.out("v.bin")
    for part, size, seed in product(("first", "last"), (500, 1000, 2000), s.seeds):
        kept, tokens = list[str](), 0
        for line in lines if part == "first" else reversed(lines):
            if tokens >= 1000 * size:
                break
            kept.append(line)
            tokens += len(line.split())
        text.write_text("".join(kept), encoding="utf-8")
        s.run(f"train {text} --threads {s.threads} --seed {seed} --quiet --output {out}")
        for measure in _similarity(s, out):
            yield f"{part} {size:,} thousand tokens", seed, *measure


BOTH_SIZES = """
import sys, time
from dcme_w2v.classify.options import ClassifyOptions, FeatureOptions
from dcme_w2v.classify import train
from dcme_w2v.classify.small import compressed
docs, seed, small, whole = sys.argv[1:]

def both(model, *others):
    model.save(whole)
    start = time.process_time()
    found = compressed(model, *others)
    print(time.process_time() - start)
    return found

options = ClassifyOptions(threads=1, seed=int(seed))
train.compressed = both
train.train(train.TrainJob((docs,), output=small), FeatureOptions(), options)
"""


def small_models(s: Setup) -> Iterator[Line]:
    """Compare the model that training writes with a model that keeps all weights."""
    outs = {"as written": s.out("small"), "all weights": s.out("whole")}
    for folder, seed in product(s.sets("sets"), s.seeds):
        done = s.python("-c", BOTH_SIZES, folder / "train.tsv", seed, *outs.values())
        yield f"{folder.name}; as written", seed, "CPU seconds more", float(done.output), ""
        for name, out in outs.items():
            setting = f"{folder.name}; {name}"
            yield setting, seed, "on disk", Path(out).stat().st_size / 1e6, "MB"
            yield from ((setting, seed, *one) for one in _tested(s, out, folder / "test.tsv"))


# ---- speed, relative to another program or setting ----


def speed(s: Setup) -> Iterator[Line]:
    """Compare the CPU seconds of one thread with gensim's corpus_file, for each kernel.

    The text is the first 18 MB, three million tokens. If PATH has word2vec.c, it is compared, too.
    """
    text, out = s.out("first.txt"), s.out("v.bin")
    with Path(s.file("corpus.txt")).open(encoding="utf-8") as corpus:
        Path(text).write_text(corpus.read(18_000_000), encoding="utf-8")
    for (model, *numbers), seed in product(
        [("cbow", 100, 5, 5), ("cbow", 100, 10, 20), ("cbow", 300, 5, 5), ("skipgram", 100, 5, 5)],
        s.seeds,
    ):
        line = (
            f"train {text} --preset word2vec --threads 1 --seed {seed} --quiet --output {out} "
            "--model {} --dim {} --window {} --negative {}".format(model, *numbers)
        )
        names, is_skipgram = ("vector_size", "window", "negative"), int(model == "skipgram")
        settings: dict[str, Any] = dict(zip(names, numbers, strict=True), sg=is_skipgram, workers=1)
        base = _gensim(s, text, out, seed, **settings).seconds
        for kernels in KERNELS[:-1]:
            seconds = s.run(line, DCME_W2V_KERNELS=kernels).seconds
            name = f"{model} {'/'.join(map(str, numbers))}"
            yield name, seed, f"ours / gensim, {kernels}", base / seconds, ""
            if shutil.which("word2vec") and kernels == KERNELS[0] and name == "cbow 100/5/5":
                run = "import os, sys; os.execvp('word2vec', sys.argv)"
                files = ("-train", text, "-output", out, "-binary", 1, "-threads", 1)
                theirs = s.python("-c", run, *files).seconds
                yield name, seed, f"ours / word2vec.c, {kernels}", theirs / seconds, ""


SKLEARN = """
import sys
import joblib
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC
model, source, out = sys.argv[1:]
lines = open(source, encoding="utf-8").read().splitlines()
if out == "-":
    labels, texts = zip(*(line.split("\\t", 1) for line in lines))
    fitted = make_pipeline(TfidfVectorizer(sublinear_tf=True), LinearSVC()).fit(texts, labels)
    joblib.dump(fitted, model)
else:
    found = joblib.load(model).predict(lines)
    open(out, "w", encoding="utf-8").write("\\n".join(found))
"""
MODEL2VEC = """
import sys
import numpy as np
from model2vec import StaticModel
folder, text, out = sys.argv[1:]
lines = open(text, encoding="utf-8").read().splitlines()
np.save(out, StaticModel.from_pretrained(folder).encode(lines, use_multiprocessing=False))
"""
NEIGHBORS = """
import sys
from gensim.models import KeyedVectors
vectors = KeyedVectors.load_word2vec_format(sys.argv[1], binary=True)
for word in open(sys.argv[2], encoding="utf-8").read().split():
    print(word, *vectors.most_similar(word, topn=10))
"""


def many_texts(s: Setup) -> Iterator[Line]:
    """Time whole programs: label 100,000 short texts (150 classes), find neighbors of 10,000 words.

    A text is the first words of a paragraph.
    """
    labels, lines = _labeled(Path(s.file("sets/wikipara/train.tsv")))
    short = [" ".join(line.partition("\t")[2].split()[:10]) for line in lines]
    known = {name for name, _ in Counter(labels).most_common(150)}
    pairs = [f"{a}\t{b}\n" for a, b in zip(labels, short, strict=True) if a in known]
    train, asked, words = (Path(s.out(name)) for name in ("train.tsv", "texts.txt", "words.txt"))
    train.write_text("".join(random.Random(1).sample(pairs, 15_000)), "utf-8")
    asked.write_text("\n".join([*short[:100_000], ""]), "utf-8")
    vectors, model, peer, folder = (s.out(name) for name in ("v.bin", "m", "peer", "folder"))
    s.run(f"train --epochs 1 --quiet --output {vectors}", s.file("corpus.txt"))
    frequent = list(dw.load(vectors).words[:10_000])
    words.write_text("\n".join(frequent), "utf-8")
    s.run(f"classify train {SINGLE} --subwords none {OWN} 1 --output {model}", train)
    s.python("-c", SKLEARN, peer, train, "-")
    line = f"classify predict {model} {asked} --threads 1 --output {s.out('labels')}"
    s.run(f"convert --to sentence-transformers --tokenize words {vectors} {folder}")
    encode = f"encode {folder} {asked} --threads 1 --output {s.out('rows.npy')}"
    for seed in s.seeds:
        for name, count, done in (
            ("classify predict, single words", 100_000, s.run(line)),
            ("scikit-learn, TF-IDF and LinearSVC", 100_000,
             s.python("-c", SKLEARN, peer, asked, s.out("theirs"), **ONE_THREAD)),
            ("encode", 100_000, s.run(encode)),
            ("model2vec, the same folder", 100_000,
             s.python("-c", MODEL2VEC, folder, asked, s.out("m.npy"), **ONE_THREAD)),
            ("neighbors", 10_000, s.run(f"neighbors {vectors}", *frequent, **ONE_THREAD)),
            ("gensim, most_similar", 10_000,
             s.python("-c", NEIGHBORS, vectors, words, **ONE_THREAD)),
        ):  # fmt: skip
            yield name, seed, "answers per CPU second", count / done.seconds, ""


# ---- few labels ----


PUBLIC = ("20 Newsgroups", "50 articles", "laws, 80 first subjects")
FEW_LABELS = {
    "classify train": "classify train",
    "fuse fit": "fuse fit",
    "distill": "fuse fit --no-choose",
    "beside": "fuse fit --no-choose --final beside",
    "paper": "fuse fit --preset paper",
}


def few_labels(s: Setup, paper: bool = False) -> Iterator[Line]:
    """Train classifiers on few labels per class and 10,000 unlabeled documents.

    With `paper`, only three public sets and the three methods in docs/papers.md are run.
    """
    few, rest, model = Path(s.out("few.tsv")), Path(s.out("rest.tsv")), s.out("fused")
    folders = [Path(s.file(f"sets/{name}")) for name in PUBLIC] if paper else s.sets("sets", True)
    methods = [
        name for name in FEW_LABELS if not paper or name in ("classify train", "fuse fit", "paper")
    ]
    for folder, count, seed in product(folders, (10, 50), s.seeds):
        labels, lines = _labeled(folder / "train.tsv")
        taken: Counter[str] = Counter()
        parts: dict[bool, list[str]] = {True: [], False: []}
        for i in np.random.default_rng(seed).permutation(len(lines)).tolist():
            taken[labels[i]] += 1
            parts[taken[labels[i]] <= count].append(lines[i])
        few.write_text("".join(parts[True]), encoding="utf-8")
        others = (line[line.index("\t") :] for line in parts[False][:10_000])
        rest.write_text("".join(others), encoding="utf-8")
        for name in methods:
            line = FEW_LABELS[name]
            Path(model).unlink(missing_ok=True)
            documents = [few, "--unlabeled", rest] if line.startswith("fuse") else [few]
            own = ["--threads", s.threads, "--seed", seed, "--quiet", "--output", model]
            s.run(line, *documents, *own)
            accuracy = s.json("classify test", model, folder / "test.tsv")["accuracy"]
            yield f"{folder.name}; {len(taken)}; {count}", seed, name, 100 * accuracy, "%"


# ---- the papers ----

PAPER_OF_DCME = {
    "Algorithm 1, `--preset dcme-2017`": "",
    "the same, `--lr 2`": "--lr 2",
    "the same, `--weighting count --epochs 5`": "--weighting count --epochs 5",
    "`--dcme-update robust`": "--dcme-update robust",
    "`--objective gd` (exact softmax)": "--objective gd",
    "`--objective nce`": "--objective nce",
    "`--objective ns`": "--objective ns",
}

DCME_RATES = (0.5, 1.0, 2.0, 4.0)


def papers_dcme(s: Setup) -> Iterator[Line]:
    """Classify 16,068 paragraphs, 13 from each of 1,236 articles, drawn by the seed.

    The preset's rate is chosen on one of the 13 paragraphs of each article, which is held out.
    """
    names, model = ("train", "test", "first", "last"), s.out("m")
    files = {name: Path(s.out(f"{name}.tsv")) for name in names}
    for seed in s.seeds:
        draw = random.Random(seed)
        for part, most in (("train", 13), ("test", 3)):
            labels, lines = _labeled(Path(s.file(f"sets/wikipara/{part}.tsv")))
            order = draw.sample(range(len(lines)), len(lines))
            place: Counter[str] = Counter()
            places = {i: place[labels[i]] for i in order if place.update([labels[i]]) or True}
            kept = {part: [i for i, n in places.items() if n <= most]}
            if part == "train":
                kept["first"] = [i for i in kept[part] if places[i] < most]
                kept["last"] = [i for i in kept[part] if places[i] == most]
            for name, rows in kept.items():
                files[name].write_text("".join(lines[i] for i in rows), "utf-8")
        held = {f"one held-out paragraph, `--lr {rate:g}`": f"--lr {rate}" for rate in DCME_RATES}
        for setting, options in {**held, **PAPER_OF_DCME}.items():
            train, test = ("first", "last") if setting in held else ("train", "test")
            line = (
                f"classify train {files[train]} --preset dcme-2017 {options} {OWN} {seed} --output"
            )
            yield setting, seed, "CPU seconds", s.run(line, model).seconds, ""
            yield from ((setting, seed, *one) for one in _tested(s, model, files[test]))


PAPER_OF_SCDV: dict[str, str | None] = {
    "SCDV, `--preset paper`": "--preset paper",
    "SCDV, the defaults": "",
    "mean word vectors": "--representation average",
    "tf-idf": "--representation tfidf",
    "counts of words": None,
}
ON_ROWS = """
import sys
from scipy.sparse import load_npz
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics import accuracy_score, f1_score
from sklearn.svm import LinearSVC

def lines(name):
    with open(name, encoding="utf-8", newline="\\n") as file:
        return [line.partition("\\t") for line in file]

texts = [lines(name) for name in sys.argv[1:3]]
labels = [[one[0] for one in some] for some in texts]
if len(sys.argv) == 5:
    rows = [load_npz(name) for name in sys.argv[3:]]
else:
    counts = CountVectorizer()
    rows = [counts.fit_transform(one[2] for one in texts[0])]
    rows.append(counts.transform(one[2] for one in texts[1]))
found = LinearSVC(random_state=1).fit(rows[0], labels[0]).predict(rows[1])
print(accuracy_score(labels[1], found), f1_score(labels[1], found, average="macro"))
"""


def papers_scdv(s: Setup) -> Iterator[Line]:
    """Classify 20 Newsgroups by LinearSVC on SCDV, on two baselines, and on counts."""
    parts = [s.file(f"sets/20 Newsgroups/{part}.tsv") for part in ("train", "test")]
    lines = _labeled(Path(parts[0]))[1]
    own, text = f"--threads {s.threads} --quiet --seed", Path(s.out("scdv.txt"))
    text.write_text("".join(line.partition("\t")[2] for line in lines), "utf-8")
    rows, vectors = [s.out(f"{part}.npz") for part in ("train", "test")], s.out("scdv.safetensors")
    for seed in s.seeds:
        preset = f"train --tokenize words --preset scdv-2017 {own} {seed} --output"
        s.run(preset, vectors, text)
        for setting, options in PAPER_OF_SCDV.items():
            made = []
            if options is not None:
                fit = f"scdv fit {text} --vectors {vectors} {options} {own} {seed} --output"
                s.run(fit, s.out("scdv"))
                for part, file in zip(parts, rows, strict=True):
                    s.run(f"transform {s.out('scdv')}", part, "--output", file)
                made = rows
            accuracy, f1 = map(float, s.python("-c", ON_ROWS, *parts, *made).output.split())
            yield setting, seed, "accuracy", 100 * accuracy, "%"
            yield setting, seed, "macro F1", 100 * f1, "%"


TASKS = {  # the tasks of Figure 2 that the paper shows
    "4 v 5": ("comp.sys.ibm.pc.hardware", "comp.sys.mac.hardware"),
    "1 v 20": ("alt.atheism", "talk.religion.misc"),
}
LATENT_PEERS = """
import sys
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegressionCV
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

def lines(name):
    with open(name, encoding="utf-8", newline="\\n") as file:
        return zip(*(line.partition("\\t")[::2] for line in file))

(labels, texts), (wanted, asked) = map(lines, sys.argv[1:3])
weights = TfidfVectorizer(sublinear_tf=True)
rows, others = weights.fit_transform(texts), weights.transform(asked)
svm = GridSearchCV(LinearSVC(random_state=1), {"C": [0.1, 1, 10, 100]})
print("linear SVM", svm.fit(rows, labels).score(others, wanted), sep="\\t")
logistic = LogisticRegressionCV(Cs=[1, 10, 100, 1000], max_iter=500)
print("logistic regression", logistic.fit(rows, labels).score(others, wanted), sep="\\t")
for k in map(int, sys.argv[3:]):
    reduced = TruncatedSVD(k, random_state=1).fit(rows)
    score = svm.fit(reduced.transform(rows), labels).score(reduced.transform(others), wanted)
    print(f"LSA, K {k}, and linear SVM", score, sep="\\t")
"""


def papers_latent(s: Setup) -> Iterator[Line]:
    """Classify pairs of newsgroups from few documents, with K latent classes and two starts.

    As in the paper, training and test documents are pooled, and N drawn ones are for training.
    """
    files = [Path(s.out(f"{part}.tsv")) for part in ("train", "test")]
    given = [_labeled(Path(s.file(f"sets/20 Newsgroups/{file.name}")))[1] for file in files]
    sizes = (3, 7, 15)
    for (pair, names), count, seed in product(TASKS.items(), (100, 200), s.seeds):
        lines = [line for some in given for line in some if line.partition("\t")[0] in names]
        random.Random(seed).shuffle(lines)
        for file, some in zip(files, (lines[:count], lines[count:]), strict=True):
            file.write_text("".join(some), "utf-8")
        metric = f"{pair}, N {count}"
        fits = {
            f"latent classes, K {k}, start {start}":
            f"latent fit --latent {k} --init-method {start}"
            for start, k in product(("quadratic", "random"), sizes)
        }  # fmt: skip
        fits["`classify train`"] = "classify train"
        fits["`classify train --solver lbfgs`"] = "classify train --solver lbfgs"
        for setting, line in fits.items():
            model = s.out(line.split()[0])
            s.run(f"{line} {files[0]} {OWN} {seed} --output", model)
            accuracy = s.json("classify test", model, files[1])["accuracy"]
            yield setting, seed, metric, 100 * accuracy, "%"
        for line in s.python("-c", LATENT_PEERS, *files, *sizes).output.splitlines():
            setting, accuracy = line.split("\t")
            yield setting, seed, metric, 100 * float(accuracy), "%"


def papers_distributed(s: Setup) -> Iterator[Line]:
    """Train 20 Newsgroups in ten shards on two workers with each method, and count bytes sent."""
    train, test = (s.file(f"sets/20 Newsgroups/{part}.tsv") for part in ("train", "test"))
    own, model = "--ngrams 1 --features 20000 --lead 0 --subwords none", s.out("m")
    methods = {
        "one machine": "--solver lbfgs",
        **{
            name: f"--solver {solver} --cluster local:2 --shards 10 --distribute {name}"
            for name, solver in {
                "gradient": "lbfgs", "vote": "lbfgs", "mixture": "lbfgs", "iterate": "sgd"
            }.items()
        },
    }  # fmt: skip
    for seed, (name, options) in product(s.seeds, methods.items()):
        line = f"classify train {own} --l2 1e-5 {options} {OWN} {seed} --output {model}"
        s.run(line, train)
        yield from ((name, seed, *one) for one in _tested(s, model, test))
        if name != "one machine":
            made = s.json("info", model)["record"]["cluster"]
            sent = (made["bytes_sent"] - made["document_bytes"]) / 1e6
            yield name, seed, "MB sent", sent, ""


def many_classes(s: Setup) -> Iterator[Line]:
    """Predict the word after four words by softmax and by DCME; each frequent word is a class."""
    text = Path(s.file("corpus.txt")).read_text(encoding="utf-8")
    lines = [line.split() for line in text.split("\n")]
    counts = Counter(word for words in lines for word in words)
    found = [
        (words[i], [f"{place}_{words[i - place]}" for place in range(1, 5)])
        for words in lines for i in range(4, len(words), 7) if counts[words[i]] >= 5
    ]  # fmt: skip
    random.Random(1).shuffle(found)
    test, rest = found[:10_000], found[10_000:]
    train = [*dict(rest).items(), *rest][:150_000]
    files = [Path(s.out(f"{name}.tsv")) for name in ("train", "test")]
    for file, documents in zip(files, (train, test), strict=True):
        made = (f"{label}\t{' '.join(words)}\n" for label, words in documents)
        file.write_text("".join(made), encoding="utf-8")
    options = "--hashing 4096 --tokens spaces --lead 0 --epochs 2 --quiet"
    model, classes = s.out("m"), len({label for label, _ in train})
    for seed, objective in product(s.seeds, ("gd", "auto")):
        line = f"classify train {options} --objective {objective} --threads {s.threads} --seed"
        setting = f"{classes:,} classes, {objective}"
        yield (
            setting,
            seed,
            "CPU seconds",
            s.run(line, seed, files[0], "--output", model).seconds,
            "",
        )
        yield from ((setting, seed, *one) for one in _tested(s, model, files[1]))


def many_articles(s: Setup) -> Iterator[Line]:
    """Find the article of a paragraph: one of each article with four or more is held out."""
    paragraphs: dict[str, list[str]] = {}
    files = (Path(s.file(name)) for name in ("articles.txt", "corpus.txt"))
    for title, text in zip(*(file.read_text("utf-8").splitlines() for file in files), strict=True):
        paragraphs.setdefault(title, []).append(text)
    random_, parts = random.Random(1), (list[str](), list[str]())  # training, held-out documents
    for number, texts in enumerate(own for own in paragraphs.values() if len(own) >= 4):
        held = random_.randrange(len(texts))
        for i, text in enumerate(texts):
            parts[i == held].append(f"a{number}\t{text}\n")
    docs = [Path(s.out(f"{name}.tsv")) for name in ("train", "test")]
    for path, lines in zip(docs, parts, strict=True):
        random_.shuffle(lines)
        path.write_text("".join(lines), "utf-8")
    for seed, objective in product(s.seeds, ("gd", "dcme")):
        line = f"classify train --epochs 2 --quiet --threads {s.threads} --objective {objective}"
        done = s.run(f"{line} --seed {seed}", docs[0], "--output", s.out("m"))
        setting = f"{number + 1:,} classes, {objective}"
        yield setting, seed, f"CPU seconds, --threads {s.threads}", done.seconds, ""
        yield setting, seed, "memory, GB", done.memory / 1e9, ""
        yield from ((setting, seed, *one) for one in _tested(s, s.out("m"), docs[1]))


def documents(s: Setup) -> Iterator[Line]:
    """Classify by SCDV, by the mean of the same word vectors, and by tf-idf."""
    for folder, seed in product(s.sets("documents"), s.seeds):
        own = f"--threads {s.threads} --seed {seed} --quiet --output"
        _, lines = _labeled(folder / "train.tsv")
        Path(s.out("d.txt")).write_text(
            "".join(line.partition("\t")[2] for line in lines), encoding="utf-8"
        )
        vectors = s.out("d.safetensors")
        s.run(f"train {s.out('d.txt')} --tokenize words --model skipgram {own}", vectors)
        for name, options in {
            "SCDV": "",
            "average": "--representation average",
            "average, centered": "--representation average --center",
            "tf-idf": "--representation tfidf",
        }.items():
            fit = f"scdv fit {folder / 'train.tsv'} --vectors {vectors} {options} {own}"
            seconds = s.run(fit, s.out("scdv")).seconds
            yield f"{folder.name}: {name}", seed, "CPU seconds of fit", seconds, ""
            for part in ("train", "test"):
                files = f"{folder / part}.tsv --output {s.out(part)}.npz --labels {s.out(part)}.y"
                s.run(f"transform {s.out('scdv')} {files}")
            rows = "{0}.npz --labels {0}.y".format
            s.run(f"classify train {rows(s.out('train'))} {own}", s.out("on-rows"))
            for one in _tested(s, s.out("on-rows"), *rows(s.out("test")).split()):
                yield f"{folder.name}: {name}", seed, *one


# ---- growing corpora ----


def _grown(text: str) -> Iterator[memoryview]:
    """Yield copies of a text in which words with fewer than 40 occurrences are renamed.

    Each occurrence of a word with fewer than 13 occurrences gets its own name.
    """
    lines = Path(text).read_bytes().splitlines()
    counts = Counter(word for line in lines for word in line.split())
    seen: Counter[bytes] = Counter()

    def name(word: bytes) -> bytes:
        if counts[word] >= 40:
            return word
        seen[word] += 1
        return word + b"~~" + (bytes([64 + seen[word]]) if counts[word] < 13 else b"")

    copy = bytearray(b"".join(b" ".join(map(name, line.split())) + b"\n" for line in lines))
    places = [found.start() for found in re.finditer(b"~~", copy)]
    for number in range(26 * 26):
        for place in places:
            copy[place : place + 2] = bytes((65 + number // 26, 65 + number % 26))
        yield memoryview(copy)


def _growing(
    s: Setup, sizes: Sequence[float], others: Sequence[int] = (1,)
) -> Iterator[tuple[float, str, int, int]]:
    """Yield sizes in copies of corpus.txt, a file that grows to them, other numbers, and seeds."""
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
        yield from ((size, str(path), *both) for both in product(others, s.seeds))


def cluster(s: Setup) -> Iterator[Line]:
    """Compare one process with Dask workers: CPU time, quality, bytes, and scheduler memory."""
    out = s.out("c.safetensors")
    for size, text, workers, seed in _growing(s, (1, 6, 18), (1, 2, 4)):
        options = f"--cluster local:{workers}" if workers > 1 else "--threads 1"
        line = f"train {text} {options} --epochs 1 --seed {seed}"
        done, setting = s.run(f"{line} --output", out), f"{size:g} texts, workers: {workers}"
        yield setting, seed, "CPU time, s", done.seconds, ""
        for measure in (_analogies, _similarity):
            yield from ((setting, seed, *one) for one in measure(s, out))
        if workers > 1:
            made = s.json("info", out)["cluster"]
            forecast = s.json(f"{line} --dry-run")["bytes_a_round"] * made["rounds"]
            yield setting, seed, "rounds", made["rounds"], ""
            yield setting, seed, "forecast, GB", forecast / 1e9, ""
            yield setting, seed, "sent, GB", made["bytes_sent"] / 1e9, ""
            yield setting, seed, "program with scheduler at most, MB", done.memory / 1e6, ""


def scale(s: Setup) -> Iterator[Line]:
    """Train on corpora with a growing vocabulary, and measure CPU time, memory and disk."""
    out = s.out("scale.safetensors")
    for _, text, _, seed in _growing(s, (1 / 17, 10 / 17, 1, 6, 18, 60)):
        line = f"train {text} --epochs 1 --threads {s.threads} --seed {seed} --output"
        done = s.run(line, out)
        made = s.json("info", out)
        tokens, dropped = made["tokens"]["corpus"], made["tokens"]["out_of_vocabulary"]
        forecast = re.search(r"([\d,]+) MB of memory", done.messages)
        assert forecast
        for metric, number, unit in (
            ("vocabulary, thousand words", made["vocabulary"] / 1000, ""),
            ("CPU time a token", done.seconds / tokens * 1e9, "ns"),
            ("memory", done.memory / 1e6, "MB"),
            ("memory forecast", float(forecast[1].replace(",", "")), "MB"),
            ("id cache on disk", (tokens - dropped) * 4 / 1e6, "MB"),
            ("text on disk", Path(text).stat().st_size / 1e6, "MB"),
        ):
            yield f"{tokens / 1e6:,.0f} million tokens", seed, metric, number, unit


def _rankings(
    queries: list[str], passages: list[str], seed: int, threads: int
) -> Iterator[tuple[str, Any]]:
    """Yield each method with the rows of the ten best passages for each query."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    def ours(**options: Any) -> list[list[int]]:
        found = dw.Search(**options).fit(passages).search(queries)
        return [[hit.row for hit in hits] for hits in found]

    def best(scores: Any) -> Any:
        return np.argsort(-scores, axis=1, kind="stable")[:, :10]

    yield "`search`, the default", ours()
    yield "`search --characters 0`", ours(characters=0)
    for k1, b in ((1.5, 0.75), (1.2, 0.75), (0.9, 0.4), (0.6, 0.3)):
        yield f"BM25, k1 {k1}, b {b}", ours(k1=k1, b=b, characters=0)
    with contextlib.suppress(ImportError):
        bm25s = importlib.import_module("bm25s")
        ranker = bm25s.BM25()
        ranker.index(bm25s.tokenize(passages, show_progress=False), show_progress=False)
        asked = bm25s.tokenize(queries, show_progress=False)
        yield "bm25s, its defaults", ranker.retrieve(asked, k=10, show_progress=False)[0]
    tfidf = TfidfVectorizer(sublinear_tf=True)
    rows = tfidf.fit_transform(passages)
    yield "TF-IDF, 1 + ln n, cosine", best((tfidf.transform(queries) @ rows.T).toarray())
    v = dw.train(passages, tokenize="words", window=10, min_count=2, threads=threads, seed=seed)
    yield "`search --vectors` (of the same text)", ours(vectors=v)
    encoder = dw.SentenceEncoder(v)
    vectors = [encoder.fit_transform(texts) for texts in (queries, passages)]
    units = [one / np.maximum(np.linalg.norm(one, axis=1, keepdims=True), 1e-9) for one in vectors]
    yield "cosines of these sentence vectors", best(units[0] @ units[1].T)


def search(s: Setup) -> Iterator[Line]:
    """Find passages by their former titles (known-item search), with queries drawn by the seed."""
    files = sorted(Path(s.file("search")).glob("*.tsv"))
    for seed in s.seeds:
        measures: dict[str, list[tuple[float, float]]] = {}
        for file in files:
            queries, passages = read(file)
            rows = random.Random(seed).sample(range(len(passages)), min(500, len(passages)))
            asked = [queries[row] for row in rows]
            for method, found in _rankings(asked, passages, seed, s.threads):
                ranks = [
                    1 + list(some).index(row) if row in list(some) else np.inf
                    for row, some in zip(rows, found, strict=True)
                ]
                gains = 1 / np.log2(1 + np.array(ranks)), 1 / np.array(ranks)
                measures.setdefault(method, []).append((gains[0].mean(), gains[1].mean()))
                yield method, seed, f"nDCG@10, {file.stem}", gains[0].mean(), ""
                yield method, seed, f"MRR@10, {file.stem}", gains[1].mean(), ""
        for method, found in measures.items():
            for name, mean in zip(("nDCG@10", "MRR@10"), np.mean(found, axis=0), strict=True):
                yield method, seed, f"{name}, mean", mean, ""


def _reciprocal_ranks(found: Any, rows: Sequence[int]) -> Any:
    """Return 1 / rank of each wanted row among the ten best, or 0."""
    ranks = [
        [*some].index(row) + 1 if row in some else np.inf
        for row, some in zip(rows, found, strict=True)
    ]
    return 1 / np.array(ranks)


def _by_search(texts: list[str], asked: list[str]) -> Iterator[Any]:
    """Index texts, yield, and find the ten best for each query."""
    fitted = dw.Search().fit(texts)
    yield None
    yield [[hit.row for hit in hits] for hits in fitted.search(asked)]


def _by_bm25s(texts: list[str], asked: list[str]) -> Iterator[Any]:
    bm25s = importlib.import_module("bm25s")
    ranker = bm25s.BM25()
    ranker.index(bm25s.tokenize(texts, show_progress=False), show_progress=False)
    yield None
    tokens = bm25s.tokenize(asked, show_progress=False)
    yield ranker.retrieve(tokens, k=10, show_progress=False, n_threads=1)[0].tolist()


def search_peers(s: Setup) -> Iterator[Line]:
    """Compare with bm25s, and with model2vec and word vectors of the same 2,000 passages."""
    model2vec = importlib.import_module("model2vec")

    def static(texts: list[str], asked: list[str]) -> Iterator[Any]:
        v = dw.train(texts, tokenize="words", window=10, min_count=2, threads=1, seed=seed)
        dw.save_sentence_model(v, folder := s.out(f"{file.stem}-{seed}"))
        model = model2vec.StaticModel.from_pretrained(folder)
        sides = [model.encode(some, use_multiprocessing=False) for some in (asked, texts)]
        lengths = [np.linalg.norm(one, axis=1, keepdims=True) for one in sides]
        mine, rows = (one / np.maximum(n, 1e-9) for one, n in zip(sides, lengths, strict=True))
        yield np.argsort(-(mine @ rows.T), axis=1, kind="stable")[:, :10].tolist()

    means: dict[tuple[str, int, str], list[float]] = {}
    for file, seed in product(sorted(Path(s.file("search")).glob("*.tsv")), s.seeds):
        titles, passages = read(file, 2000)
        rows = random.Random(seed).sample(range(len(passages)), 300)
        for name, method in (
            ("`search`", _by_search), ("bm25s", _by_bm25s), ("model2vec, own vectors", static)
        ):  # fmt: skip
            *_, found = method(passages, [titles[row] for row in rows])
            inverse = _reciprocal_ranks(found, rows)
            gains = np.where(inverse > 0, 1 / np.log2(1 + 1 / np.maximum(inverse, 0.1)), 0)
            for metric, each in (("nDCG@10", gains), ("MRR@10", inverse)):
                means.setdefault((name, seed, metric), []).append(each.mean())
                yield name, seed, f"{metric}, {file.stem}", each.mean(), ""
    for (name, seed, metric), values in means.items():
        yield name, seed, f"{metric}, mean", fmean(values), ""


def search_speed(s: Setup) -> Iterator[Line]:
    """Time the index of 100,000 passages of 54 words, and 200 queries of 8 words."""
    lines = Path(s.file("corpus.txt")).read_text(encoding="utf-8").splitlines()
    long = [words for line in lines if len(words := line.split()) >= 62][:100_000]
    texts, asked = [" ".join(one[8:62]) for one in long], [" ".join(one[:8]) for one in long[:200]]
    for seed in s.seeds:
        for name, method in (("`search`", _by_search), ("bm25s", _by_bm25s)):
            start, steps = time.process_time(), method(texts, asked)
            next(steps)
            middle, _ = time.process_time(), next(steps)
            yield name, seed, "index, CPU", middle - start, "s"
            yield name, seed, "query, CPU", (time.process_time() - middle) / 200 * 1000, "ms"


def continued(s: Setup) -> Iterator[Line]:
    """Learn batches of 5,000 documents, day by day or at once, and after a change of labels.

    In the batch "renamed", the labels of the first day are permuted. Two settings have twelve days,
    and are tested on 3,000 documents.
    """
    lines = Path(s.file("sections.tsv")).read_text(encoding="utf-8").splitlines(keepends=True)
    names = sorted({line.partition("\t")[0] for line in lines})
    other = dict(zip(names, [*names[1::2], *names[::2]], strict=True))
    for seed in s.seeds:
        drawn = random.Random(seed).sample(lines, 20000)
        parts = {"all": drawn[:15000], "test": drawn[15000:]}
        parts |= {f"day {n}": drawn[5000 * (n - 1) : 5000 * n] for n in (1, 2, 3)}
        split = (line.partition("\t") for line in parts["day 1"])
        parts["renamed"] = [f"{other[label]}\t{text}" for label, _, text in split]
        drawn = random.Random(seed).sample(lines, 63000)
        parts |= {"long": drawn[:60000], "long test": drawn[60000:]}
        parts |= {f"long {n}": drawn[5000 * n : 5000 * n + 5000] for n in range(12)}
        for name, some in parts.items():
            Path(s.out(name)).write_text("".join(some), encoding="utf-8")
        long = [*(f"long model {n}" for n in range(11)), "60,000 in twelve batches"]
        for setting, docs, before, fade in (
            ("15,000 at once", "all", None, 0), ("5,000", "day 1", None, 0),
            ("10,000 in two batches", "day 2", "5,000", 0),
            ("15,000 in three batches", "day 3", "10,000 in two batches", 0),
            ("10,000, `--fade 0.5`", "day 2", "5,000", 0.5),
            ("5,000 with permuted labels", "renamed", None, 0),
            ("10,000, the first 5,000 permuted", "day 2", "5,000 with permuted labels", 0),
            ("the same, `--fade 0.5`", "day 2", "5,000 with permuted labels", 0.5),
            ("the same, `--fade 0.9`", "day 2", "5,000 with permuted labels", 0.9),
            ("60,000 at once", "long", None, 0),
            *((long[n], f"long {n}", long[n - 1] if n else None, 0) for n in range(12)),
        ):  # fmt: skip
            more = [] if before is None else ["--init", s.out(before), "--fade", fade]
            model = ["--output", s.out(setting), "--threads", 1, "--quiet", *more]
            done = s.run("classify train", s.out(docs), *model)
            if setting in long[:-1]:
                continue
            test = "long test" if docs.startswith("long") else "test"
            found = s.json("classify test", s.out(setting), s.out(test))
            yield setting, seed, "accuracy", 100 * found["accuracy"], "%"
            yield setting, seed, "log-likelihood", found["log_likelihood"], ""
            yield setting, seed, "CPU", done.seconds, "s"


FUNCTIONS = (
    agreement, speed, divergence, many_texts, small_models, recipe, script, constants,
    sampled_losses,
    balanced, calibrated, few_tokens, few_labels, many_classes, many_articles, documents,
    cluster, scale, changes, search, search_peers, search_speed, continued,
    papers_dcme, papers_scdv, papers_distributed, papers_latent,
)  # fmt: skip
ALL: dict[str, Callable[[Setup], Iterator[Line]]] = {
    **{name: partial(trained, suite=name) for name in TRAINED},
    **{name: partial(by_time, suite=name) for name in BY_TIME},
    **{name: partial(classified, suite=name) for name in CLASSIFIED},
    **{one.__name__: one for one in FUNCTIONS},
    "papers_fused": partial(few_labels, paper=True),
}

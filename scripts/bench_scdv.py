"""Time SCDV against the straightforward pipeline of gensim and scikit-learn, and the two mixtures.

    python scripts/bench_scdv.py [--epochs 2] [--threads 2] [--folder F] [--json FILE] [--quick]

The baseline is the paper authors' method: gensim's skip-gram, scikit-learn's mixture, a dense table
of words x (topics x dimensions), and for each document the sum of its words' rows. Everything runs
on 20 Newsgroups, each program in a process of its own. --quick leaves out the 200,000 vectors and
trains for one epoch.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import document_data as data
import numpy as np
import peers

# Both programs read lines of words, and print one JSON object.
OURS = """
import json, os, resource, sys, time
from dcme_w2v.scdv.fit import fit_documents
from dcme_w2v.scdv.options import ScdvOptions
from dcme_w2v.scdv.transform import transform_to_files
from dcme_w2v.formats.documents import read_documents
from dcme_w2v.words.vectors import Vectors
folder, threads = sys.argv[1], int(sys.argv[2])
start = time.perf_counter()
texts = (d.text for d in read_documents([f"{folder}/train.txt"]))
model = fit_documents(texts, Vectors.load(f"{folder}/ours.npy"), ScdvOptions(), threads=threads)
model.save(f"{folder}/model")
fitted = time.perf_counter()
for half in ("train", "test"):
    texts = (d.text for d in read_documents([f"{folder}/{half}.txt"]))
    for rows in model.transform(texts, threads):
        del rows
computed = time.perf_counter()
found = [transform_to_files(model, read_documents([f"{folder}/{half}.txt"]),
                            f"{folder}/{half}.npz", None, threads) for half in ("train", "test")]
done = time.perf_counter()
dense = sum(one["rows"] for one in found) * model.columns * 4
size = sum(os.path.getsize(f"{folder}/{half}.npz") for half in ("train", "test"))
print(json.dumps({"fit": fitted - start, "computed": computed - fitted,
    "document vectors": done - computed,
    "share of dense": size / dense,
    "share in memory": sum(8 * one["entries"] for one in found) / dense,
    "peak MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))
"""
BASELINE = """
import json, resource, sys, time
import numpy as np
from gensim.models import Word2Vec
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.mixture import GaussianMixture
folder, threads, epochs = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
clock = [time.perf_counter()]
lap = lambda: (clock.append(time.perf_counter()), clock[-1] - clock[-2])[1]
documents = {h: [line.split() for line in open(f"{folder}/{h}.txt")] for h in ("train", "test")}
model = Word2Vec(documents["train"], vector_size=200, window=10, min_count=20, negative=10, sg=1,
                 sample=1e-3, workers=threads, epochs=epochs, seed=1)
vectors = model.wv.vectors / np.linalg.norm(model.wv.vectors, axis=1, keepdims=True)
result = {"word vectors": lap()}
mixture = GaussianMixture(60, covariance_type="tied", max_iter=50, random_state=1).fit(vectors)
shares = mixture.predict_proba(vectors)
result["mixture"] = lap()
idf = TfidfVectorizer(analyzer=lambda words: words).fit(documents["train"])
weights = np.array([idf.idf_[idf.vocabulary_[word]] for word in model.wv.index_to_key])
result["idf"] = lap()
table = (weights[:, None, None] * shares[:, :, None] * vectors[:, None, :]).astype(np.float32)
table = dict(zip(model.wv.index_to_key, table.reshape(len(vectors), -1)))
result["word-topic table"] = lap()
rows = {}
for half, texts in documents.items():
    rows[half] = np.zeros((len(texts), 12000), dtype=np.float32)
    for row, words in zip(rows[half], texts):
        for word in words:
            if word in table:
                row += table[word]
        row /= np.linalg.norm(row) or 1
result["document vectors"] = lap()
low, high = rows["train"].min(axis=1).mean(), rows["train"].max(axis=1).mean()
for half in rows:
    rows[half][np.abs(rows[half]) < 0.04 * (abs(low) + abs(high)) / 2] = 0
result["sparsify"] = lap()
for half in rows:
    path = f"{folder}/baseline-{half}.npz"
    sparse.save_npz(path, sparse.csr_matrix(rows[half]), compressed=False)
result["save"] = lap()
result["peak MB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps(result))
"""
MIXTURE = """
import json, resource, sys, time
import numpy as np
points = np.load(sys.argv[2], mmap_mode=None)
rounds = int(sys.argv[3])
start = time.perf_counter()
if sys.argv[1] == "ours":
    from dcme_w2v.scdv.mixture import fit_mixture
    limit = {"iterations": rounds} if rounds else {}
    mixture = fit_mixture(points, 60, **limit).mixture
    seconds, likelihood = time.perf_counter() - start, mixture.log_likelihood(points)
else:
    from sklearn.mixture import GaussianMixture
    limit = {"max_iter": rounds} if rounds else {}
    mixture = GaussianMixture(60, covariance_type="tied", random_state=1, **limit).fit(points)
    seconds, likelihood = time.perf_counter() - start, mixture.score(points)
print(json.dumps({"seconds": seconds, "likelihood": likelihood,
    "peak MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))
"""


def main() -> None:
    """Run, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=2, help="of the word vectors")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--documents", type=int, help="only so many of each half")
    parser.add_argument("--folder", help="keep files here")
    parser.add_argument("--json", type=Path, help="write every figure to this file")
    parser.add_argument("--quick", action="store_true", help="one epoch, no 200,000 vectors")
    given = parser.parse_args()
    epochs = 1 if given.quick else given.epochs
    folder = peers.work_folder(given.folder).resolve()
    for name, half in zip(("train", "test"), data.load("20news"), strict=True):
        (folder / f"{name}.txt").write_bytes(b"\n".join(half.words[: given.documents]) + b"\n")
    figures = {
        "pipeline": pipeline(folder, given.threads, epochs),
        "mixtures": mixtures(folder, given.threads, given.quick),
    }
    if given.json:
        given.json.write_text(json.dumps(figures, indent=1) + "\n")


def pipeline(folder: Path, threads: int, epochs: int) -> dict[str, Any]:
    """Run both pipelines and print a table."""
    training = peers.train_ours(
        folder / "train.txt", folder / "ours.npy", data.PAPER, epochs=epochs, threads=threads
    )
    ours = run(OURS, threads, str(folder), str(threads))
    baseline = run(BASELINE, threads, str(folder), str(threads), str(epochs))
    ours["word vectors"] = training.total_seconds
    ours["all"] = sum(ours[name] for name in ("word vectors", "fit", "document vectors"))
    baseline["all"] = sum(seconds for name, seconds in baseline.items() if name != "peak MB")
    unsaved = baseline["document vectors"] + baseline["sparsify"]
    theirs = unsaved + baseline["save"]
    table = baseline["mixture"] + baseline["idf"] + baseline["word-topic table"]
    print(f"20 Newsgroups, {epochs} epochs of skip-gram, {threads} threads\n")
    print("| seconds | dcme-w2v | gensim + scikit-learn | ratio |\n|---|---|---|---|")
    for name, a, b in (
        ("word vectors", ours["word vectors"], baseline["word vectors"]),
        ("mixture, idf, table or threshold", ours["fit"], table),
        ("document vectors, sparse", ours["computed"], unsaved),
        ("the same, and saved", ours["document vectors"], theirs),
        ("text to features", ours["all"], baseline["all"]),
    ):
        print(f"| {name} | {a:.2f} | {b:.2f} | {b / a:.1f} |")
    peak = max(ours["peak MB"], training.peak_memory_bytes / 2**20)
    print(
        f"| peak memory, MB | {peak:.0f} | {baseline['peak MB']:.0f} "
        f"| {baseline['peak MB'] / peak:.1f} |"
    )
    disk, memory = (100 * ours[f"share {where}"] for where in ("of dense", "in memory"))
    print(f"\nsparse rows against dense float32: {disk:.1f} % on disk, {memory:.1f} % in memory")
    # 11,314 x 12,060 numbers of 8 bytes are the paper's 1.1 GB; its sparse rows take 236 MB.
    print(
        f"against 8 bytes a number, as the paper: {disk / 2:.1f} and {memory / 2:.1f} %; its: 21\n"
    )
    return {"ours": ours, "baseline": baseline}


def mixtures(folder: Path, threads: int, quick: bool) -> dict[str, Any]:
    """Fit both mixtures to the word vectors and to clouds of points, and print a table."""
    words = np.load(folder / "ours.npy")
    np.save(folder / "words.npy", words / np.linalg.norm(words, axis=1, keepdims=True))
    sets = {"words.npy": 0, "20000.npy": 0} | ({} if quick else {"200000.npy": 5})
    print("60 components, one covariance\n")
    print(
        "| vectors | rounds | dcme-w2v, s | scikit-learn, s | ratio | log-likelihood, ours | its |"
    )
    print("|---|---|---|---|---|---|---|")
    found = {}
    for name, rounds in sets.items():
        if name != "words.npy":
            np.save(folder / name, cloud(int(name.removesuffix(".npy"))))
        path = str(folder / name)
        ours, baseline = (
            run(MIXTURE, threads, who, path, str(rounds)) for who in ("ours", "baseline")
        )
        found[name] = {"ours": ours, "baseline": baseline}
        shape = np.load(path, mmap_mode="r").shape
        scores = f"{ours['likelihood']:.3f} | {baseline['likelihood']:.3f}"
        print(
            f"| {shape[0]:,} x {shape[1]} | {rounds or 'to the end'} | {ours['seconds']:.2f} | "
            f"{baseline['seconds']:.2f} | {baseline['seconds'] / ours['seconds']:.1f} | {scores} |"
        )
    return found


def cloud(count: int) -> np.ndarray:
    """Return points of unit length in 200 dimensions, in 300 overlapping clusters."""
    random = np.random.default_rng(1)
    centres = random.normal(size=(300, 200)) * random.gamma(2, 0.3, size=(300, 1))
    spread = random.normal(size=(200, 200)) / 20 + np.eye(200)
    points = centres[random.integers(300, size=count)] + random.normal(size=(count, 200)) @ spread
    unit = points / np.linalg.norm(points, axis=1, keepdims=True)
    return unit.astype(np.float32)


def run(program: str, threads: int, *arguments: str) -> dict[str, Any]:
    """Run a program in its own process and return its output."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": str(threads)}
    command = [sys.executable, "-W", "ignore", "-c", program, *arguments]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment)
    return dict(json.loads(done.stdout.splitlines()[-1]))


if __name__ == "__main__":
    main()

"""Compare training with subwords and fastText, alternating: seconds, similarity of rare words.

    python scripts/bench_subwords.py [--megabytes 20] [--seeds 3] [--json FILE]

Both programs train on the start of the development corpus with equal settings: 3-6 characters,
2,000,000 buckets, dimension 100, window 5, 5 negative samples from unigram^0.5, subsampling 1e-4, 5
epochs, a rate of 0.05 and one thread. Both models are evaluated by `dcme-w2v eval similarity`, in
which words that are not in the vocabulary have vectors, too. A pair is rare if one of its words
occurs fewer than 100 times in the text. fastText comes with `pip install dcme-w2v[bench]`, has no
option for a seed, and is started again, up to nine times, if a run of it ends with NaN.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from peers import development_data, plain_corpus, work_folder
from results import record

from dcme_w2v.errors import DcmeError
from dcme_w2v.words.evaluate import eval_similarity as similarity
from dcme_w2v.words.vectors import Vectors

RARE = 100
ATTEMPTS = 10
SETS = ("ws353", "simlex999")
COLUMNS = ("model", "program", "seconds", "WS-353", "SimLex-999", "rare WS-353", "rare SimLex-999")
FASTTEXT = """
import sys
import fasttext
corpus, output, model, _ = sys.argv[1:]
fasttext.train_unsupervised(
    corpus, model=model, dim=100, ws=5, neg=5, t=1e-4, minCount=5, minn=3, maxn=6, epoch=5,
    thread=1, lr=0.05, verbose=0,
).save_model(output)
"""
OURS = """
import sys
import dcme_w2v
corpus, output, model, seed = sys.argv[1:]
dcme_w2v.train(
    corpus, model=model, dim=100, window=5, negative=5, sample=1e-4, min_count=5, subwords="3-6",
    epochs=5, threads=1, lr=0.05, noise_power=0.5, seed=int(seed), output_fasttext=output,
)
"""


def main() -> None:
    """Train, evaluate, and print or write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=20)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--folder")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    development_data()
    with tempfile.TemporaryDirectory() as temporary:
        folder = work_folder(given.folder or temporary)
        text = folder / "start.txt"
        with plain_corpus(folder).open("rb") as file:
            text.write_bytes(file.read(given.megabytes * 1_000_000))
        found: dict[tuple[str, str], list[list[float]]] = {}
        for seed in range(1, given.seeds + 1):
            for model in ("skipgram", "cbow"):
                for program, code in (("fastText", FASTTEXT), ("dcme-w2v", OURS)):
                    figures = measured(code, text, folder / "model.bin", model, seed)
                    print(seed, model, program, figures, flush=True)
                    found.setdefault((model, program), []).append(figures)
            rows = [[*key, *medians(runs)] for key, runs in found.items()]
            data = f"the first {given.megabytes} MB of enwiki17, pairs by n-grams where needed"
            if given.json:
                title = "Subwords: CPU seconds, and Spearman's correlation; medians"
                seeds = ", ".join(map(str, range(1, seed + 1)))
                record(given.json, title, COLUMNS, rows, seeds=seeds, data=data)
        print(json.dumps([COLUMNS, *rows], indent=1))


def measured(code: str, text: Path, output: Path, model: str, seed: int) -> list[float]:
    """Return CPU seconds and correlations of one training."""
    command = [sys.executable, "-W", "ignore", "-c", code, str(text), str(output), model]
    for _ in range(ATTEMPTS):
        start = cpu_seconds()
        done = subprocess.run([*command, str(seed)], stderr=subprocess.PIPE, text=True)
        if done.returncode == 0:
            break
        if "NaN" not in done.stderr:
            sys.exit(done.stderr)
        print(seed, model, "ended with NaN", flush=True)
    else:
        sys.exit(f"{model}: ended with NaN {ATTEMPTS} times; change the rate")
    seconds = cpu_seconds() - start
    vectors = Vectors.load(output)
    return [seconds, *correlations(vectors, text, rare=False), *correlations(vectors, text, True)]


def cpu_seconds() -> float:
    """Return the CPU seconds of ended child processes, which other programs disturb little."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def correlations(vectors: Vectors, text: Path, rare: bool) -> list[float]:
    """Return Spearman's correlation for each set, of all pairs or of the rare ones."""
    counts = Counter(text.read_text(encoding="utf-8", errors="replace").split()) if rare else None
    found = []
    for name in SETS:
        path = development_data() / "wordsim" / f"{name}.txt"
        if counts is not None:
            lines = [line for line in path.read_text().splitlines() if is_rare(line, counts)]
            path = text.with_name("rare.txt")
            path.write_text("\n".join(lines) + "\n")
        try:
            found.append(similarity(vectors, path, 10_000_000).spearman)
        except DcmeError as error:
            sys.exit(str(error))
    return found


def is_rare(line: str, counts: Counter[str]) -> bool:
    """Return whether a word of a pair occurs fewer than `RARE` times."""
    words = line.lower().split()[:2]
    return len(words) == 2 and any(counts[word] < RARE for word in words)


def medians(runs: list[list[float]]) -> list[str]:
    """Return the medians as text: seconds, then correlations."""
    seconds, *rest = (statistics.median(column) for column in zip(*runs, strict=True))
    return [f"{seconds:.0f}", *(f"{value:.3f}" for value in rest)]


if __name__ == "__main__":
    main()

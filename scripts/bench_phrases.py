"""Find and join phrases, ours and gensim's in alternation: CPU seconds and peak memory.

    python scripts/bench_phrases.py [CORPUS] [--runs 3] [--connectors] [--json FILE]

CORPUS is one uncompressed file of lines, by default enwiki17 of the development data. Both programs
have the same score, minimum count 5 and threshold 100, and one thread. `gensim, find` is
Phrases(LineSentence(...)) alone; `gensim, find and join` freezes it and writes the joined text, as
`dcme-w2v phrases` does. CPU seconds are of the whole process, with Python's start. gensim comes
with `pip install dcme-w2v[bench]`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

from peers import plain_corpus, work_folder
from results import record

COLUMNS = ("program", "phrases", "CPU seconds", "times faster", "peak memory, MB")
END = """
import json, resource
usage = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps([usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1e3, count]))
"""
FIND = """
import sys
from gensim.models.phrases import ENGLISH_CONNECTOR_WORDS, Phrases
from gensim.models.word2vec import LineSentence
corpus, output, connectors = sys.argv[1:]
phrases = Phrases(
    LineSentence(corpus), min_count=5, threshold=100,
    connector_words=ENGLISH_CONNECTOR_WORDS if connectors else frozenset(),
)
phrases = phrases.freeze()
count = len(phrases.phrasegrams)
"""
JOIN = """
with open(output, "w", encoding="utf-8") as file:
    for line in LineSentence(corpus):
        file.write(" ".join(phrases[line]) + "\\n")
"""
OURS = """
import sys
from dcme_w2v import phrases
corpus, output, connectors = sys.argv[1:]
found = phrases(corpus, output, connectors=connectors or None)
count = len(found.table.passes[0])
"""
PROGRAMS = {
    "gensim, find": FIND + END,
    "gensim, find and join": FIND + JOIN + END,
    "dcme-w2v": OURS + END,
}


def main() -> None:
    """Measure, and print or write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", nargs="?", type=Path)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--connectors", action="store_true", help="with English connectors")
    parser.add_argument("--folder", help="folder for the corpus and the output")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    folder = work_folder(given.folder)
    corpus = given.corpus or plain_corpus(folder)
    found: dict[str, list[tuple[float, float, int]]] = {name: [] for name in PROGRAMS}
    for _ in range(given.runs):
        for name, code in PROGRAMS.items():
            found[name].append(measured(code, corpus, folder / "joined.txt", given.connectors))
            print(name, *found[name][-1], flush=True)
    medians = {
        name: [statistics.median(one) for one in zip(*runs, strict=True)]
        for name, runs in found.items()
    }
    ours = medians["dcme-w2v"][0]
    rows = [
        [name, f"{count:,.0f}", f"{seconds:.1f}", f"{seconds / ours:.1f}", f"{memory:,.0f}"]
        for name, (seconds, memory, count) in medians.items()
    ]
    print(json.dumps([COLUMNS, *rows], indent=1))
    if given.json:
        connectors = ", English connectors" * given.connectors
        title = f"Phrases: CPU seconds, medians of {given.runs} runs in alternation{connectors}"
        data = f"{corpus.name}, {corpus.stat().st_size / 1e6:,.0f} MB"
        record(given.json, title, COLUMNS, rows, seeds="none", data=data)


def measured(code: str, corpus: Path, output: Path, connectors: bool) -> tuple[float, float, int]:
    """Return CPU seconds, peak memory in MB and number of phrases of one run."""
    command = [sys.executable, "-W", "ignore", "-c", code, str(corpus), str(output)]
    done = subprocess.run(
        [*command, "english" if connectors else ""], check=True, stdout=subprocess.PIPE, text=True
    )
    seconds, memory, count = json.loads(done.stdout.splitlines()[-1])
    return seconds, memory, count


if __name__ == "__main__":
    main()

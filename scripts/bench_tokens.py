"""Tags of tokens: `--by token` against a conditional random field of the same features.

    python scripts/bench_tokens.py [--seeds 3] [--publish]

Hironsan's corpus: 500 Japanese sentences with entities, divided into words, with parts of speech
(MIT licence, `pip install hironsancorpus`; nothing of it is in this repository). Two tasks: F1 of
entities, and accuracy of parts of speech. 100 sentences are the test, of the others 40 or all 400
have their tags, and the rest is unlabelled. The seed divides the sentences. The conditional random
field is that of python-crfsuite with c1 0.1, c2 0.01 and 100 iterations; its features are those of
`--by token`. What is not installed is skipped with a message. Nothing was tuned on this corpus.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import statistics
import tempfile
from pathlib import Path

import numpy as np
import results

from dcme_w2v.classify.model import load_classifier
from dcme_w2v.classify.sequences import entities, test_tags
from dcme_w2v.cli.main import run
from dcme_w2v.formats.conll import token_features

TESTED = 100
LABELLED = (40, 400)
TASKS = {"entities": "F1", "parts of speech": "accuracy"}
FIELD = "conditional random field"
COMMANDS = {
    "classify train": "classify train {0}",
    "fuse fit, centred, beside": "fuse fit {0} --unlabelled {1} --impact centred --final beside",
    "fuse fit": "fuse fit {0} --unlabelled {1}",
}
METHODS = (*COMMANDS, FIELD)

Sentences = list[list[tuple[str, str]]]  # token and tag


def main() -> None:
    """Run, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--publish", action="store_true", help="write docs/results/")
    given = parser.parse_args()
    table = []
    for task, measure in TASKS.items():
        sentences = corpus(task)
        if not sentences:
            print("# skipped: no corpus; pip install hironsancorpus")
            return
        for count in LABELLED:
            found: dict[str, list[float]] = {name: [] for name in METHODS}
            for seed in range(given.seeds):
                for name, value in measured(sentences, task, count, seed).items():
                    found[name].append(100 * value)
            cells = [cell(values) for values in found.values()]
            table.append([f"{task}, {measure}", str(count), *cells])
            print(" | ".join(table[-1]), flush=True)
    if given.publish:
        results.record(
            results.RESULTS / "tokens.json",
            "Tags of tokens: F1 of entities, accuracy of parts of speech, %",
            ["task", "labelled sentences", *METHODS],
            table,
            seeds=f"0 to {given.seeds - 1} (mean ± standard deviation)",
            data="Hironsan's corpus: 500 Japanese sentences, 100 of them tested",
        )


def corpus(task: str) -> Sentences:
    """Return the sentences, or none where the corpus is not installed."""
    found = importlib.util.find_spec("hironsan")
    if found is None or not found.submodule_search_locations:
        return []
    path = Path(next(iter(found.submodule_search_locations))) / "corpus" / "iob_sents.txt"
    sentences: Sentences = []
    for there, lines in itertools.groupby(path.read_text(encoding="utf-8").splitlines(), bool):
        columns = [line.split("\t") for line in lines] if there else []
        place = -1 if task == "entities" else 2
        if columns:
            sentences.append([(own[0], own[place]) for own in columns if own[0].strip()])
    return sentences


def measured(sentences: Sentences, task: str, count: int, seed: int) -> dict[str, float]:
    """Return the measure of each method."""
    order = np.random.default_rng(seed).permutation(len(sentences))
    mixed = [sentences[i] for i in order]
    test, labelled, others = mixed[:TESTED], mixed[TESTED:][:count], mixed[TESTED + count :]
    found = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, own in (("test", test), ("labelled", labelled), ("others", others)):
            write(folder / file, own, file != "others")
        for method, command in COMMANDS.items():
            if others or method == "classify train":
                model = folder / f"model {method}"
                line = command.format(folder / "labelled", folder / "others").split()
                if run([*line, "--by", "token", "--threads", "1", "--quiet", "--seed", str(seed),
                        "--output", str(model)]):  # fmt: skip
                    raise SystemExit(1)
                of_model = test_tags(load_classifier(model), [str(folder / "test")])
                found[method] = of_model["entity_f1" if task == "entities" else "accuracy"]
    if importlib.util.find_spec("pycrfsuite"):
        found[FIELD] = of_field(labelled, test, task)
    return found


def write(path: Path, sentences: Sentences, tags: bool) -> None:
    """Write sentences in CoNLL's columns."""
    with path.open("w", encoding="utf-8") as file:
        for sentence in sentences:
            for token, tag in sentence:
                file.write(f"{token}\t{tag}\n" if tags else f"{token}\n")
            file.write("\n")


def of_field(labelled: Sentences, test: Sentences, task: str) -> float:
    """Return the measure of a conditional random field."""
    import pycrfsuite

    def features(sentence: list[tuple[str, str]]) -> list[list[str]]:
        return list(token_features([token for token, _ in sentence]))

    trainer = pycrfsuite.Trainer(verbose=False)
    trainer.set_params({"c1": 0.1, "c2": 0.01, "max_iterations": 100})
    for sentence in labelled:
        trainer.append(features(sentence), [tag for _, tag in sentence])
    with tempfile.NamedTemporaryFile() as file:
        trainer.train(file.name)
        tagger = pycrfsuite.Tagger()
        tagger.open(file.name)
        said = [tagger.tag(features(sentence)) for sentence in test]
    true = [[tag for _, tag in sentence] for sentence in test]
    if task != "entities":
        right = [a == b for own in zip(said, true, strict=True) for a, b in zip(*own, strict=True)]
        return float(np.mean(right))
    both = sum(len(set(entities(a)) & set(entities(b))) for a, b in zip(said, true, strict=True))
    return 2 * both / sum(len(entities(tags)) for tags in (*said, *true))


def cell(values: list[float]) -> str:
    """Return mean and standard deviation."""
    if not values:
        return "-"
    spread = f" ± {statistics.stdev(values):.1f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.1f}{spread}"


if __name__ == "__main__":
    main()

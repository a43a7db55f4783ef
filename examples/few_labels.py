"""Train a classifier on ten labels per class and many unlabeled texts.

The texts are paragraphs of the documentation inside Python and its packages. Each class is a module
or package.
"""

import collections
import random
import subprocess
import sys
from pathlib import Path

from sklearn.feature_extraction.text import TfidfVectorizer

import dcme_w2v as dw

if not Path("docs.tsv").exists():
    demo = [sys.executable, "-m", "dcme_w2v", "demo", "--documents", "docs.tsv"]
    subprocess.run(demo, check=True)
lines = Path("docs.tsv").read_text(encoding="utf-8").splitlines()
documents = [line.split("\t", 1) for line in lines]

# Only the ten largest classes are used. The last fifth of the documents is held out for testing. Of
# the other documents, ten per class keep their labels.
counts = collections.Counter(label for label, _ in documents)
classes = {label for label, _ in counts.most_common(10)}
documents = [one for one in documents if one[0] in classes]
random.Random(1).shuffle(documents)
labels, texts = zip(*documents[:4000], strict=True)
rows = TfidfVectorizer(sublinear_tf=True).fit_transform(texts)
test = len(texts) * 4 // 5
known, left = [], dict.fromkeys(classes, 10)
for label in labels[:test]:
    known.append(label if left[label] > 0 else None)
    left[label] -= 1
labeled = [row for row, label in enumerate(known) if label]

alone = dw.TextClassifier(threads=1)
alone.fit([texts[row] for row in labeled], [known[row] for row in labeled])
fused = dw.FusedFeatures(threads=1).fit(rows[:test], known)
print(f"{len(labeled)} labels alone: {alone.score(texts[test:], labels[test:]):.1%}")
print(f"with unlabeled texts: {fused.score(rows[test:], labels[test:]):.1%}")

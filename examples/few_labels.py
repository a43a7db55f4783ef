"""A classifier from five labels per class and many unlabeled texts."""

import random

from sklearn.feature_extraction.text import TfidfVectorizer

import dcme_w2v as dw

draw = random.Random(1)
TOPICS = {
    "sport": "match goal team player season coach win lose ball stadium race medal",
    "politics": "minister vote party law parliament election tax budget reform debate",
    "weather": "rain storm sun wind cloud snow cold warm forecast temperature ice fog",
}
COMMON = "the a of and to in was has new old first last year day people city"


def text(topic):
    """Return a text with a third of its words from a topic."""
    sources = [(TOPICS[topic] if draw.random() < 0.3 else COMMON).split() for _ in range(15)]
    return " ".join(draw.choice(words) for words in sources)


topics = [draw.choice(list(TOPICS)) for _ in range(1500)]
texts = [text(topic) for topic in topics]
rows = TfidfVectorizer().fit_transform(texts)

# Five texts of each topic keep their labels, None is no label; the last 500 are the test.
labels, left = [], dict.fromkeys(TOPICS, 5)
for topic in topics[:1000]:
    labels.append(topic if left[topic] > 0 else None)
    left[topic] -= 1
labeled = [i for i, label in enumerate(labels) if label]

alone = dw.MaxentClassifier(threads=1).fit(rows[labeled], [labels[i] for i in labeled])
fused = dw.FusedFeatures(threads=1).fit(rows[:1000], labels)
print(f"labels alone: {alone.score(rows[1000:], topics[1000:]):.1%}")
print(f"with unlabeled texts: {fused.score(rows[1000:], topics[1000:]):.1%}")

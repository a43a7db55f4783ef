"""Small encoded corpora with structure, for tests of training."""

import functools

import numpy as np
from reference import LAST


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

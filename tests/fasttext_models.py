"""Small models of fastText, written byte by byte, and their n-grams in plain Python."""

import struct

import numpy as np

WORDS = ["</s>", "the", "naïve", "a", "日本", "theory"]


def buckets_of(word, shortest, longest, buckets):
    """Return the buckets of a word's n-grams: FNV-1a over bytes, each with its sign."""
    if word == "</s>":
        return []
    characters, found = f"<{word}>", []
    for i in range(len(characters)):
        for n in range(shortest, longest + 1):
            ngram = characters[i : i + n]
            if len(ngram) < n or (n == 1 and i in (0, len(characters) - 1)):
                continue
            number = 2166136261
            for byte in ngram.encode():
                signed = byte if byte < 128 else byte | 0xFFFFFF00
                number = (number ^ signed) * 16777619 & 0xFFFFFFFF
            found.append(number % buckets)
    return found


def write_model(path, words=WORDS, shortest=3, longest=6, buckets=50, dim=4, **other):
    """Write a model of random numbers and return its input table."""
    rng = np.random.default_rng(3)
    spelled = [word if isinstance(word, bytes) else word.encode() for word in words]
    input = rng.normal(size=(len(words) + buckets, dim)).astype("<f4")
    output = rng.normal(size=(len(words), dim)).astype("<f4")
    input = other.get("input", input)
    version, pruned = other.get("version", 12), other.get("pruned", -1)
    labels, quantised = other.get("labels", 0), other.get("quantised", 0)
    numbers = [dim, 5, 5, 1, 5, 1, 2, other.get("model", 2), buckets, shortest, longest, 100]
    data = struct.pack("<14id", 793712314, version, *numbers, 1e-4)
    data += struct.pack("<3i2q", len(words), len(words) - labels, labels, 1000, pruned)
    for number, word in enumerate(spelled):
        kind = number >= len(words) - labels
        data += word + b"\0" + struct.pack("<qb", 100 - number, kind)
    for coded, table in ((quantised, input), (0, output)):
        data += struct.pack("<bqq", coded, *table.shape) + table.tobytes()
    path.write_bytes(data + other.get("more", b""))
    return input


def mean_of(word, input, words=WORDS, shortest=3, longest=6, buckets=50):
    """Return the vector that a word has in a model."""
    rows = [len(words) + one for one in buckets_of(word, shortest, longest, buckets)]
    if word in words:
        rows.append(words.index(word))
    return input[rows].astype(float).mean(axis=0)

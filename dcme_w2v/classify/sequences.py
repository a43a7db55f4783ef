"""Tag tokens using classifier scores and tag-pair counts, and evaluate the tags.

A classifier computes the tag probabilities of each token; how often each tag follows another is
counted in the labeled sentences. The best path of a sentence has the largest sum of log p(tag |
token) + log p(tag | previous tag) - log p(tag), found by the algorithm of Viterbi (1967).
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dcme_w2v.errors import CorpusError
from dcme_w2v.formats.documents import Sentence, read_sentences, token_documents
from dcme_w2v.numeric.arrays import F64, I64

from .dataset import no_labels
from .metrics import Measures
from .model import Predictor

SENTENCES_AT_ONCE = 1024
SMOOTHING = 0.01  # pseudocount of each tag pair, so that unseen pairs are unlikely but possible
Entity = tuple[str, int, int]


def tag_pairs(
    labels: Sequence[tuple[str, ...]], is_first: Sequence[bool], classes: Sequence[str]
) -> I64:
    """Count pairs of adjacent tags in sentences.

    Parameters
    ----------
    labels : sequence of tuple of str
        The tag of each token, in order.
    is_first : sequence of bool
        Whether the token is its sentence's first.
    classes : sequence of str

    Returns
    -------
    ndarray of int64, shape (classes + 1, classes + 1)
        Entry [i, j] is how often tag j follows tag i; the last index is the sentence boundary.
    """
    number = {name: i for i, name in enumerate(classes)}
    boundary = len(classes)
    counts = np.zeros((boundary + 1, boundary + 1), dtype=np.int64)
    before = boundary
    for names, first in zip(labels, is_first, strict=True):
        if first and before != boundary:
            counts[before, boundary] += 1
            before = boundary
        tag = number[names[0]]
        counts[before, tag] += 1
        before = tag
    if before != boundary:
        counts[before, boundary] += 1
    return counts


def best_path(log_p: F64, steps: F64) -> list[int]:
    """Return the tag sequence with the highest total score (the first one if tied).

    Parameters
    ----------
    log_p : ndarray of float64, shape (tokens, classes)
    steps : ndarray of float64, shape (classes + 1, classes + 1)
        Score of each transition from a tag (row) to the next; the last row and column are the
        sentence boundary.
    """
    reached = steps[-1, :-1] + log_p[0]
    came_from = []
    for own in log_p[1:]:
        sums = reached[:, None] + steps[:-1, :-1]
        came_from.append(sums.argmax(axis=0))
        reached = sums.max(axis=0) + own
    path = [int((reached + steps[:-1, -1]).argmax())]
    for best in reversed(came_from):
        path.append(int(best[path[-1]]))
    return path[::-1]


def steps_of(counts: I64) -> F64:
    """Compute log p(tag | previous tag) - log p(tag) from tag-pair counts."""
    pairs = counts + SMOOTHING
    pairs[-1, -1] = SMOOTHING
    steps: F64 = np.log(pairs / pairs.sum(axis=1, keepdims=True))
    steps -= np.log(pairs.sum(axis=0) / pairs.sum())
    return steps


def tagged(
    model: Predictor, docs: Sequence[str], threads: int | None = None
) -> Iterator[tuple[Sentence, F64, list[int]]]:
    """Yield each sentence, its tokens' log-probabilities, and its best tag sequence."""
    text = model.text
    assert text is not None and text.tag_pairs is not None
    steps = steps_of(text.tag_pairs)
    sentences = read_sentences(docs, encoding_errors=text.options.encoding_errors)
    while some := list(itertools.islice(sentences, SENTENCES_AT_ONCE)):
        rows = model.rows([document.text for document in token_documents(iter(some))])
        log_p, end = np.concatenate(list(model.log_probabilities(rows, threads))), 0
        for sentence in some:
            begin, end = end, end + len(sentence.tokens)
            yield sentence, log_p[begin:end], best_path(log_p[begin:end], steps)


def test_tags(model: Predictor, docs: Sequence[str], threads: int | None = None) -> dict[str, Any]:
    """Evaluate a model on sentences with tags.

    Accuracy, precision, recall and F1 are computed from the best paths; the log-likelihood and the
    top-5 accuracy from each token by itself. Entities are counted if tags have CoNLL prefixes (B-,
    I-, and also E- and S-): an entity is correct if its type and all of its tokens are correct.

    Raises
    ------
    CorpusError
        No sentence has tags.
    """
    classes = list(model.classes)
    number = {name: i for i, name in enumerate(classes)}
    measures, sentences, untagged = Measures(len(classes), False), 0, 0
    right = np.zeros(3, dtype=np.int64)  # counts of correct, predicted and true entities
    tokens = correct = 0
    for sentence, log_p, path in tagged(model, docs, threads):
        if not sentence.tags:
            untagged += 1
            continue
        sentences += 1
        measures.add(log_p, [(number.get(tag, -1),) for tag in sentence.tags])
        found = [classes[i] for i in path]
        tokens += len(path)
        correct += sum(map(str.__eq__, found, sentence.tags))
        predicted, true = set(entities(found)), set(entities(sentence.tags))
        right += (len(predicted & true), len(predicted), len(true))
    if not sentences:
        raise CorpusError(no_labels(docs, model.text))
    of_tokens = measures.result()
    result = {
        "sentences": sentences,
        "tokens": tokens,
        "unknown_tag_tokens": of_tokens["unknown_label_documents"],
        "accuracy": correct / tokens,
        "log_likelihood": of_tokens["log_likelihood"],
    }
    if any(name[1:2] == "-" for name in classes):
        both, said, true_count = right.tolist()
        result |= {
            "entities": true_count,
            "entity_precision": both / said if said else 0.0,
            "entity_recall": both / true_count if true_count else 0.0,
            "entity_f1": 2 * both / (said + true_count) if said + true_count else 0.0,
        }
    return {**result, "untagged_sentences": untagged}


def predict_tags(
    model: Predictor, docs: Sequence[str], threads: int | None = None
) -> Iterator[list[tuple[str, str, float]]]:
    """Yield each sentence's tokens with their predicted tags and the tags' probabilities."""
    for sentence, log_p, path in tagged(model, docs, threads):
        yield [
            (token, model.classes[tag], math.exp(row[tag]))
            for token, row, tag in zip(sentence.tokens, log_p, path, strict=True)
        ]


def entities(tags: Sequence[str]) -> list[Entity]:
    """Return the type, first token and last token of each entity, following conlleval's rules.

    An entity begins at B- or S-, after E-, S- or a tag without a type, and whenever the type
    changes.
    """
    found: list[Entity] = []
    before, kind, begin = "O", "", 0
    for i, tag in enumerate([*tags, "O"]):
        prefix, _, own = tag.partition("-")
        inside = bool(own) and prefix in ("B", "I", "E", "S")
        starts = inside and (prefix in ("B", "S") or before in ("O", "E", "S") or own != kind)
        if before != "O" and (not inside or starts):
            found.append((kind, begin, i - 1))
        if starts:
            begin = i
        before, kind = (prefix, own) if inside else ("O", "")
    return found

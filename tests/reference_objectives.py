"""The objectives of `reference`: step(target, h, rate) moves the output rows, and returns the
direction in which h should move, and the loss before.
"""

import heapq

import numpy as np
from reference import CENTER, LOSS_EVERY, Stream, rates_of
from scipy.special import entr, expit, softmax

POOL = 256


class Alias:
    """Vose's alias table; the lists are stacks, as in the core, so that draws are the same."""

    def __init__(self, weights):
        self.count = len(weights)
        share = (weights / np.cumsum(weights)[-1] * self.count).tolist()
        self.threshold, self.other = [2**32 - 1] * self.count, list(range(self.count))
        small = [i for i in range(self.count) if share[i] < 1]
        large = [i for i in range(self.count) if not share[i] < 1]
        while small and large:
            poor, rich = small.pop(), large[-1]
            self.threshold[poor] = min(int(share[poor] * 2**32), 2**32 - 1)
            self.other[poor] = rich
            share[rich] -= 1 - share[poor]
            if share[rich] < 1:
                small.append(large.pop())

    def draw(self, random):
        cell = (random >> 32) * self.count >> 32
        return cell if random % 2**32 < self.threshold[cell] else self.other[cell]


def update(output, words, weights, h, rates, gradient):
    """Add weighted rows to the gradient and update them one by one: a row may occur twice."""
    for word, weight, step in zip(words, weights, rates * weights, strict=True):
        gradient += weight * output[word]
        output[word] += step * h


def prior(counts, options):
    """The bias that is added to the dot products."""
    shares = counts.astype(float) ** options.prior
    return np.log(shares / shares.sum())


def implicit(rate, weight, squares):
    """The rate of an implicit step along contexts of these squared lengths."""
    return rate / (1 + rate * max(1, weight) / 4 * squares)


class Noise:
    """Negative sampling, and with `offset` noise-contrastive estimation.

    For the former a pool holds the last POOL words drawn; each target adds one and takes its own
    from the pool. For the latter all are drawn for the target, and each counts as `weight`; unless
    that is 1, steps are implicit.
    """

    def __init__(self, counts, options, output):
        weights = counts.astype(float) ** options.noise_power
        self.output, self.draws, self.alias = output, options.negative, Alias(weights)
        self.rates = rates_of(counts, options)
        self.offset = np.zeros(len(counts))
        self.pooled = options.objective == "ns"
        self.weight = 1 if self.pooled else options.virtual_samples
        if not self.pooled:
            virtual = self.draws * self.weight
            self.offset = np.log(virtual * weights / weights.sum()) - prior(counts, options)

    def begin(self, stream):
        self.stream, self.oldest = stream, 0
        self.ahead = stream.next()
        self.pool = [self.draw() for _ in range(POOL)]

    def draw(self):
        """A word from the random number of the last call; the next number is drawn here."""
        random, self.ahead = self.ahead, self.stream.next()
        return self.alias.draw(random)

    def words(self, target):
        drawn = self.from_pool() if self.pooled else [self.draw() for _ in range(self.draws)]
        return [target] + [word for word in drawn if word != target]

    def from_pool(self):
        self.pool[self.oldest % POOL] = self.draw()
        self.oldest += 1
        places = []
        while len(places) < self.draws:
            random = self.stream.next()
            places += [random >> shift & 0xFFFF for shift in (0, 16, 32, 48)]
        return [self.pool[place % POOL] for place in places[: self.draws]]

    def step(self, target, h, rate):
        words = self.words(target)
        scores = self.output[words] @ h - self.offset[words]
        loss = np.logaddexp(0, -scores[0]) + self.weight * np.logaddexp(0, scores[1:]).sum()
        weights = -self.weight * expit(scores)
        weights[0] = expit(-scores[0])
        if self.weight != 1:
            rate = implicit(rate, self.weight, h @ h)
        gradient = np.zeros_like(h)
        update(self.output, words, weights, h, rate * self.rates[words], gradient)
        return gradient, loss


class SharedNoise(Noise):
    """Targets of a block share their samples; steps are implicit."""

    loss_every = 4 * LOSS_EVERY

    def begin(self, stream):
        self.stream = stream
        self.randoms = [stream.next() for _ in range(self.draws)]

    def words(self):
        words = [self.alias.draw(random) for random in self.randoms]
        self.randoms = [self.stream.next() for _ in range(self.draws)]
        return np.array(words)

    def step_block(self, targets, contexts, rate):
        """Return the directions, one for each target, and the losses."""
        targets, noise = np.array(targets), self.words()
        scores = contexts @ self.output.T - self.offset
        own, others = scores[np.arange(len(targets)), targets], scores[:, noise]
        is_noise = noise != targets[:, None]
        losses = np.logaddexp(0, -own)
        losses += self.weight * (np.logaddexp(0, others) * is_noise).sum(axis=1)
        weights = -self.weight * expit(others) * is_noise
        gradient = weights @ self.output[noise] + expit(-own)[:, None] * self.output[targets]
        squares = (contexts**2).sum(axis=1)
        rates = implicit(rate, self.weight, squares)
        moves = (rates[:, None] * weights).T @ contexts
        np.add.at(self.output, noise, self.rates[noise, None] * moves)
        rates *= self.rates[targets]
        np.add.at(self.output, targets, (rates * expit(-own))[:, None] * contexts)
        return gradient, losses


class Clusters:
    """Centers alpha (K, N), u = V alpha, entropies; nearest() is (9).

    `margin` is the narrowest choice so far, between clusters or items, in units of a score.
    """

    def __init__(self, counts, options, output):
        k, n = options.clusters, len(counts)
        self.output, self.threshold = output, options.beta * n
        self.top_items, self.prior = min(options.top_items, n), prior(counts, options)
        self.alpha, self.entropy = np.zeros((k, n)), np.zeros(k)
        self.u = np.zeros((k, output.shape[1]))
        self.cluster_sums = [ClusterSums(output.shape[1]) for _ in range(k)]
        self.moves, self.margin = 0, np.inf
        for z in range(k):
            stream = Stream(options.seed, 0, z, CENTER)
            center = counts * np.array([0.5 + stream.unit() for _ in range(n)])
            self.place(z, center / center.sum())

    def place(self, z, center):
        self.alpha[z], self.u[z] = center, center @ self.output
        self.entropy[z] = entr(center).sum() + center @ self.prior

    def nearest(self, h):
        """The cluster and its score."""
        scores = self.u @ h + self.entropy
        z = int(np.argmax(scores))
        if len(scores) > 1:
            self.margin = min(self.margin, scores[z] - np.delete(scores, z).max())
        return z, scores[z]

    def heaviest(self, weights, count):
        """Items by descending weight; ties by ascending number."""
        order = np.argsort(-weights, kind="stable")
        if 0 < count < len(order) and weights[order[count - 1]] > weights[order[count]]:
            ratio = weights[order[count - 1]] / weights[order[count]]
            self.margin = min(self.margin, np.log(ratio))
        return order[:count]

    def move(self, z, mean):
        """(15)"""
        self.moves += 1
        self.place(z, softmax(self.output @ mean + self.prior))


class ClusterSums:
    """Sums over the instances of a cluster since its last offline update."""

    def __init__(self, dim):
        self.count, self.weight, self.h = 0, 0.0, np.zeros(dim)

    def add(self, h, weight):
        self.count += 1
        self.weight += weight
        self.h += weight * h

    def mean(self):
        return self.h / self.weight


class Paper(Clusters):
    """Algorithm 1, with u following the top items."""

    def begin(self, stream):
        pass

    def place(self, z, center):
        super().place(z, center)
        self.tops = getattr(self, "tops", {})
        self.tops[z] = self.heaviest(center, self.top_items)

    def step(self, target, h, rate):
        (z, score), v = self.nearest(h), self.output
        alpha, top = self.alpha[z], self.tops[z]
        gradient, loss = v[target] - self.u[z], score - v[target] @ h - self.prior[target]
        v[target] += rate * h
        v[top] -= rate * np.outer(alpha[top], h)
        self.u[z] += rate * h * (alpha[top] @ ((top == target) - alpha[top]))
        sums = self.cluster_sums[z]
        sums.add(h, rate)
        if sums.count >= self.threshold:
            others = np.setdiff1d(np.arange(len(v)), top)
            v[others] -= np.outer(alpha[others], sums.h)
            self.move(z, sums.mean())
            self.cluster_sums[z] = ClusterSums(len(h))
        return gradient, loss


class Tree:
    """Hierarchical softmax on a Huffman tree, built with a heap."""

    def __init__(self, counts, options, output):
        self.output, inner = output, len(counts) - 1
        self.paths = [([], []) for _ in counts]  # from the word to the root: nodes, children
        heap = [(count, 0, -word, [word]) for word, count in enumerate(counts.tolist())]
        heapq.heapify(heap)
        for number in range(inner):
            lowest = [heapq.heappop(heap) for _ in range(2)]
            for child, (_, _, _, words) in enumerate(lowest):
                for word in words:
                    self.paths[word][0].append(inner - 1 - number)
                    self.paths[word][1].append(child)
            (a, *_, left), (b, *_, right) = lowest
            heapq.heappush(heap, (a + b, 1, number, left + right))

    def begin(self, stream):
        pass

    def step(self, target, h, rate):
        nodes, children = self.paths[target]
        scores, children = self.output[nodes] @ h, np.array(children)
        loss = np.logaddexp(0, (1 - 2 * children) * scores).sum()
        gradient = np.zeros_like(h)
        update(self.output, nodes, children - expit(scores), h, rate, gradient)
        return gradient, loss


OBJECTIVES = {
    **{"ns": Noise, "nce": Noise, "dcme": Paper, "hs": Tree},
    "block": SharedNoise,
}

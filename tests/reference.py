"""Training with one thread in numpy and double precision, the reference of the C core.

Written from the papers and from what the files of csrc say they do, to be read rather than to be
fast: no prefetching, no running sums, no padding. Random numbers are the core's, so that windows,
subsampling and samples are the same. The objectives are in `reference_objectives`.
"""

import numpy as np

LAST = 1 << 31
MASK = (1 << 64) - 1
SUBSAMPLE, WINDOW, NOISE, INITIAL, CENTER = range(1, 6)  # purposes of a stream
BATCH_WORDS = 1024
LOSS_EVERY = 64


def mix(z):
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK
    return z ^ (z >> 31)


class Stream:
    """SplitMix64, named by seed, epoch, shard (or row) and purpose."""

    def __init__(self, *name):
        self.state = 0
        for part in name:
            self.state = mix((self.state + part) & MASK)

    def next(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        return mix(self.state)

    def below(self, limit):
        return (self.next() >> 32) * limit >> 32

    def unit(self):
        """A number in [0, 1) of 24 bits."""
        return (self.next() >> 40) / 2**24


def initial_table(items, dim, seed):
    rows = []
    for item in range(items):
        stream = Stream(seed, 0, item, INITIAL)
        rows.append([(stream.unit() - 0.5) / dim for _ in range(dim)])
    return np.array(rows)


def kept_shares(counts, sample):
    """A word of frequency f is kept with sqrt(sample / f) + sample / f."""
    if not sample:
        return np.ones(len(counts))
    ratio = sample * counts.sum() / counts
    return np.minimum(np.sqrt(ratio) + ratio, 1)


def rates_of(counts, options):
    """Rates of output rows, in units of the learning rate.

    1 for the count that the median of the kept tokens has, and otherwise in proportion to one over
    the root of the count, from 1/4 to 4. Words whose ranks are in the same sixteenth of an octave
    have the same: that of their mean count.
    """
    if options.rates != "count":
        return np.ones(len(counts))
    kept = np.cumsum(counts * kept_shares(counts, options.sample))
    median = counts[np.searchsorted(kept, kept[-1] / 2)]
    mantissa, exponent = np.frexp(np.arange(1, len(counts) + 1))
    octave = 16 * exponent + np.floor(32 * mantissa).astype(int)
    _, places = np.unique(octave, return_inverse=True)
    means = np.bincount(places, counts) / np.bincount(places)
    return np.clip(np.sqrt(median / means[places]), 1 / 4, 4)


def keep_thresholds(counts, sample):
    """The shares that are kept, in units of 2**-32."""
    return np.floor(kept_shares(counts, sample) * (2**32 - 1)).astype(int).tolist()


def cut(ids):
    """Shards, each a list of sentences: whole ones, unless longer than a shard has to be."""
    size = min(max(len(ids) // 64, 512), 32768)
    shards, shard, sentence, length = [], [], [], 0
    for number in ids.tolist():
        sentence.append(number & (LAST - 1))
        length += 1
        if number & LAST or len(sentence) == size:
            shard.append(sentence)
            sentence = []
            if length >= size:
                shards.append(shard)
                shard, length = [], 0
    shard += [sentence] if sentence else []
    return shards + ([shard] if shard else [])


def around(t, half, length):
    """Positions of a sentence that are at most `half` from t, without t."""
    return [p for p in range(max(0, t - half), min(length, t + half + 1)) if p != t]


class Reference:
    """The same as `dcme_w2v.words.trainer.Trainer` with one thread."""

    def __init__(self, ids, counts, options, make_objective):
        self.options, self.tokens = options, len(ids)
        self.input = initial_table(len(counts), options.dim, options.seed)
        self.output = np.zeros_like(self.input)
        self.left, self.right = np.zeros_like(self.input), np.zeros_like(self.input)
        self.objective = make_objective(counts, options, self.output)
        self.rates = np.sqrt(rates_of(counts, options))  # of input rows
        self.loss_every = getattr(self.objective, "loss_every", LOSS_EVERY)
        self.keep = keep_thresholds(counts, options.sample) if options.sample > 0 else None
        self.shards = cut(ids)
        self.trained = self.subsampled = self.without_context = self.seen = 0

    def epoch(self, number):
        """Train an epoch; return its mean loss over the instances that the core samples."""
        position, self.losses = number * self.tokens, []
        learn = {"skipgram": self.skipgram, "cbow": self.cbow_lazy}[self.options.model]
        if (self.options.model, self.options.window_mode) == ("cbow", "shrink"):
            learn = self.cbow
        for index, shard in enumerate(self.shards):
            name = (self.options.seed, number, index)
            self.windows = Stream(*name, WINDOW)
            self.objective.begin(Stream(*name, NOISE))
            for rate, sentences in self.sentence_batches(shard, position, Stream(*name, SUBSAMPLE)):
                for sentence in sentences:
                    learn(sentence, rate)
            position += sum(map(len, shard))
        return np.mean(self.losses)

    def sentence_batches(self, shard, position, stream):
        """The learning rate stays the same over whole sentences of 1024 kept words together."""
        batch, length, begins = [], 0, True
        for sentence in shard:
            if begins:
                behind = position / (self.tokens * self.options.epochs)
                self.rate = max(self.options.lr * (1 - behind), self.options.min_lr)
            begins = False
            position += len(sentence)
            kept = [w for w in sentence if not self.keep or stream.next() >> 32 <= self.keep[w]]
            self.subsampled += len(sentence) - len(kept)
            self.without_context += len(kept) == 1
            if len(kept) > 1:
                batch.append(kept)
                length += len(kept)
            if length >= BATCH_WORDS:
                yield self.rate, batch
                batch, length, begins = [], 0, True
        yield self.rate, batch

    def half_window(self):
        window = self.options.window
        return 1 + self.windows.below(window) if self.options.window_mode == "shrink" else window

    def step(self, target, h, rate):
        gradient, loss = self.objective.step(target, h, rate)
        self.sample(loss)
        return gradient

    def sample(self, loss):
        if self.seen % self.loss_every == 0:
            self.losses.append(loss)
        self.seen += 1

    def near(self, t, sentence):
        """With word order: the neighbors' own rows."""
        if not self.options.word_order:
            return []
        left, right = sentence[max(t - 1, 0) : t], sentence[t + 1 : t + 2]
        return [(self.left, w) for w in left] + [(self.right, w) for w in right]

    def step_at(self, t, sentence, h, rate):
        """The neighbors' own rows are in h, and are updated at once."""
        near = self.near(t, sentence)
        gradient = self.step(sentence[t], h + sum(table[w] for table, w in near), rate)
        for table, w in near:
            table[w] += 4 * rate * gradient
        return gradient

    def share(self, count):
        """By what the direction of h is multiplied for each of `count` context rows."""
        return 1 / count if self.options.gradient == "exact" else 1

    def cbow(self, sentence, rate):
        """Every row is updated as soon as it has been used."""
        for t in range(len(sentence)):
            context = [sentence[p] for p in around(t, self.half_window(), len(sentence))]
            gradient = self.step_at(t, sentence, self.input[context].mean(axis=0), rate)
            move = rate * self.share(len(context)) * gradient
            np.add.at(self.input, context, np.outer(self.rates[context], move))
        self.trained += len(sentence)

    def cbow_lazy(self, sentence, rate):
        """A row is read when its position enters the window, and updated when it leaves it.

        Positions are in blocks of nearly equal length, whose contexts come first.
        """
        c, n = self.options.window, len(sentence)
        rows, owed = self.input[sentence], np.zeros((n, self.options.dim))
        blocks = -(-n // self.options.block)
        for b in range(blocks):
            block = range(n * b // blocks, n * (b + 1) // blocks)
            for t in block:  # rows that enter the window
                first = 0 if t == 0 else t + c
                rows[first : t + c + 1] = self.input[sentence[first : t + c + 1]]
            places = [np.array(around(t, c, n)) for t in block]
            contexts = np.array([rows[of].mean(axis=0) for of in places])
            if self.options.block > 1:
                gradients = self.step_block(block, sentence, contexts, rate)
            else:
                gradients = [self.step_at(b, sentence, contexts[0], rate)]
            for t, of, gradient in zip(block, places, gradients, strict=True):
                owed[of] += self.share(len(of)) * gradient
                if t >= c:
                    self.leave(sentence, t - c, owed, rate)
        for position in range(max(0, n - c), n):
            self.leave(sentence, position, owed, rate)
        self.trained += n

    def leave(self, sentence, position, owed, rate):
        """The row of a position is updated."""
        word = sentence[position]
        self.input[word] += rate * self.rates[word] * owed[position]

    def step_block(self, block, sentence, contexts, rate):
        near = [self.near(t, sentence) for t in block]
        contexts = np.array([
            h + sum(table[w] for table, w in own) for h, own in zip(contexts, near, strict=True)
        ])  # fmt: skip
        targets = [sentence[t] for t in block]
        gradients, losses = self.objective.step_block(targets, contexts, rate)
        for loss in losses:
            self.sample(loss)
        for gradient, own in zip(gradients, near, strict=True):
            for table, w in own:
                table[w] += 4 * rate * gradient
        return gradients

    def skipgram(self, sentence, rate):
        """The row of a word predicts the words around it, one by one."""
        for t, word in enumerate(sentence):
            before = self.vector(word)
            h = before.copy()
            for p in around(t, self.half_window(), len(sentence)):
                gradient = self.step(sentence[p], h, rate)
                h += rate * gradient
            self.add(word, h - before)
        self.trained += len(sentence)

    def vector(self, word):
        return self.input[word].copy()

    def add(self, word, moved):
        self.input[word] += moved

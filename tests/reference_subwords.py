"""Training with subwords in numpy and double precision; see `reference`."""

import numpy as np
from reference import Reference, around, initial_table


class SubwordReference(Reference):
    """The vector of a word is the mean of the row of the word and the rows of its n-grams."""

    def __init__(self, ids, counts, options, make_objective, ngrams):
        super().__init__(ids, counts, options, make_objective)
        items, starts = len(counts), ngrams.starts
        rows = items + ngrams.options.buckets
        self.input = initial_table(rows, options.dim, options.seed)
        self.rows = [
            np.array([word, *(items + ngrams.numbers[starts[word] : starts[word + 1]])])
            for word in range(items)
        ]

    def vector(self, word):
        return self.input[self.rows[word]].mean(axis=0)

    def add(self, word, moved):
        """Add to each of a word's rows, twice if a row occurs twice."""
        np.add.at(self.input, self.rows[word], moved)

    def cbow(self, sentence, rate):
        """Vectors are computed and rows updated at the ends of the widest window."""
        c, n = self.options.window, len(sentence)
        vectors, before = np.zeros((2, n, self.options.dim))
        for p in range(n + c):
            if p < n:
                vectors[p] = before[p] = self.vector(sentence[p])
            if p < c:
                continue
            places = np.array(around(p - c, self.half_window(), n))
            gradient = self.step(sentence[p - c], vectors[places].mean(axis=0), rate)
            vectors[places] += rate * self.share(len(places)) * gradient
            if p >= 2 * c:
                self.add(sentence[p - 2 * c], vectors[p - 2 * c] - before[p - 2 * c])
        for p in range(max(0, n - c), n):
            self.add(sentence[p], vectors[p] - before[p])
        self.trained += n

    cbow_lazy = cbow

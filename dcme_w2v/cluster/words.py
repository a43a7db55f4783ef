"""Train word vectors on a shard for one round, and combine the results of all shards.

Legend: p is the number of shards, m_i the number of steps that row i takes in one shard and
round, and C the mean size of a context.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dcme_w2v._core.models import initialize
from dcme_w2v.classify.constants import RAISED, ROUNDS, TOKENS_A_ROUND
from dcme_w2v.classify.options import ClassifyOptions
from dcme_w2v.errors import UsageError
from dcme_w2v.numeric.arrays import F32, F64, I64, U32
from dcme_w2v.text.cache import LAST
from dcme_w2v.training.trainer import new_table
from dcme_w2v.words.options import Options, TrainOptions, resolved
from dcme_w2v.words.trainer import Trainer

from . import mixing
from .mixing import Directions

SLOPE = 0.25  # kappa, the maximum curvature of the logistic loss (reached at score 0)
SCANNED_AT_ONCE = 1 << 16  # the search for a sentence end scans this many IDs at a time
# Fields of `Progress` that count tokens.
DONE = ("trained", "subsampled", "without_context")
MIXED = ("ns", "nce")  # training objectives that --cluster supports
# Block size in bytes; during a transfer, memory holds several copies of a block.
BLOCK_BYTES = 32 << 20


@dataclass
class Data:
    """The encoded text of a shard, with the word counts of all shards."""

    ids: U32
    counts: I64  # word counts summed over all shards


@dataclass(frozen=True)
class Plan:
    """A plan for training in rounds; its tasks are deterministic functions of their arguments.

    Attributes
    ----------
    options : TrainOptions
        Options of the whole run, resolved.
    shards, rounds : int
        `rounds` is a multiple or a divisor of the number of epochs.
    words : int
        Number of words.
    tokens, kept, noise : float
        Sums over all words of the counts, of the counts after subsampling, and of the counts to the
        power of the noise distribution: a task has only the words of its block.
    """

    options: TrainOptions
    shards: int
    rounds: int
    words: int
    tokens: float
    kept: float
    noise: float

    @classmethod
    def of(cls, options: TrainOptions, shards: int, rounds: int, counts: I64) -> Plan:
        """Create the plan for a vocabulary with the given word counts."""
        tokens = float(counts.sum())
        kept = counts * keep_shares(counts, tokens, options.sample or 0.0)
        noise = float(_noise(options, counts).sum())
        return cls(options, shards, rounds, len(counts), tokens, float(kept.sum()), noise)

    @property
    def blocks(self) -> list[slice]:
        """Blocks of rows; each task combines the same block of both tables."""
        return mixing.blocks(self.words, -(-8 * self.words * self.options.dim // BLOCK_BYTES))

    def begin(self, block: slice) -> F32:
        """Return a block's initial rows in both tables, computed from the seed."""
        whole = new_table(block.stop, self.options.dim)
        initialize(whole, self.options.dim, self.options.seed)
        rows = whole[block, : self.options.dim]
        return np.stack([rows, np.zeros_like(rows)])

    def learn(
        self, number: int, shard: int, loaded: tuple[Data, Any], rows: Sequence[F32]
    ) -> tuple[list[F32], dict[str, Any]]:
        """Train on a shard for one round; return each block's trained rows and statistics.

        A round is one or more epochs, or a part of an epoch. The numbers of the round and the shard
        determine learning rate and random numbers. Shard 0 has the seed of the run: one shard with
        one round an epoch gives the same vectors as one machine.

        Parameters
        ----------
        number, shard : int
            The round and the shard, from 0.
        loaded : (Data, object)
            The result of `load`.
        rows : sequence of ndarray of float32, shape (2, n, dim)
            The rows of each block at the start of the round; not changed.

        Raises
        ------
        DivergedError
            A number is not finite.
        """
        epochs, data = self.options.epochs, loaded[0]
        ids = data.ids
        if self.rounds > epochs:
            ids = part_of(ids, number % (self.rounds // epochs), self.rounds // epochs)
        if not len(ids):
            return list(rows), {**dict.fromkeys(DONE, 0), "loss": None}
        steps, seed = max(self.rounds, epochs), seed_of(self.options.seed, shard)
        options = dataclasses.replace(self.options, epochs=steps, seed=seed)
        training = Trainer(ids, data.counts, options, start=[*np.concatenate(rows, axis=1)])
        for step in range(number * steps // self.rounds, (number + 1) * steps // self.rounds):
            progress = training.epoch(step)
        done = {name: getattr(progress, name) for name in DONE}
        # The loss is not finite if no word was sampled.
        loss = progress.loss if math.isfinite(progress.loss) else None
        learned = [np.stack([training.input[b], training.output[b]]) for b in self.blocks]
        return learned, {**done, "loss": loss, "kernels": training.kernels}

    def moments(self, block: slice, number: int, counts: I64, learned: Sequence[F32]) -> list[F64]:
        """Compute a block's sums of outer products for both tables, for use in `directions`."""
        tables = zip(zip(*learned, strict=True), self.steps(number, counts), strict=True)
        return [mixing.moments(self.words, block, after, own) for after, (own, _) in tables]

    def directions(self, moments: Sequence[list[F64]]) -> tuple[Directions, Directions]:
        """Compute the learning directions of both tables from the moments of all blocks."""
        context = 1.0 if self.options.model == "skipgram" else context_size(self.options)
        inputs, outputs = zip(*moments, strict=True)
        return mixing.directions(outputs, 1.0), mixing.directions(inputs, context)

    def mix(
        self,
        block: slice,
        number: int,
        counts: I64,
        start: F32,
        learned: Sequence[F32],
        found: tuple[Directions, Directions] | None,
    ) -> F32:
        """Combine a block's rows after a round in which each shard has trained them."""
        if found is None:  # a single shard has nothing to combine
            return learned[0]
        steps = (own for _, own in self.steps(number, counts))
        tables = zip(start, zip(*learned, strict=True), steps, found, strict=True)
        return np.stack([mixing.curvature(self.words, block, *one) for one in tables])

    def steps(self, number: int, counts: I64) -> tuple[tuple[F64, F64], tuple[F64, F64]]:
        """Return the number and total size of a shard's steps on each row, for both tables.

        A step of size lr along a direction of curvature lambda goes the share lr * lambda of the
        way to the optimum. An output row makes m_i steps, as target and as noise; the curvature is
        the slope of the logistic function s times the second moment of the context vector h. An
        input row is in C contexts for each token of the word, and learns from 1 + `negative` output
        rows in each context. An input row contributes 1 / C of h, but the C rows of a context take
        the same step, so h moves by the whole step.

        Parameters
        ----------
        number : int
            The number of the round, from 0.
        counts : ndarray of int64, shape (n,)
            Counts of some words in all shards together.

        Returns
        -------
        two pairs of ndarray of float64, shape (n,)
            m_i (for the input table: the tokens after subsampling), and lr * kappa * m_i.
        """
        options, size = self.options, context_size(self.options)
        assert options.negative is not None
        share = options.epochs / self.rounds / self.shards
        kept = share * counts * keep_shares(counts, self.tokens, options.sample or 0.0)
        noise = options.negative * share * self.kept * _noise(options, counts) / self.noise
        output, input_slope = kept + noise, SLOPE * (1 + options.negative)
        # If a word is the target in a fraction pi of its steps, the mean slope of the logistic
        # function is at most pi (1 - pi). This bound is low for rare words, which are mostly used
        # as negative samples.
        share_of_target, mean = kept / np.maximum(output, 1e-300), 1 / (1 + options.negative)
        slope = share_of_target * (1 - share_of_target) / (mean * (1 - mean))
        slope = SLOPE * np.minimum(1, slope)
        if options.model == "skipgram":
            output *= size
        elif options.gradient == "exact":
            input_slope /= size
        rate = rate_at(options, (number + 0.5) / self.rounds)
        input_steps = rate * input_slope * size * kept
        return (kept, input_steps), (output, rate * slope * output)


def check_mixed(options: TrainOptions) -> None:
    """Raise UsageError if the options do not allow tables from several shards to be combined."""
    if options.objective not in MIXED:
        raise UsageError(
            f"--objective={options.objective} is not supported with --cluster; use "
            f"--objective={' or '.join(MIXED)}"
        )
    if options.word_order:
        raise UsageError(
            "--word-order is not supported with --cluster; omit one of the two options"
        )


def rounds_of(rounds: int | None, epochs: int, tokens: int, shards: int) -> int:
    """Check the number of rounds in the options, or return the default number.

    Parameters
    ----------
    rounds : int, optional
    epochs : int
    tokens : int
        Number of tokens of the corpus.
    shards : int
    """
    if rounds is not None:
        if rounds % epochs and epochs % rounds:
            raise UsageError(
                f"--rounds={rounds} must be a multiple or a divisor of --epochs={epochs}"
            )
        return rounds
    if shards == 1:
        return epochs
    return epochs * max(-(-ROUNDS // epochs), -(-tokens // shards // TOKENS_A_ROUND))


def warning_of(shards: int, rounds: int) -> str | None:
    """Return a warning if there are too few rounds for the number of shards, otherwise None."""
    if shards == 1 or rounds >= ROUNDS:
        return None
    return (
        f"warning: --rounds={rounds} is low for {shards} shards; vectors are worse with fewer "
        f"than {ROUNDS} rounds; raise --rounds"
    )


def resolved_for(options: Options, words: int, shards: int) -> Options:
    """Fill in the default options, with a higher learning rate if there are several shards."""
    if options.lr is None and shards > 1:
        rate = resolved(options, words).lr
        assert rate is not None
        options = dataclasses.replace(options, lr=RAISED * rate)
    return resolved(options, words)


def seed_of(seed: int, shard: int) -> int:
    """Return a shard's seed: the run's seed for shard 0, and a hash for all other shards."""
    if shard == 0:
        return seed
    found = hashlib.sha256(f"{seed} {shard}".encode()).digest()
    return int.from_bytes(found[:8], "little") >> 1


def part_of(ids: U32, part: int, parts: int) -> U32:
    """Return the part of an encoded text with index `part`; parts end with whole sentences."""
    begin, end = (_next_sentence(ids, len(ids) * i // parts) for i in (part, part + 1))
    return ids[begin:end]


def _next_sentence(ids: U32, position: int) -> int:
    """Return the position of the first sentence that starts at or after a position."""
    if position == 0:
        return 0
    for first in range(position - 1, len(ids), SCANNED_AT_ONCE):
        ends = np.flatnonzero(ids[first : first + SCANNED_AT_ONCE] & LAST)
        if len(ends):
            return int(first + ends[0] + 1)
    return len(ids)


def context_size(options: TrainOptions) -> float:
    """Return C, the mean number of words in a context."""
    return options.window + 1.0 if options.window_mode == "shrink" else 2.0 * options.window


def _noise(options: TrainOptions, counts: I64) -> F64:
    return np.where(counts > 0, np.maximum(counts, 1.0) ** (options.noise_power or 0), 0.0)


def keep_shares(counts: I64, tokens: float, sample: float) -> F64:
    """Return, for each word, the fraction of its tokens that the C core's subsampling keeps."""
    if not sample:
        return np.ones(len(counts))
    ratio = sample * tokens / np.maximum(counts, 1)
    return np.asarray(np.minimum(1.0, np.sqrt(ratio) + ratio))


def rate_at(options: TrainOptions | ClassifyOptions, done: float) -> float:
    """Return the learning rate after a fraction `done` of the training."""
    assert options.lr is not None and options.min_lr is not None
    return max(options.lr * (1 - done), options.min_lr)

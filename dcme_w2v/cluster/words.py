"""Word vectors on a cluster: training of a shard in one round, and the steps that mixing needs.

Legend: p shards; m_i steps of row i in a shard and round; C mean size of a context.
"""

import dataclasses
import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dcme_w2v._core.train import initialize
from dcme_w2v.classify.options import ClassifyOptions
from dcme_w2v.errors import FormatError, UsageError
from dcme_w2v.formats.npy import read_npy
from dcme_w2v.formats.vocabulary import Vocabulary
from dcme_w2v.numeric.arrays import F32, F64, I64, U32, Array
from dcme_w2v.numeric.core import new_table
from dcme_w2v.options import VocabularyOptions
from dcme_w2v.text.cache import LAST
from dcme_w2v.text.encode import encode
from dcme_w2v.training.trainer import hash_of
from dcme_w2v.words.defaults import resolved
from dcme_w2v.words.job import TrainJob
from dcme_w2v.words.options import TrainOptions
from dcme_w2v.words.start import TrainedTables, load_initial, start_from
from dcme_w2v.words.trainer import Trainer

from . import mixing
from .mixing import Directions
from .rounds import Block, Learned, Work
from .shards import Shard

SLOPE = 0.3  # kappa, the curvature of the logistic loss, fitted
SCANNED_AT_ONCE = 1 << 16  # ids, in search of the end of a sentence
DONE = ("trained", "subsampled", "without_context")  # counts of tokens in `Progress`
RAISED = 1.5  # factor of the learning rate if there are several shards
# Rounds for vectors as good as on one machine (docs/results/cluster.md): ROUNDS_A_SHARD for each
# shard, at most ROUNDS_ENOUGH.
ROUNDS_A_SHARD, ROUNDS_ENOUGH = 5, 20
TOKENS_A_ROUND = 5_000_000  # default maximum of a shard
TABLES = ("input", "output")
MIXED = ("ns", "nce")  # objectives whose shards can be mixed


@dataclass(frozen=True)
class Totals:
    """Sums over all words; a task that mixes a block has only the words of the block.

    Attributes
    ----------
    tokens, kept, noise : float
        Sums of the counts, of the counts after subsampling, and of the counts to the power of the
        noise distribution.
    """

    tokens: float
    kept: float
    noise: float


@dataclass(frozen=True)
class Plan:
    """The options, the number of shards and how many rounds a run has.

    Attributes
    ----------
    options : TrainOptions
        Options of the whole run, resolved.
    shards, rounds : int
        `rounds` is a multiple or a divisor of the number of epochs.
    """

    options: TrainOptions
    shards: int
    rounds: int

    def totals(self, counts: I64) -> Totals:
        """Return the sums that `steps` needs."""
        tokens = float(counts.sum())
        kept = counts * keep_shares(counts, tokens, self.options.sample or 0.0)
        return Totals(tokens, float(kept.sum()), float(self._noise(counts).sum()))

    def _noise(self, counts: I64) -> F64:
        return np.where(counts > 0, np.maximum(counts, 1.0) ** (self.options.noise_power or 0), 0.0)

    def learn(
        self,
        shard: int,
        number: int,
        ids: U32,
        counts: I64,
        tables: Sequence[F32],
    ) -> tuple[list[F32], dict[str, Any]]:
        """Train the tables on the text of a shard in a round; return the tables and figures.

        A round is one or more epochs, or a part of an epoch. The numbers of the round and the shard
        determine learning rate and random numbers. Shard 0 has the seed of the run: one shard with
        one round an epoch gives the same vectors as one machine.

        Parameters
        ----------
        shard, number : int
            The shard and the round, from 0.
        ids : ndarray of uint32, shape (n,)
            The shard's text; bit 31 marks the last word of a sentence.
        counts : ndarray of int64, shape (words,)
            Counts of the words in all shards together, for subsampling and noise.
        tables : sequence of ndarray of float32, shape (words, dim)
            The input and the output table at the start of the round; not changed.

        Raises
        ------
        DivergedError
            A number is not finite.
        """
        epochs = self.options.epochs
        if self.rounds > epochs:
            ids = part_of(ids, number % (self.rounds // epochs), self.rounds // epochs)
        if not len(ids):
            return list(tables), {**dict.fromkeys(DONE, 0), "loss": None}
        steps = max(self.rounds, epochs)
        seed = seed_of(self.options.seed, shard)
        options = dataclasses.replace(self.options, epochs=steps, seed=seed)
        training = Trainer(ids, counts, options, start=tables)
        for step in range(number * steps // self.rounds, (number + 1) * steps // self.rounds):
            progress = training.epoch(step)
        done = {name: getattr(progress, name) for name in DONE}
        loss = progress.loss if math.isfinite(progress.loss) else None  # none sampled
        done |= {"loss": loss, "kernels": training.kernels}
        return [training.input, training.output], done

    def steps(self, number: int, counts: I64, totals: Totals) -> dict[str, tuple[F64, F64]]:
        """Return the steps of the rows of each table in one shard, which `mixing` needs.

        A step of size lr along a direction of curvature lambda goes the share lr * lambda of the
        way to the optimum. An output row makes m_i steps, as target and as noise; the curvature is
        the slope of the logistic function s times the second moment of the context vector h. An
        input row is in C contexts for each token of the word, and learns from 1 + `negative` output
        rows in each context. It is 1 / C of h, but the C rows of a context take the same step: h
        moves by all of the step.

        Parameters
        ----------
        number : int
            The number of the round, from 0.
        counts : ndarray of int64, shape (n,)
            Counts of some words in all shards together.
        totals : Totals

        Returns
        -------
        dict of (ndarray of float64, shape (n,), ndarray of float64, shape (n,))
            m_i (for the input table: the tokens after subsampling), and lr * kappa * m_i.
        """
        options, size = self.options, context_size(self.options)
        assert options.negative is not None and options.input_rate is not None
        share = options.epochs / self.rounds / self.shards
        kept = share * counts * keep_shares(counts, totals.tokens, options.sample or 0.0)
        noise = options.negative * share * totals.kept * self._noise(counts) / totals.noise
        output, input_slope = kept + noise, SLOPE * (1 + options.negative)
        # the slope s (1 - s) is at most pi (1 - pi) on average, where the mean of s is the share pi
        # of the steps as target: little for rare words, most of whose steps are as noise
        share_of_target, mean = kept / np.maximum(output, 1e-300), 1 / (1 + options.negative)
        slope = share_of_target * (1 - share_of_target) / (mean * (1 - mean))
        slope = SLOPE * np.minimum(1, slope)
        if options.model == "skipgram":
            output *= size
        elif options.gradient == "exact":
            input_slope /= size
        rate = rate_at(options, (number + 0.5) / self.rounds)
        input_steps = rate * options.input_rate * input_slope * size * kept
        return {"input": (kept, input_steps), "output": (output, rate * slope * output)}

    def directions(self, moments: Mapping[str, Sequence[F64]]) -> dict[str, Directions]:
        """Return the directions of both tables from the moments of all blocks of both."""
        context = 1.0 if self.options.model == "skipgram" else context_size(self.options)
        return {
            "input": mixing.directions(moments["output"], 1.0),
            "output": mixing.directions(moments["input"], context),
        }


def initial_rows(table: str, rows: slice, options: TrainOptions) -> F32:
    """Return rows of the input or the output table before the first round, from the seed."""
    if table == "output":
        return np.zeros((rows.stop - rows.start, options.dim), dtype=np.float32)
    whole = new_table(rows.stop, options.dim)
    initialize(whole, options.dim, options.seed)
    return np.array(whole[rows, : options.dim])


def check_mixed(options: TrainOptions) -> None:
    """Raise UsageError for a training whose shards cannot be mixed."""
    if options.objective not in MIXED:
        raise UsageError(
            f"--objective={options.objective}: is not supported with --cluster; give "
            f"--objective={' or '.join(MIXED)}"
        )
    if options.word_order:
        raise UsageError("--word-order: is not supported with --cluster; remove one of them")


def rounds_of(rounds: int | None, epochs: int, tokens: int, shards: int) -> int:
    """Return the given number of rounds, or the default.

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
                f"--rounds={rounds}: must be a multiple of --epochs={epochs}, or divide it"
            )
        return rounds
    if shards == 1:
        return epochs
    return epochs * max(-(-rounds_needed(shards) // epochs), -(-tokens // shards // TOKENS_A_ROUND))


def rounds_needed(shards: int) -> int:
    """Return the number of rounds that several shards need."""
    return min(ROUNDS_ENOUGH, ROUNDS_A_SHARD * shards)


def warning_of(shards: int, rounds: int) -> str | None:
    """Return a warning if there are fewer rounds than the shards need."""
    if shards == 1 or rounds >= rounds_needed(shards):
        return None
    return (
        f"warning: {shards} shards have --rounds={rounds}; vectors are worse with fewer than "
        f"{rounds_needed(shards)}: give more"
    )


def resolved_for(options: TrainOptions, words: int, shards: int) -> TrainOptions:
    """Return the options with all defaults; with several shards, the learning rate is higher."""
    if options.lr is None and shards > 1:
        rate = resolved(options, words).lr
        assert rate is not None
        options = dataclasses.replace(options, lr=RAISED * rate)
    return resolved(options, words)


def seed_of(seed: int, shard: int) -> int:
    """Return the seed of a shard: the seed of the run for shard 0, a hash for others."""
    if shard == 0:
        return seed
    found = hashlib.sha256(f"{seed} {shard}".encode()).digest()
    return int.from_bytes(found[:8], "little") >> 1


def part_of(ids: U32, part: int, parts: int) -> U32:
    """Return one of several parts of encoded text of about equal size, in whole sentences."""
    begin, end = (_next_sentence(ids, len(ids) * i // parts) for i in (part, part + 1))
    return ids[begin:end]


def _next_sentence(ids: U32, position: int) -> int:
    """Return the position of the first sentence that begins at a position or after it."""
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


def keep_shares(counts: I64, tokens: float, sample: float) -> F64:
    """Return the share of the tokens of each word that subsampling keeps, as in csrc/train."""
    if not sample:
        return np.ones(len(counts))
    ratio = sample * tokens / np.maximum(counts, 1)
    return np.asarray(np.minimum(1.0, np.sqrt(ratio) + ratio))


def rate_at(options: TrainOptions | ClassifyOptions, done: float) -> float:
    """Return the learning rate after a share `done` of the training."""
    assert options.lr is not None and options.min_lr is not None
    return max(options.lr * (1 - done), options.min_lr)


@dataclass
class Data:
    """The encoded text of a shard."""

    ids: U32
    counts: I64  # in all shards
    own: I64  # in this shard
    lines: int


@dataclass(frozen=True)
class WordsWork(Work):
    """Training of word vectors; the pieces of shard 0 also hold the counts of the rows."""

    plan: Plan
    totals: Totals
    parts: tuple[Shard, ...]
    vocabulary: VocabularyOptions
    cache_dir: str | None
    rule: str
    words: int
    shards: int
    blocks: tuple[Block, ...]
    writes_tables: bool = False

    @property
    def has_parts(self) -> bool:  # type: ignore[override]
        """Whether the rule needs the directions of the tables."""
        return self.rule == "curvature" and self.shards > 1

    def label(self, shard: int) -> str:
        """Return the name of a shard."""
        return self.parts[shard].name

    def begin(self, block: Block) -> F32:
        """Return the rows of a block from the seed."""
        return initial_rows(block.table, block.rows, self.plan.options)

    def load(self, shard: int, shared: Vocabulary) -> Data:
        """Encode the text of a shard."""
        text = self.parts[shard].corpus(self.vocabulary)
        corpus = encode(text, self.vocabulary, vocabulary=shared, cache_dir=self.cache_dir)
        return Data(corpus.ids, shared.counts, corpus.counts, corpus.lines)

    def learn(self, number: int, shard: int, data: Data, tables: dict[str, Array]) -> Learned:
        """Train the tables on a shard."""
        start = [tables[name] for name in TABLES]
        rows, note = self.plan.learn(shard, number, data.ids, data.counts, start)
        after = dict(zip(TABLES, rows, strict=True))
        pieces = [
            (after[block.table][block.rows], data.counts[block.rows] if shard == 0 else None)
            for block in self.blocks
        ]
        return Learned(pieces, note)

    def part(self, number: int, block: Block, start: F32, pieces: list[Any]) -> F64:
        """Return the moments of a block's rows."""
        weights, _ = self._steps(number, block, pieces)
        return mixing.moments(self.words, block.rows, [rows for rows, _ in pieces], weights)

    def join(self, number: int, parts: list[F64]) -> dict[str, Directions]:
        """Return the directions of both tables."""
        found: dict[str, list[F64]] = {name: [] for name in TABLES}
        for block, part in zip(self.blocks, parts, strict=True):
            found[block.table].append(part)
        return self.plan.directions(found)

    def mix(self, number: int, block: Block, start: F32, pieces: list[Any], joined: Any) -> F32:
        """Return the rows of a block after the round."""
        learned = [rows for rows, _ in pieces]
        if joined is None:
            return mixing.mean(learned) if len(learned) > 1 else learned[0]
        _, steps = self._steps(number, block, pieces)
        return mixing.curvature(self.words, block.rows, start, learned, steps, joined[block.table])

    def _steps(self, number: int, block: Block, pieces: list[Any]) -> tuple[F64, F64]:
        return self.plan.steps(number, pieces[0][1], self.totals)[block.table]


def figures_of(data: Data, counts: bool) -> dict[str, Any]:
    """Return the figures of a shard that the program adds up, and a hash of the text."""
    own = data.own if counts else None
    return {"ids": len(data.ids), "lines": data.lines, "hash": hash_of([data.ids]), "counts": own}


# ---- tables of a checkpoint or of --init, which workers read before the first round ----


def check_init(job: TrainJob) -> None:
    """Raise UsageError if the initial vectors are not in files, or their words are to be kept."""
    for name in ("init", "init_context"):
        if getattr(job, name) is not None and not isinstance(getattr(job, name), str):
            raise UsageError(f"{name}: workers read it from a file with --cluster; give a path")
    if job.new_words.init_vocab != "new":
        raise UsageError(
            f"--init-vocab={job.new_words.init_vocab}: is not supported with --cluster; remove it"
        )


def rows_of(
    block: Block, options: TrainOptions, init: str, context: str | None, vocabulary: Vocabulary
) -> F32:
    """Return the rows of a block: the given vectors, and random rows for other words."""
    whole = slice(0, len(vocabulary))
    input, output = (initial_rows(one, whole, options) for one in TABLES)
    tables = TrainedTables(options, input, output)
    start_from(load_initial(init, "--init"), context, tables, vocabulary)
    found = {"input": input, "output": output}[block.table]
    return np.array(found[block.rows])


def saved_rows(folder: str, block: Block) -> F32:
    """Return the rows of a block in a checkpoint."""
    path = Path(folder) / f"{block.table}.npy"
    try:
        return np.array(read_npy(path)[block.rows])
    except (FormatError, OSError) as error:
        raise FormatError(
            f"{path}: cannot be read ({error}): give a folder that all workers have"
        ) from error

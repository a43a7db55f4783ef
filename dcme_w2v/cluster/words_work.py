"""`WordsWork`: training of word vectors as a `Work` of `dcme_w2v.cluster.rounds`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dcme_w2v.errors import FormatError, UsageError
from dcme_w2v.formats.npy import read_npy
from dcme_w2v.formats.vocabulary import Vocabulary
from dcme_w2v.numeric.arrays import F32, F64, I64, U32, Array
from dcme_w2v.options import VocabularyOptions
from dcme_w2v.text.encode import encode
from dcme_w2v.training.training_run import hash_of
from dcme_w2v.words.job import TrainJob
from dcme_w2v.words.options import TrainOptions
from dcme_w2v.words.start import TrainedTables, load_initial, start_from

from . import mixing
from .mixing import Directions
from .rounds import Block, Learned, Work
from .shards import Shard
from .words import TABLES, Plan, Totals, initial_rows


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

"""Tables of a checkpoint or of --init, which workers read before the first round."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dcme_w2v.cluster.mixing import Rows
from dcme_w2v.cluster.rounds import Block
from dcme_w2v.cluster.words import TABLES, initial_rows
from dcme_w2v.errors import FormatError, UsageError
from dcme_w2v.formats.npy import read_npy
from dcme_w2v.formats.vocabulary import Vocabulary
from dcme_w2v.words.job import TrainJob
from dcme_w2v.words.options import TrainOptions
from dcme_w2v.words.start import TrainedTables, load_initial, start_from


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
) -> Rows:
    """Return the rows of a block: the given vectors, and random rows for other words."""
    whole = slice(0, len(vocabulary))
    input, output = (initial_rows(one, whole, options) for one in TABLES)
    tables = TrainedTables(options, input, output)
    start_from(load_initial(init, "--init"), context, tables, vocabulary)
    found = {"input": input, "output": output}[block.table]
    return np.array(found[block.rows])


def saved_rows(folder: str, block: Block) -> Rows:
    """Return the rows of a block in a checkpoint."""
    path = Path(folder) / f"{block.table}.npy"
    try:
        return np.array(read_npy(path)[block.rows])
    except (FormatError, OSError) as error:
        raise FormatError(
            f"{path}: cannot be read ({error}): give a folder that all workers have"
        ) from error

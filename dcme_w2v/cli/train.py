"""The command ``train``, which also accepts the command lines of word2vec.c."""

import os
from pathlib import Path
from typing import Any

from dcme_w2v.errors import UsageError
from dcme_w2v.options import (
    CheckpointOptions,
    ClusterOptions,
    HoldoutOptions,
    LogOptions,
    SeedsOptions,
    SubwordOptions,
    VocabularyOptions,
)
from dcme_w2v.words.options import (
    FileOptions,
    NewWordsOptions,
    OutputOptions,
    PresetOptions,
    RoundsOptions,
    TrainOptions,
)

from .command import command
from .options import (
    arguments,
    dry_run_option,
    given_options,
    json_option,
    options_of,
    quiet_option,
    show_plan,
)
from .streams import print_json


@command(
    warns=False,
    word2vec=True,
    example="dcme-w2v train corpus.txt --output vectors.bin\n"
    "zcat corpus.gz | dcme-w2v train - --output vectors.safetensors --dim 200 --checkpoint state",
)
@arguments("<[corpus]...")
@options_of(
    FileOptions,
    PresetOptions,
    VocabularyOptions,
    NewWordsOptions,
    TrainOptions,
    SubwordOptions,
    HoldoutOptions,
    OutputOptions,
    ClusterOptions,
    RoundsOptions,
    CheckpointOptions,
    LogOptions,
)
@options_of(SeedsOptions, advanced=True)
@dry_run_option
@json_option
@quiet_option
def train(
    corpus: tuple[str, ...], quiet: bool, dry_run: bool, as_json: bool, **values: Any
) -> None:
    """Train word vectors on text.

    CORPUS: files, folders or - for standard input; the input may be compressed (gzip, bzip2, xz,
    zstd). Each line is a sentence, and tokens are separated by whitespace. The options and measures
    of the run are recorded in the .safetensors file, or in VECTORS.json beside a file in another
    format. Command lines for word2vec.c work unchanged (-train, -output, -size, -iter, -alpha,
    -cbow, -binary, -hs, -debug), with the defaults of word2vec.c. Results of runs with several
    threads differ, unless --deterministic is given. On SIGINT, SIGTERM or SIGHUP, training saves
    its state and stops.
    """
    # Unless OPENBLAS_NUM_THREADS is 1, NumPy starts BLAS threads, which training does not use.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from dcme_w2v import train as trained
    from dcme_w2v.formats.corpus import CorpusPaths

    from .signals import recording_signals

    given = {name: values[name] for name in given_options() if name in values}
    unk = given.get("unk")
    if not corpus and unk is not None and Path(unk).exists():
        raise UsageError(
            f"no corpus was given, because {unk} was read as the value of --unk; put --unk last"
        )
    if not corpus:
        raise UsageError("no corpus was given; pass files or folders, or - for standard input")
    if "output" not in given and not dry_run:
        raise UsageError("no --output was given; choose a file for the vectors, or use --dry-run")
    found = trained(
        CorpusPaths(corpus),
        progress=False if quiet else "stderr",
        signals=recording_signals(),
        dry_run=dry_run,
        **given,
    )
    if dry_run:
        show_plan(found, as_json)
    elif as_json:
        print_json(found.manifest)

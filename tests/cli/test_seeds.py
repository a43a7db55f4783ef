"""--seeds repeats a command, and the table has mean and standard deviation of its measures."""

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest
from helpers import manifest

from dcme_w2v.cli.seeds import measures_of, numbered, table_of

WORDS = "train c.txt --dim 4 --epochs 1 --min-count 1 --sample 0 --threads 1 --quiet --output"
CLASSES = "classify train d.txt --holdout h.tsv --epochs 1 --threads 1 --quiet --output"
EVAL = {
    "eval similarity v.bin p.txt": "v.bin",
    "eval analogies v.bin q.txt": "v.bin",
    "eval sts v.bin sts.tsv": "v.bin",
    "eval likelihood t c.txt": "t",
    "classify test m h.tsv --confusion o.tsv": "m",
}


def files():
    return {str(one) for one in Path().iterdir()}


@pytest.mark.parametrize(
    "line, names, measure",
    [
        (f"{WORDS} v.bin --holdout h.txt", "v.bin", "heldout log probability"),
        (f"{WORDS} o --output-tables v.bin --log-json log", "v.bin o log", "loss"),
        (f"{CLASSES} v.bin", "v.bin", "heldout log likelihood"),
    ],
)
def test_trainings_are_those_of_the_seeds(cli, work, line, names, measure):
    Path("h.tsv").write_text(Path("d.txt").read_text())
    before = files()
    found = cli.json(f"{line} --seed 5 --seeds 3")
    added = {one.removesuffix(".json") for one in files() - before}
    assert added == {numbered(one, seed) for one in names.split() for seed in (5, 6, 7)}
    alone = [dict(measures_of(cli.json(f"{line} --seed {seed}"))) for seed in (5, 6, 7)]
    values = found["measures"][measure]["values"]
    assert found["seeds"] == [5, 6, 7] and values == [one[measure] for one in alone]
    assert len({*values}) == 3
    assert found["measures"][measure]["mean"] == pytest.approx(np.mean(values))
    assert found["measures"][measure]["standard_deviation"] == pytest.approx(np.std(values, ddof=1))


@pytest.mark.parametrize("line, model", EVAL.items())
def test_evaluations_read_the_files_of_the_seeds(cli, work, line, model):
    Path("h.tsv").write_text(Path("d.txt").read_text())
    made = {"v.bin": f"{WORDS} v.bin", "t": f"{WORDS} o --output-tables t", "m": f"{CLASSES} m"}
    cli(f"{made[model]} --seeds 2")
    found = cli.json(f"{line} --seeds 2")["measures"]
    for seed in (1, 2):
        one = cli.json(line.replace(model, numbered(model, seed), 1))
        shared = set(found) & {key.replace("_", " ") for key in one}
        assert shared
        for name in shared:
            assert found[name]["values"][seed - 1] == one[name.replace(" ", "_")]
    assert found and Path("o-2.tsv").exists() == ("confusion" in line)


def test_tables_have_each_measure_in_each_format(cli, work):
    cli(f"{WORDS} v.bin --seeds 2")
    line = "eval similarity v.bin p.txt --seeds 2"
    found = cli.json(line)["measures"]
    rows = [*csv.reader(io.StringIO(cli(f"{line} --table csv")))]
    assert rows[0] == ["measure", "mean", "standard deviation", "seed 1", "seed 2"]
    for name, mean, deviation, *values in rows[1:]:
        wanted = [found[name]["mean"], found[name]["standard_deviation"], *found[name]["values"]]
        np.testing.assert_allclose([*map(float, (mean, deviation, *values))], wanted, rtol=1e-5)
    assert cli(line) == cli(f"{line} --table markdown")
    assert cli(line).splitlines()[1] == "| --- | --- | --- | --- | --- |"
    assert cli("eval similarity v-1.bin p.txt --table csv").splitlines()[0] == "measure,value"
    shown = table_of({"f_1 & 50 %": [0.5, 1.0]}, [1, 2], "latex")
    assert r"f\_1 \& 50 \% & 0.7500 & 0.3536 & 0.5000 & 1.0000 \\" in shown
    assert json.loads(json.dumps(found)) == found and manifest("v-2.bin")["options"]["seed"] == 2


@pytest.mark.parametrize(
    "path, wanted",
    [("v.bin", "v-3.bin"), ("a/v.txt.gz", "a/v-3.txt.gz"), ("m", "m-3"), (".m", ".m-3")],
)
def test_the_number_stands_before_the_suffix(path, wanted):
    assert numbered(path, 3) == wanted

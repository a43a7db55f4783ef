"""Damaged fused models and wrong use: one error line, and no file is left behind."""

import shutil
import subprocess
import sys

import numpy as np
import pytest
from helpers import refused

from dcme_w2v.classify.model import load_classifier
from dcme_w2v.cli.main import run

LINES = ["cup tea leaf", "bus road stop", "tea water cup", "road bus seat"]


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    labelled = [f"{'ab'[i % 2]}\t{LINES[i % 4]}\n" for i in range(8)]
    (folder / "l.tsv").write_text("".join(labelled))
    (folder / "u.txt").write_text("".join(f"{line}\n" for line in LINES * 5))
    forms = {
        "beside": "--final beside", "distill": "--no-choose",
    }  # fmt: skip
    for name, more in forms.items():
        line = f"fuse fit {folder}/l.tsv --unlabelled {folder}/u.txt --quiet --threads 1 {more}"
        assert run([*line.split(), "--output", str(folder / name)]) == 0
    return folder


def test_numbers_too_large_for_probabilities(models, tmp_path, capsys):
    folder = shutil.copytree(models / "beside", tmp_path / "m")
    values = np.load(folder / "values.npy")
    np.save(folder / "values.npy", values * 1e300)
    docs = tmp_path / "d.tsv"
    docs.write_text("a\tcup tea\n")
    code = run(["classify", "predict", str(folder), str(docs)])
    assert str(folder) in refused(capsys, code)


def test_models_and_parts_of_another_kind(models, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("l.tsv", "u.txt", "beside"):
        (tmp_path / name).symlink_to(models / name)
    (tmp_path / "text.npz").write_text("no archive")
    for line, said in (
        ("transform u.txt l.tsv --output x.npz", "u.txt"),
        ("levels none", "none: is not a model"),
        ("statistics none u.txt --output p.npz", "none: is not a model"),
        ("fit l.tsv --reference beside --resume-statistics text.npz --output m", "text.npz"),
        ("fit l.tsv --reference beside --resume-statistics none.npz --output m", "none.npz"),
        ("fit l.tsv --unlabelled u.txt --output l.tsv", "l.tsv"),
        ("fit l.tsv --unlabelled u.txt --output no/m", "there is no folder"),
        ("transform beside u.txt --output x.txt", "give a file that ends in .npz"),
    ):
        more = ["--quiet"] * line.startswith(("fit", "statistics"))
        assert said in refused(capsys, run(["fuse", *line.split(), *more])), line
    assert {path.name for path in tmp_path.iterdir()} == {"l.tsv", "u.txt", "beside", "text.npz"}


def test_two_concurrent_runs_leave_one_complete_model(models, tmp_path):
    line = f"fuse fit {models}/l.tsv --unlabelled {models}/u.txt --quiet --threads 1 --output"
    command = [sys.executable, "-m", "dcme_w2v", *line.split(), str(tmp_path / "m")]
    running = [subprocess.Popen(command, stderr=subprocess.PIPE) for _ in range(2)]
    codes = [one.wait() for one in running]
    for one in running:
        one.stderr.close()
    assert 0 in codes
    assert load_classifier(tmp_path / "m").classes == ["a", "b"]
    assert [path.name for path in tmp_path.iterdir() if not path.name.startswith(".")] == ["m"]


def test_closed_output_and_empty_input(models, tmp_path, capsys, monkeypatch):
    (tmp_path / "empty").write_text("")
    (tmp_path / "blank").write_text("\n\n\n")
    fit = f"fuse fit {models}/l.tsv --output {tmp_path}/m --quiet --unlabelled"
    assert "no unlabelled documents" in refused(capsys, run([*fit.split(), f"{tmp_path}/empty"]))
    assert "0 of the" in refused(capsys, run([*fit.split(), f"{tmp_path}/blank"]))
    monkeypatch.setattr(sys, "stdout", None)
    assert run(["fuse", "levels", str(models / "beside")]) == 2
    assert "standard output: is closed" in capsys.readouterr().err

"""Every seeded fault has its place, and files of tests that should notice it."""

import importlib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_fault_has_its_place_and_its_tests(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tests" / "mutants")
    faults, run = importlib.import_module("faults"), importlib.import_module("run")
    for fault in faults.FAULTS:
        run.place_of(fault, ROOT)
        for name in fault.tests.split():
            pattern = f"c/test_{name[2:]}.c" if name.startswith("c/") else f"*/test_{name}.py"
            assert list((ROOT / "tests").glob(pattern)), (fault.name, name)

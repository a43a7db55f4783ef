"""scripts/fuzz_files.py with few inputs; `make fuzz` uses many."""

import random
import subprocess
import sys
from pathlib import Path

SCRIPTS = Path(__file__).parents[1] / "scripts"


def test_no_reader_crashes_or_hangs(tmp_path):
    command = [sys.executable, str(SCRIPTS / "fuzz_files.py"), "--inputs", "20", "--seed", "5"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith(", 0 readers failed\n")
    assert list(tmp_path.iterdir()) == []


def test_an_input_is_determined_by_seed_name_and_number(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPTS))
    from fuzz_mutations import mutation

    path, data = tmp_path / "x.json", b'{"a": [1, 2, {"b": 3}], "c": "d"}'
    made = [mutation(path, data, random.Random(f"1 x {number % 50}")) for number in range(100)]
    assert made[:50] == made[50:]
    assert len({files[path] for files in made}) > 30

"""Contents of the source distribution and of the wheels; unsupported platforms."""

import ast
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from helpers import parsed

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]
SETUP = """
import runpy, sys
import Cython.Build, setuptools.command.build_ext
sys.platform = sys.argv.pop(1)
sys.argv[0] = "setup.py"
runpy.run_path("setup.py", run_name="__main__")
"""


def setup(*arguments, platform=sys.platform):
    """Run setup.py as on a platform."""
    pytest.importorskip("Cython")
    command = [sys.executable, "-c", SETUP, platform, "-q", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)


def tracked_files():
    """Return the names of the files of the repository."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    if not (ROOT / ".git").exists() or not shutil.which("git"):
        pytest.skip("not a clone of the repository")
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return {name for name in names.splitlines() if (ROOT / name).is_file()}


def test_the_source_distribution_is_the_repository(tmp_path):
    tracked = tracked_files()
    done = setup("egg_info", "--egg-base", tmp_path)
    assert done.returncode == 0, done.stderr
    (listed,) = tmp_path.glob("*.egg-info/SOURCES.txt")
    names = {name for name in listed.read_text().splitlines() if ".egg-info/" not in name}
    assert names == tracked - {".gitignore"}


def test_every_test_is_collected_with_the_tools_of_make_test():
    """Modules of the extra `dev` are imported by the tests that need them."""
    tomllib = pytest.importorskip("tomllib")  # from Python 3.11 on
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    only = {re.match("[A-Za-z0-9]+", one)[0] for one in extras["dev"]} - {"dcme"}
    for path in (ROOT / "tests").rglob("*.py"):
        for line in parsed(path).body:
            if isinstance(line, ast.Import | ast.ImportFrom):
                assert not only & set(re.split(r"\W+", ast.unparse(line))), path


def test_windows_is_one_line_of_error():
    done = setup("egg_info", platform="win32")
    assert done.returncode == 1
    assert done.stderr.startswith("error: dcme-w2v is not built on Windows")
    assert done.stderr.count("\n") == 1


@pytest.mark.skipif(os.name == "nt", reason="no build on Windows")
@pytest.mark.skipif(sysconfig.get_config_var("Py_GIL_DISABLED"), reason="has no limited API")
@pytest.mark.parametrize("version", ["cp310", f"cp3{sys.version_info.minor + 1}"])
def test_an_unsupported_limited_api_is_an_error(tmp_path, version):
    done = setup("bdist_wheel", f"--py-limited-api={version}", "--dist-dir", tmp_path,
                 "--bdist-dir", tmp_path / "bdist")  # fmt: skip
    assert done.returncode == 1
    assert f"error: --py-limited-api={version}: " in done.stderr
    assert "Traceback" not in done.stderr

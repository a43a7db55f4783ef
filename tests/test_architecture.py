"""The page on architecture names every package and module, and only existing files."""

import ast
import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "dcme_w2v"
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
FILE = r"[a-z_0-9]+(?:/[a-z_0-9]+)*\.(?:py|pyx|c|h|md)"
HOPS = re.findall(rf"`({FILE})`(?:\s`([A-Za-z_]+)`)?", PAGE)


def found(name):
    return next((base / name for base in (PACKAGE, ROOT) if (base / name).is_file()), None)


@pytest.mark.parametrize("name, function", sorted(set(HOPS)))
def test_every_file_and_function_that_is_named_exists(name, function):
    if name == "estimator.py":  # of some package
        return
    path = found(name)
    assert path is not None, name
    if function and path.suffix == ".py":
        assert re.search(
            rf"^ *(?:def|class) {function}\b|^{function}\b.*=", path.read_text(), re.MULTILINE
        )
    elif function:
        assert re.search(rf"\b{function}\(", path.read_text())


def test_rooms_import_only_rooms_below_them():
    layers = runpy.run_path(str(ROOT / "scripts" / "layers.py"), run_name="layers")
    rooms = {room for line in layers["LAYERS"] for room in line}
    there = {path.stem for path in PACKAGE.glob("*.py")} | {
        path.parent.name for path in PACKAGE.glob("*/__init__.py")
    }
    assert there - {"__init__"} <= rooms
    assert not layers["wrong_arrows"]()


LONGEST = 60  # lines of a function, without its docstring


def lines_of(function):
    described = ast.get_docstring(function) is not None
    docstring = function.body[0].end_lineno - function.body[0].lineno + 1 if described else 0
    return function.end_lineno - function.lineno + 1 - docstring


def test_functions_are_short():
    long = {
        (path.relative_to(PACKAGE).as_posix(), node.name)
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and lines_of(node) > LONGEST
    }
    assert not long


def test_one_file_of_the_core_asks_for_the_system():
    standard = (
        "assert errno float inttypes limits math stdarg stdatomic stdbool stddef stdint stdio "
        "stdlib string"
    )
    allowed = {f"{name}.h" for name in [*standard.split(), "immintrin", "arm_neon"]}
    system = re.compile(r"\b(_WIN32|__APPLE__|__linux__|__GLIBC__|__MINGW\w*|_POSIX_\w+)\b")
    wrong = {
        path.name: found
        for path in (ROOT / "csrc").rglob("*.[ch]")
        for text in [path.read_text(encoding="utf-8")]
        if (
            found := (set(re.findall(r"#include <(.+)>", text)) - allowed)
            | set(system.findall(text))
        )
    }
    assert set(wrong) == {"platform.c"}, wrong

"""The sources as a whole: rooms, short functions, writes in one place; pages name what exists."""

import ast
import re
import runpy
from pathlib import Path

import pytest
from helpers import parsed

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "dcme_w2v"
TESTS = ROOT / "tests"
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
FILE = r"[a-z_0-9]+(?:/[a-z_0-9]+)*\.(?:py|pyx|c|h|md)"
NAME = r"`(?:[A-Za-z]+\.)?([A-Za-z_]+)`"
FILES = sorted(set(re.findall(rf"`({FILE})`", PAGE)))
NAMES = sorted(
    {(file, name) for *names, file in re.findall(rf"(?:{NAME}\sand\s)?{NAME}\sin\s`({FILE})`", PAGE)
     for name in names if name}
)  # fmt: skip


def found(name):
    return next((base / name for base in (PACKAGE, ROOT) if (base / name).is_file()), None)


@pytest.mark.parametrize("name", FILES)
def test_every_file_that_is_named_exists(name):
    assert name == "estimator.py" or found(name)  # estimator.py of any package


@pytest.mark.parametrize("file, name", NAMES)
def test_every_name_is_defined_in_the_file_that_is_named(file, name):
    path = found(file)
    if path.suffix == ".py":
        assert re.search(rf"^ *(?:def|class) {name}\b|^{name}\b.*=", path.read_text(), re.MULTILINE)
    else:
        assert re.search(rf"\b{name}\b", path.read_text())


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
        for node in ast.walk(parsed(path))
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


def test_no_module_imports_a_test_module():
    """A helper that two modules need belongs to helpers.py."""
    importing = re.compile(r"^(?:import|from) test_", re.MULTILINE)
    files = TESTS.rglob("*.py")
    assert not [one.name for one in files if importing.search(one.read_text(encoding="utf-8"))]


# ---- writes ----


WRITERS = (
    "platform.py",
    "atomic.py",
    "checkpoint_folder.py",
    "space.py",
    "static_folder.py",
)


def test_files_are_opened_for_writing_in_one_place():
    found = []
    for path in PACKAGE.rglob("*.py"):
        if path.name not in WRITERS:
            calls = (one for one in ast.walk(parsed(path)) if isinstance(one, ast.Call))
            found += [f"{path.relative_to(PACKAGE)}:{one.lineno}" for one in calls if _writes(one)]
    assert not found, "write through files.atomic"


def _writes(call):
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    owner = getattr(getattr(call.func, "value", None), "id", "")
    if name == "open" and owner != "archive":  # of a zip file that is open
        if "devnull" in ast.unparse(call):
            return False
        modes = [one.value for one in (*call.args[:2], *(k.value for k in call.keywords))
                 if isinstance(one, ast.Constant) and isinstance(one.value, str)]  # fmt: skip
        flags = {one.attr for one in ast.walk(call) if isinstance(one, ast.Attribute)}
        writing = any(set(mode) <= set("rwxabt+") and set(mode) & set("wxa+") for mode in modes)
        return writing or bool(flags & {"O_WRONLY", "O_RDWR", "O_CREAT", "O_APPEND"})
    if owner == "np" or name in ("tofile", "dump"):
        return name in ("save", "savez", "savez_compressed", "savetxt", "tofile", "dump")
    if name == "replace":  # of a path, not of a text or a dataclass
        return len(call.args) == 1 and not call.keywords
    return name in (
        "write_text", "write_bytes", "touch", "mkstemp", "NamedTemporaryFile", "unlink", "remove",
        "rename", "renames", "rmdir", "rmtree", "symlink_to", "hardlink_to", "copyfile", "move",
    )  # fmt: skip

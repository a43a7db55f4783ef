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


def test_every_package_and_module_is_named():
    packages = {path.parent for path in PACKAGE.glob("*/__init__.py")}
    packages |= {path for path in (ROOT / "csrc").iterdir() if path.is_dir()}
    for folder in packages:
        assert f"`{folder.relative_to(ROOT)}/`" in PAGE
    for module in PACKAGE.glob("*.py"):
        assert f"`dcme_w2v/{module.name}`" in PAGE


def test_every_folder_that_is_named_exists():
    for name in re.findall(r"`((?:dcme_w2v|csrc|tests|docs)/[a-z_0-9/]*/)`", PAGE):
        assert (ROOT / name).is_dir(), name


@pytest.mark.parametrize(("name", "function"), sorted(set(HOPS)))
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
    wrong = {
        pair: at for pair, at in layers["wrong_arrows"]().items() if pair not in layers["KNOWN"]
    }
    assert not wrong


def imports_of(path):
    """Return the modules of the package that a module imports when it is imported itself."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("dcme_w2v"):
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if found(inner.replace(".", "/") + ".py") else node.module


def test_no_import_circle():
    """Neither directly nor through others; imports for type checking do not count."""
    graph = {}
    for path in PACKAGE.rglob("*.py"):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        graph[name] = {*imports_of(path)} - {"dcme_w2v"}
    done, under_way = set(), []

    def visit(name):
        assert name not in under_way, " -> ".join([*under_way, name])
        if name in done:
            return
        under_way.append(name)
        for other in sorted(graph.get(name, ())):
            visit(other)
        under_way.pop()
        done.add(name)

    for name in sorted(graph):
        visit(name)


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

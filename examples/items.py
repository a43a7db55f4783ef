"""Train item vectors on baskets: the names that each function in Python's library calls."""

import ast
import sysconfig
from pathlib import Path

import dcme_w2v as dw


def baskets(path):
    """Yield the set of names that each function of a file calls."""
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):  # a test file that is invalid on purpose
        return
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            called = [node.func for node in ast.walk(function) if isinstance(node, ast.Call)]
            yield {getattr(one, "attr", getattr(one, "id", None)) for one in called} - {None}


files = Path(sysconfig.get_path("stdlib")).rglob("*.py")
files = [file for file in files if "site-packages" not in file.parts]
called = [sorted(basket) for file in files for basket in baskets(file) if len(basket) > 1]
print(f"{len(called):,} functions")

# The window is fixed and as wide as a large basket, because the order of items has no meaning.
vectors = dw.train(called, dim=50, window=20, window_mode="fixed", epochs=20, threads=1)
for name in [one for one in ("recv", "acquire", "mkdir", "sqrt") if one in vectors]:
    near = vectors.most_similar(name, topn=5)
    print(f"{name:8}", ", ".join(found.word for found in near))

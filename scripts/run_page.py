"""Run the examples of a documentation page from top to bottom, in the current folder.

    python scripts/run_page.py docs/start/tutorial.md

`shell` blocks are run by sh, `python` blocks by Python; each must succeed. A Python block whose
imports are not installed is skipped with a message.
"""

from __future__ import annotations

import ast
import importlib.util
import re
import subprocess
import sys
from pathlib import Path


def main(page: Path) -> None:
    """Run each block; stop at the first failure."""
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r"^```(shell|python)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    for language, block in blocks:
        print(f"---- {language}\n{block}----", flush=True)
        missing = missing_modules(block) if language == "python" else []
        if missing:
            print(f"skipped: {', '.join(missing)} not installed")
            continue
        command = ["sh", "-ec"] if language == "shell" else [sys.executable, "-c"]
        done = subprocess.run([*command, block])
        if done.returncode:
            sys.exit(f"error: {page}: exit code {done.returncode} of:\n{block}")
    print(f"{page.name}: {len(blocks)} examples")


def missing_modules(block: str) -> list[str]:
    """Return the packages that a block imports and that are not installed."""
    names = set()
    for node in ast.walk(ast.parse(block)):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.partition(".")[0])
    return sorted(name for name in names if importlib.util.find_spec(name) is None)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("error: usage: python scripts/run_page.py PAGE.md")
    main(Path(sys.argv[1]))

"""Print pip constraints: the lowest version of each package that pyproject.toml allows."""

import re
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"

found = re.findall(r'"([\w-]+)[^">]*>=([\w.]+)"', PROJECT.read_text(encoding="utf-8"))
print("\n".join(sorted({f"{name}=={version}" for name, version in found})))

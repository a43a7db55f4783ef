"""Print the packages that this package and its extras EXTRA... need, as in pyproject.toml.

With --lowest, print pip constraints instead: the lowest version of each package.
"""

import re
import sys
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"
LISTS = dict(
    re.findall(r"^([\w-]+) = \[(.*?)\]\n", PROJECT.read_text(encoding="utf-8"), re.M | re.S)
)


def required(name: str) -> set[str]:
    """Return the requirements in a list of pyproject.toml, and in the extras that it names."""
    found = set(re.findall(r'"([^"]+)"', LISTS[name]))
    own = {one for one in found if one.startswith("dcme-w2v[")}
    return found.difference(own).union(*map(required, re.findall(r"[\w-]+(?=[],])", "".join(own))))


if __name__ == "__main__":
    if sys.argv[1:] == ["--lowest"]:
        bounds = re.findall(r'"([\w-]+)[^">]*>=([\w.]+)"', "".join(LISTS.values()))
        lines = {f"{name}=={version}" for name, version in bounds}
    else:
        lines = set().union(*map(required, ["dependencies", *sys.argv[1:]]))
    print("\n".join(sorted(lines)))

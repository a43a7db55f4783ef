"""Measure this program and others: `python scripts/benchmarks/run.py --data FOLDER [SUITE ...]`.

FOLDER contains the data; suites whose files are missing are skipped. README.md beside this script
names public sources. Each suite yields (setting, seed, metric, number, unit). The lines are
printed; with --record, they replace the suite's lines in results.csv, with the commit and the
machine. For each seed, programs run one after the other, so that a slow moment affects all of them.
"""

from __future__ import annotations

import argparse
import csv
import os
import platform
import re
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path
from statistics import fmean, median, stdev

import suites
from tables import COLUMNS, RESULTS, ROOT

from dcme_w2v._core.models import KERNELS

GROUPS: dict[str, tuple[str, ...]] = {
    "readme": ("quality_time", "label_sets", "many_classes", "few_labels"),
    "papers": ("papers_dcme", "papers_scdv", "papers_distributed", "papers_fused", "papers_latent"),
}


def commit() -> str:
    """Return the current commit, with "-changed" if any file differs from it."""

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
        return done.stdout.strip()

    changed = git(
        "status", "--porcelain", "--untracked-files=no", "--", ".", ":!scripts/benchmarks"
    )
    return git("rev-parse", "--short", "HEAD") + ("-changed" if changed else "")


def machine() -> str:
    """Return the architecture, number and model of CPUs, widest instruction set and kernels."""
    info = Path("/proc/cpuinfo")
    text = info.read_text(encoding="utf-8") if info.exists() else ""
    model = re.search(r"^model name\s*: (.*)", text, re.MULTILINE)
    sets = [name for name in ("avx512f", "avx2", "asimd") if name in text.split()]
    kernels = os.environ.get("DCME_W2V_KERNELS", KERNELS[0])
    cpus = f"{platform.machine()} {len(os.sched_getaffinity(0))} CPUs"
    return ", ".join([cpus, *([model[1]] if model else []), *sets[:1], f"{kernels} kernels"])


def measured(name: str, setup: suites.Setup) -> list[list[str]]:
    """Run a suite; return its lines for results.csv, which are means over seeds."""
    found: dict[tuple[str, str, str], dict[int, float]] = {}
    try:
        for setting, seed, metric, number, unit in suites.ALL[name](setup):
            print(f"{name}\t{setting}\t{seed}\t{metric}\t{number:g} {unit}", flush=True)
            found.setdefault((setting, metric, unit), {})[seed] = number
    except FileNotFoundError as error:
        print(f"{name}: skipped: {error}", file=sys.stderr)
    except Exception:
        traceback.print_exc()  # continue with the other suites
    rest = [commit(), machine()]
    return [
        [name, setting, metric, *_summary([*n.values()]), unit, ", ".join(map(str, n)), *rest]
        for (setting, metric, unit), n in found.items()
    ]  # fmt: skip


def _summary(numbers: list[float]) -> tuple[str, str]:
    """Return the mean and the standard deviation; if that is high, the median and the range."""
    mean, deviation = fmean(numbers), stdev(numbers) if len(numbers) > 1 else 0
    if deviation > abs(mean) / 2:
        return f"{median(numbers):.4g}", f"{min(numbers):.4g} to {max(numbers):.4g}"
    return f"{mean:.4g}", f"{deviation:.2g}" if len(numbers) > 1 else ""


def record(lines: list[list[str]]) -> None:
    """Replace the lines of the measured suites in results.csv."""
    new = {line[0] for line in lines}
    with RESULTS.open(newline="", encoding="utf-8") as file:
        kept = [line for line in list(csv.reader(file))[1:] if line[0] not in new]
    aside = RESULTS.with_suffix(".part")
    with aside.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([COLUMNS, *kept, *lines])
    aside.replace(RESULTS)


def main() -> None:
    """Run the suites that were named, or all suites."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "suites", nargs="*", metavar="SUITE", help=", ".join([*GROUPS, *suites.ALL])
    )
    parser.add_argument("--data", required=True, type=Path, metavar="FOLDER")
    parser.add_argument("--seeds", type=int, default=1, metavar="N", help="seeds 1 to N")
    parser.add_argument("--threads", type=int, default=2, metavar="N")
    parser.add_argument("--record", action="store_true", help="replace these suites in results.csv")
    options = parser.parse_args()
    wanted = [one for name in options.suites for one in GROUPS.get(name, (name,))]
    if unknown := set(wanted) - set(suites.ALL):
        parser.error(f"no suite {min(unknown)}; give {', '.join([*GROUPS, *suites.ALL])}")
    print(machine(), flush=True)
    lines = []
    with tempfile.TemporaryDirectory(prefix="benchmarks-") as work:
        setup = suites.Setup(
            options.data.absolute(), Path(work), range(1, options.seeds + 1), options.threads
        )
        for name in wanted or suites.ALL:
            lines += measured(name, setup)
    if options.record:
        record(lines)
    if not lines:
        sys.exit(f"error: {options.data}: nothing was measured; see scripts/benchmarks/README.md")


if __name__ == "__main__":
    main()

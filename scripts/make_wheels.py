"""Build the Linux wheels of a source distribution and audit them: `make wheel`.

    python scripts/make_wheels.py dist/dcme_w2v-0.1.0.tar.gz --output dist

The compiler is zig (PyPI's ziglang), which links for any machine against any glibc: the wheels run
with glibc 2.17, of 2012, and later. From Python 3.11 one wheel serves all later versions (abi3);
Python 3.10 needs its own. A wheel passes if auditwheel and abi3audit accept it, if it has neither
sources nor debug sections, and if it is at most 1.5 MB.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shlex
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

MACHINES = ("x86_64", "aarch64")
GLIBC = "2.17"
LIMIT = 1_500_000  # bytes
ABI3 = "cp311"  # the first version whose limited API has memoryviews
SOURCES = (".c", ".h", ".pyx", ".pxd")


def main() -> None:
    """Build each wheel asked for, two at a time, and fail if one has a fault."""
    parser = argparse.ArgumentParser(description="build and audit the wheels for Linux")
    parser.add_argument("sdist", type=Path, help="source distribution")
    parser.add_argument("--output", type=Path, default=Path("dist"), help="folder of the wheels")
    parser.add_argument("--python", nargs="*", help="Pythons to build with, by default this one")
    parser.add_argument("--machine", nargs="*", choices=MACHINES, default=[*MACHINES])
    given = parser.parse_args()
    if not given.sdist.is_file():
        sys.exit(f"error: {given.sdist}: no such file; `make sdist` builds it")
    pythons = {version_of(python): python for python in given.python or [sys.executable]}
    wanted = [(python, at, name) for at, python in pythons.items() for name in given.machine]
    with ThreadPoolExecutor(2) as pool:
        wheels = list(pool.map(lambda w: build(given.sdist, given.output, *w), wanted))
    broken = 0
    for wheel in wheels:
        print(f"{wheel} ({wheel.stat().st_size / 1e6:.2f} MB)")
        for fault in faults(wheel):
            broken += 1
            print(f"error: {wheel.name}: {fault}", file=sys.stderr)
    sys.exit(1 if broken else 0)


def version_of(python: str) -> str:
    """Return the tag of a Python, such as cp310."""
    code = "import sys; print('cp%d%d' % sys.version_info[:2])"
    try:
        done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        sys.exit(f"error: --python {python}: does not run")
    return done.stdout.strip()


def build(sdist: Path, output: Path, python: str, version: str, machine: str) -> Path:
    """Build one wheel, named after the oldest glibc that it runs with."""
    options = [f"--plat-name=manylinux_{GLIBC.replace('.', '_')}_{machine}"]
    if version != "cp310":
        options.append(f"--py-limited-api={ABI3}")
    pip = [sys.executable, "-m", "pip", "--python", python, "--quiet", "wheel", "--no-deps"]
    settings = f"--config-settings=--build-option={' '.join(options)}"
    with tempfile.TemporaryDirectory() as folder:
        run([*pip, settings, "--wheel-dir", folder, str(sdist)], toolchain(machine, version))
        (wheel,) = Path(folder).glob("*.whl")
        output.mkdir(parents=True, exist_ok=True)
        target = output / wheel.name
        target.write_bytes(wheel.read_bytes())
    return target


def toolchain(machine: str, version: str) -> dict[str, str]:
    """Return the environment in which setuptools compiles with zig for a machine."""
    import ziglang

    zig = shlex.quote(str(Path(ziglang.__file__).with_name("zig")))
    compiler = f"{zig} cc -target {machine}-linux-gnu.{GLIBC}"
    return os.environ | {
        "CC": compiler,
        "LDSHARED": f"{compiler} -shared",
        "AR": f"{zig} ar",
        "CFLAGS": "-g0 -fvisibility=hidden",
        "LDFLAGS": "-s",
        "ZIG_GLOBAL_CACHE_DIR": str(Path("build/zig").absolute()),
        "_PYTHON_HOST_PLATFORM": f"linux-{machine}",
        # Of a version-specific wheel only: abi3 modules are named without the machine.
        "SETUPTOOLS_EXT_SUFFIX": f".cpython-{version[2:]}-{machine}-linux-gnu.so",
    }


def run(command: list[str], environment: dict[str, str] | None = None) -> str:
    """Run a command; if it fails, print what it printed and exit."""
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{done.stdout}{done.stderr}error: failed: {shlex.join(command)}")
    return done.stdout


def faults(wheel: Path) -> Iterator[str]:
    """Yield what is wrong with a wheel."""
    if wheel.stat().st_size > LIMIT:
        yield f"{wheel.stat().st_size} bytes, more than {LIMIT}"
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        modules = [name for name in names if name.endswith(".so")]
        for name in names:
            if name.endswith(SOURCES):
                yield f"{name} is a source"
        for name in modules:
            if b".debug_info" in archive.read(name):
                yield f"{name} has debug sections"
        if not modules:
            yield "has no extension"
    shown = run([sys.executable, "-m", "auditwheel", "show", str(wheel)])
    tag = re.search(r'platform tag: "(\w+)"', " ".join(shown.split()))
    if tag is None or tag[1] not in wheel.name:
        yield f"auditwheel finds {tag and tag[1]}"
    if "-abi3-" in wheel.name:
        audit = [sys.executable, "-m", "abi3audit", "--strict", "--summary", str(wheel)]
        done = subprocess.run(audit, capture_output=True, text=True)
        if done.returncode:
            yield f"abi3audit: {done.stdout}{done.stderr}"


if __name__ == "__main__":
    if platform.system() != "Linux":
        sys.exit("error: the wheels for Linux are made on Linux")
    main()

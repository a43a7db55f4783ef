"""Build wheels for all systems from a source distribution, and audit them (`make wheel`).

    python scripts/make_wheels.py dist/dcme_w2v-0.1.0.tar.gz --output dist

The compiler is zig (ziglang on PyPI), which includes the C libraries of all systems. One wheel
(abi3) works on Python 3.11 and all later versions. Python 3.10 needs its own wheel, which is built
only for Linux. A wheel passes the audit if it is at most 1.6 MB, if its extensions import only
names of the stable ABI and no symbol that is newer than its tag allows, and if it contains no
sources, debug sections or paths of this machine.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

# Maps the platform tag of a wheel to the target for zig and the platform name for setuptools.
PLATFORMS = {
    "manylinux_2_17_x86_64": ("x86_64-linux-gnu.2.17", "linux-x86_64"),
    "manylinux_2_17_aarch64": ("aarch64-linux-gnu.2.17", "linux-aarch64"),
    "musllinux_1_2_x86_64": ("x86_64-linux-musl", "linux-x86_64"),
    "musllinux_1_2_aarch64": ("aarch64-linux-musl", "linux-aarch64"),
    "macosx_11_0_arm64": ("aarch64-macos.11.0", "macosx-11.0-arm64"),
    "macosx_11_0_x86_64": ("x86_64-macos.11.0", "macosx-11.0-x86_64"),
    "win_amd64": ("x86_64-windows-gnu", "win-amd64"),
    "win_arm64": ("aarch64-windows-gnu", "win-arm64"),
}
LIMIT = 1_600_000  # maximum bytes of a wheel
ABI3 = "cp311"  # the first version whose limited API supports memoryviews
NEW_IN_MUSL = {"_Fork", "gettid", "reallocarray", "qsort_r", "preadv2", "pwritev2", "statx"}
SOURCES = (".c", ".h", ".pyx", ".pxd")

# The configuration for Windows, which replaces this machine's pyconfig.h in Python's headers.
PYCONFIG = """
#define MS_WINDOWS 1
#define MS_WIN64 1
#define Py_ENABLE_SHARED 1
#define HAVE_DECLSPEC_DLL 1
#define HAVE_STDINT_H 1
#define HAVE_STDDEF_H 1
#define HAVE_SSIZE_T 1
#define SIZEOF_SHORT 2
#define SIZEOF_INT 4
#define SIZEOF_LONG 4
#define SIZEOF_LONG_LONG 8
#define SIZEOF_SIZE_T 8
#define SIZEOF_VOID_P 8
#define SIZEOF_WCHAR_T 2
#define SIZEOF_PID_T 4
#define ALIGNOF_MAX_ALIGN_T 8
"""


def main() -> None:
    """Build the requested wheels, two at a time, and fail if any of them has a fault."""
    parser = argparse.ArgumentParser(description="build and audit the wheels")
    parser.add_argument("sdist", type=Path, help="source distribution")
    parser.add_argument("--output", type=Path, default=Path("dist"), help="folder for the wheels")
    parser.add_argument("--python", nargs="*", help="interpreters to use (default: this one)")
    parser.add_argument("--platform", nargs="*", choices=PLATFORMS, default=[*PLATFORMS])
    given = parser.parse_args()
    if not given.sdist.is_file():
        sys.exit(f"error: {given.sdist}: no such file; `make sdist` builds it")
    pythons = {version_of(python): python for python in given.python or [sys.executable]}
    wanted = [
        (python, at, name)
        for at, python in pythons.items()
        for name in given.platform
        if at != "cp310" or name.startswith("manylinux")
    ]
    with ThreadPoolExecutor(2) as pool:
        wheels = list(pool.map(lambda w: build(given.sdist, given.output, *w), wanted))
    broken = 0
    for wheel in wheels:
        print(f"{wheel} ({wheel.stat().st_size / 1e6:.2f} MB, {oldest_system(wheel)})")
        for fault in faults(wheel):
            broken += 1
            print(f"error: {wheel.name}: {fault}", file=sys.stderr)
    sys.exit(1 if broken else 0)


def version_of(python: str) -> str:
    """Return the version tag of a Python interpreter, such as cp310."""
    code = "import sys; print('cp%d%d' % sys.version_info[:2])"
    try:
        done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        sys.exit(f"error: --python {python}: this interpreter does not run; give another one")
    return done.stdout.strip()


def build(sdist: Path, output: Path, python: str, version: str, name: str) -> Path:
    """Build one wheel."""
    options = [f"--plat-name={name}"]
    if version != "cp310":
        options.append(f"--py-limited-api={ABI3}")
    pip = [sys.executable, "-m", "pip", "--python", python, "--quiet", "wheel", "--no-deps"]
    settings = f"--config-settings=--build-option={' '.join(options)}"
    with tempfile.TemporaryDirectory() as folder:
        environment = toolchain(name, version, python, Path(folder))
        wheels = Path(folder, "wheels")
        run([*pip, settings, "--wheel-dir", str(wheels), str(sdist)], environment)
        (wheel,) = wheels.glob("*.whl")
        output.mkdir(parents=True, exist_ok=True)
        target = output / wheel.name
        target.write_bytes(wheel.read_bytes())
    return target


def toolchain(name: str, version: str, python: str, folder: Path) -> dict[str, str]:
    """Return the environment variables that make setuptools compile for a platform with zig."""
    import ziglang

    target, platform = PLATFORMS[name]
    zig = shlex.quote(str(Path(ziglang.__file__).with_name("zig")))
    compiler = f"{zig} cc -target {target}"
    cflags, link = "-g0 -fvisibility=hidden", "-shared"
    if platform.startswith("win"):
        cflags += f" -I{windows_headers(python, folder)}"
        link += f" {import_library(zig, target, folder)}"
    elif platform.startswith("macos"):
        link += " -Wl,-undefined,dynamic_lookup -Wl,-install_name,@rpath/dcme_w2v"
    return os.environ | {
        "CC": compiler,
        "LDSHARED": f"{compiler} {link}",
        "AR": f"{zig} ar",
        "CFLAGS": cflags,
        "LDFLAGS": "-s",
        "ZIG_GLOBAL_CACHE_DIR": str(Path("build/zig").absolute()),
        "_PYTHON_HOST_PLATFORM": platform,
        # Used only for version-specific wheels: names of abi3 modules do not contain the machine.
        "SETUPTOOLS_EXT_SUFFIX": f".cpython-{version[2:]}-{platform[6:]}-linux-gnu.so",
    }


def windows_headers(python: str, folder: Path) -> Path:
    """Copy Python's headers, and replace their configuration by one for Windows."""
    code = "import sysconfig; print(sysconfig.get_path('include'))"
    include = folder / "include"
    shutil.copytree(run([python, "-c", code]).strip(), include)
    (include / "pyconfig.h").write_text(PYCONFIG)
    return include


def import_library(zig: str, target: str, folder: Path) -> Path:
    """Create the import library that links a Windows module to the stable ABI in python3.dll."""
    from abi3info import DATAS, FUNCTIONS

    wanted = (3, int(ABI3[3:]))
    names = [
        one.symbol.name + (" DATA" if one.symbol in DATAS else "")
        for one in (*FUNCTIONS.values(), *DATAS.values())
        if (one.added.major, one.added.minor) <= wanted
    ]
    listed = folder / "python3.def"
    listed.write_text("\n".join(["LIBRARY python3.dll", "EXPORTS", *names, ""]))
    machine = "arm64" if target.startswith("aarch64") else "i386:x86-64"
    library = folder / "python3.lib"
    run([*shlex.split(zig), "dlltool", "-m", machine, "-d", str(listed), "-l", str(library)])
    return library


def run(command: list[str], environment: dict[str, str] | None = None) -> str:
    """Run a command; if it fails, print what it printed and exit."""
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{done.stdout}{done.stderr}error: failed: {shlex.join(command)}")
    return done.stdout


def modules_of(wheel: Path) -> dict[str, bytes]:
    """Return the extension modules in a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        names = [one for one in archive.namelist() if one.endswith((".so", ".pyd"))]
        return {name: archive.read(name) for name in names}


def oldest_system(wheel: Path) -> str:
    """Return the oldest system that has all symbols that the extension modules import."""
    modules = modules_of(wheel).values()
    if "-win" in wheel.name:
        import pefile

        found = {one.dll.decode().lower() for data in modules
                 for one in pefile.PE(data=data).DIRECTORY_ENTRY_IMPORT}  # fmt: skip
        system = {name for name in found if not name.startswith("api-ms-win-crt-")}
        return f"UCRT, {', '.join(sorted(system))}"
    if "-macosx" in wheel.name:
        return f"macOS {max(map(macos_of, modules))}"
    if "-musllinux" in wheel.name:
        new = {name for data in modules for name in newer_than_musl_1_2_0(data)}
        return ", ".join(sorted(new)) or wheel.stem.rpartition("-")[2]
    shown = " ".join(run([sys.executable, "-m", "auditwheel", "show", str(wheel)]).split())
    tag = re.search(r'platform tag: "(\w+)"', shown)
    return tag[1] if tag else "no tag found"


def newer_than_musl_1_2_0(module: bytes) -> set[str]:
    """Return the symbols that a module needs but musl 1.2.0 lacks."""
    from elftools.elf.elffile import ELFFile

    section: Callable[[str], Any] = ELFFile(io.BytesIO(module)).get_section_by_name
    tags = section(".dynamic").iter_tags("DT_NEEDED")
    names = {one.name for one in section(".dynsym").iter_symbols()}
    return ({tag.needed for tag in tags} - {"libc.so"}) | (names & NEW_IN_MUSL)


def macos_of(module: bytes) -> str:
    """Return the minimum macOS version from the load commands of a module."""
    at, (count,) = 32, struct.unpack_from("<I", module, 16)
    for _ in range(count):
        kind, size, _, version = struct.unpack_from("<4I", module, at)
        if kind == 0x32:  # LC_BUILD_VERSION
            return f"{version >> 16}.{version >> 8 & 255}"
        at += size
    return "of unknown version"


def faults(wheel: Path) -> Iterator[str]:
    """Yield the faults of a wheel."""
    if wheel.stat().st_size > LIMIT:
        yield f"has {wheel.stat().st_size} bytes; the limit is {LIMIT}"
    with zipfile.ZipFile(wheel) as archive:
        yield from (f"{name} is a source" for name in archive.namelist() if name.endswith(SOURCES))
    here = {tempfile.gettempdir(), str(Path.home()), str(Path.cwd())} - {"/"}
    modules = modules_of(wheel)
    for name, data in modules.items():
        if b".debug_info" in data:
            yield f"{name} has debug sections"
        yield from (f"{name} has the path {one}/" for one in here if f"{one}/".encode() in data)
    if not modules:
        yield "has no extension"
    oldest = oldest_system(wheel)
    expected = {"macosx": "macOS 11.0", "win": "UCRT, kernel32.dll, python3.dll"}
    platform = wheel.stem.rpartition("-")[2]
    if oldest not in (expected.get(platform.split("_")[0]), *platform.split(".")):
        yield f"requires {oldest}, which does not match its tag"
    if "-abi3-" in wheel.name:
        audit = [sys.executable, "-m", "abi3audit", "--strict", "--summary", str(wheel)]
        done = subprocess.run(audit, capture_output=True, text=True)
        if done.returncode:
            yield f"abi3audit: {done.stdout}{done.stderr}"


if __name__ == "__main__":
    main()

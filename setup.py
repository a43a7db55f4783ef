"""Build the C core once, as a static library, and link each extension with it.

The kernels are compiled once for each instruction set and chosen at run time, so that one wheel
fits every machine of an architecture. `bdist_wheel --py-limited-api=cp311` makes a wheel for Python
3.11 and all later versions. Everything else about the package is in pyproject.toml.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from graphlib import TopologicalSorter
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.modified import newer_group

if sys.platform == "win32":
    sys.exit("error: dcme-w2v is not built on Windows; install a wheel, which Linux builds for it")

# Never -march=native or -ffast-math: an extension built here is installed elsewhere. No contraction
# either, so that the scalar kernels round equally on every machine.
FLAGS = ["-std=c11", "-O3", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off"]
# Python's own flags have -g, which takes a third of the compiler's time.
DEBUGGING = [] if "-g" in os.environ.get("CFLAGS", "").split() else ["-g0"]
WARNINGS = ["-Wall", "-Wextra", "-Wno-unused-parameter"]
KERNEL_FLAGS = {
    "avx2": ["-mavx2", "-mfma"],
    "avx512": ["-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mfma"],
}
SOURCES = sorted(map(str, Path("csrc").rglob("*.c")))
HEADERS = sorted(map(str, Path("csrc").rglob("*.h")))
MODULES = sorted(map(str, Path("dcme_w2v/_core").glob("*.pyx")))
SHARED = "dcme_w2v/_core/_cyutility.c"  # what Cython would write into each of them
BINDINGS = [*MODULES, "dcme_w2v/_core/csrc.pxd"]
DECLARED = Path("dcme_w2v/_core/headers.pxi")  # the declarations of these headers for Cython

DECLARATION = re.compile(
    r"^#define (?P<constant>\w+) "
    r"|^typedef (?P<type>\w+ \w+);"
    r"|^(?:typedef )?(?P<kind>struct|enum) (?:\{(?P<body>[^{}]*)\}|\w+) ?(?P<name>\w*);"
    r"|^(?:static inline )?(?P<result>[\w ]+ \**)(?P<function>dcme_\w+)\((?P<given>[^()]*)\)",
    re.MULTILINE,
)


class BuildExtension(build_ext):
    """Compile every source of the core once, before the extensions that are linked with it."""

    def finalize_options(self) -> None:
        """Use all processors, and the limited API of Python if the wheel serves later versions."""
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count()
        wheel = self.distribution.get_command_obj("bdist_wheel", create=False)
        lowest = getattr(wheel, "py_limited_api", None) or ""
        if not lowest:
            return
        minor = int(lowest.removeprefix("cp3"))
        if not (3, 11) <= (3, minor) <= sys.version_info:
            sys.exit(f"error: --py-limited-api={lowest}: must be cp311 to this Python's version")
        for extension in self.extensions:
            extension.py_limited_api = True
            extension.define_macros.append(("Py_LIMITED_API", f"0x03{minor:02x}0000"))

    def build_extensions(self) -> None:
        """Build the static library, then the extensions."""
        self.check_tools()
        target = self.target()
        first = sorted(SOURCES, key=lambda one: Path(one).stem not in KERNEL_FLAGS)  # take longest
        with ThreadPoolExecutor(self.parallel) as pool:
            flags = [kernel_flags(source, target) for source in first]
            objects = list(pool.map(self.object_of, first, flags))
        library = self.compiler.library_filename("dcme", output_dir=self.build_temp)
        if self.force or newer_group(objects, library):
            Path(library).unlink(missing_ok=True)  # ar would keep objects of deleted sources
            self.compiler.create_static_lib(objects, "dcme", output_dir=self.build_temp)
        for extension in self.extensions:
            extension.extra_objects = [library]
            extension.depends = [*HEADERS, library]
        super().build_extensions()

    def check_tools(self) -> None:
        """Exit with one line if there is no compiler or no header of Python."""
        compiler = self.compiler.compiler_so[0]
        if not shutil.which(compiler):
            sys.exit(
                f"error: no C compiler {compiler}: install gcc or clang, name another by CC=..., "
                "or install a wheel, which needs none"
            )
        header = Path(sysconfig.get_path("include"), "Python.h")
        if not header.exists():
            sys.exit(f"error: {header}: no such file; install Python's headers (python3-dev)")

    def get_ext_filename(self, fullname: str) -> str:
        """Name an extension; one for Windows is built elsewhere."""
        name = str(super().get_ext_filename(fullname))
        return name.replace(".abi3.so", ".pyd") if self.plat_name.startswith("win") else name

    def target(self) -> str:
        """Name the platform to build for, which may not be the one that builds."""
        command = [*getattr(self.compiler, "compiler_so", []), "-dumpmachine"]
        try:  # `zig cc` answers, then fails
            answer = subprocess.run(command, capture_output=True, text=True).stdout
        except OSError:
            answer = ""
        return answer or str(self.plat_name)

    def object_of(self, source: str, flags: list[str]) -> str:
        """Compile a source, unless its object is newer than it and all headers."""
        (name,) = self.compiler.object_filenames([source], output_dir=self.build_temp)
        if self.force or newer_group([source, "setup.py", *HEADERS], name):
            options = FLAGS + DEBUGGING + WARNINGS + flags
            self.compiler.compile(
                [source], self.build_temp, include_dirs=["csrc"], extra_postargs=options
            )
        return str(name)


def kernel_flags(source: str, target: str) -> list[str]:
    """Return the flags of the instruction set that a kernel file is named after."""
    flags = next((f for name, f in KERNEL_FLAGS.items() if Path(source).stem == name), [])
    if "darwin" in target or target.startswith("macos"):  # one run of the compiler may make both
        return [option for flag in flags for option in ("-Xarch_x86_64", flag)]
    return flags if "x86_64" in target or "amd64" in target else []


def declared(header: str, text: str, used: set[str]) -> str:
    """Translate what a header declares for Cython; a function that can fail raises there."""
    lines, raising = [f'cdef extern from "{header}" nogil:'], []
    for one in DECLARATION.finditer(text.replace("(void)", "()").replace("bool ", "bint ")):
        name, kind = one["name"] or one["function"] or one["constant"] or "", one["kind"]
        parts = re.split("[;,]" if kind == "enum" else ";", one["body"] or "")
        parts = [" ".join(part.split("=")[0].split()) for part in parts if "(" not in part]
        given = " ".join((one["given"] or "").split())
        rest = given.removesuffix(", dcme_error *error")
        if one["type"]:
            lines.append(f"    ctypedef {one['type']}")
        elif used.isdisjoint([name, *parts]):
            continue
        elif one["constant"]:
            lines.append(f"    const int64_t {name}")
        elif kind:
            lines.append(f"    {'ctypedef ' if name else ''}{kind} {name}:")
            lines += [f"        {part}" for part in parts if part] or ["        pass"]
        elif rest == given:
            lines.append(f"    {one['result']}{name}({given})")
        else:
            passed = ", ".join([*re.findall(r"(\w+)(?=,|$)", rest), "&error"])
            lines.append(f'    {one["result"]}c_{name} "{name}"({given})')
            raising += [
                f"cdef inline int {name}({rest}) except -1 nogil:",
                "    cdef dcme_error error",
                f"    return check(c_{name}({passed}), &error)",
            ]
    return "\n".join([*lines, *raising, ""]) if lines[1:] else ""


def write_declarations() -> None:
    """Write what the bindings use of the core, unless it is there."""
    used = set(re.findall(r"\w+", "".join(map(Path.read_text, map(Path, BINDINGS)))))
    texts = {
        str(path.relative_to("csrc")): re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL)
        for path in map(Path, HEADERS)
    }
    needed = {name: re.findall(r'^#include "(.+)"', text, re.M) for name, text in texts.items()}
    order = TopologicalSorter(needed).static_order()
    text = "".join(declared(name, texts[name], used) for name in order)
    if not DECLARED.exists() or DECLARED.read_text(encoding="utf-8") != text:
        DECLARED.write_text(text, encoding="utf-8")


def extension(module: str) -> Extension:
    """Describe the extension of one binding."""
    return Extension(
        f"dcme_w2v._core.{Path(module).stem}",
        [module],
        include_dirs=["csrc"],
        # The loops are in the core; -O3 would take the compiler twice as long.
        extra_compile_args=[*FLAGS, *DEBUGGING, *WARNINGS, "-O1"],
        extra_link_args=["-pthread"],
        libraries=["m"],
    )


write_declarations()
setup(
    cmdclass={"build_ext": BuildExtension},
    ext_modules=cythonize(
        [extension(module) for module in [*MODULES, SHARED]],
        language_level=3,
        shared_utility_qualified_name=extension(SHARED).name,
        compiler_directives={
            "boundscheck": False,
            "wraparound": False,
            "nonecheck": True,
            "embedsignature": True,
            "freethreading_compatible": True,  # a module keeps nothing that a call changes
        },
    ),
)

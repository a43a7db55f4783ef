"""Build the C core: one extension a room, one object an instruction set.

The kernels are compiled once for each instruction set and chosen at run time, so that one wheel
fits every machine of an architecture. Everything else about the package is in pyproject.toml.
"""

from __future__ import annotations

import platform
import sys
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

# Never -march=native or -ffast-math: what is built here is installed elsewhere. No contraction
# either, so that the scalar kernels round alike on every machine.
FLAGS = ["-std=c11", "-O3", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off"]
WARNINGS = ["-Wall", "-Wextra", "-Wno-unused-parameter"]
KERNEL_FLAGS = {
    "avx2": ["-mavx2", "-mfma"],
    "avx512": ["-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mfma"],
}
ROOMS = {
    "text": ["text"],
    "vectors": ["vectors"],
    "train": ["train", "objectives", "kernels"],
    "classify": ["classify", "objectives", "train", "kernels"],
    "documents": ["documents", "vectors", "kernels"],
}


def instruction_set(source: str) -> str | None:
    """Return the instruction set that a kernel file is written for, by its name."""
    if platform.machine() not in ("x86_64", "AMD64"):
        return None
    return next((name for name in KERNEL_FLAGS if Path(source).stem.endswith(name)), None)


class BuildExtension(build_ext):
    """Compile the kernel files with the flags of their instruction set."""

    def build_extension(self, ext: Extension) -> None:
        """Compile kernels apart, the rest as setuptools does, and link all."""
        special = [source for source in ext.sources if instruction_set(source)]
        ext.sources = [source for source in ext.sources if source not in special]
        for source in special:
            ext.extra_objects += self.compiler.compile(
                [source],
                output_dir=self.build_temp,
                include_dirs=ext.include_dirs,
                extra_postargs=FLAGS + WARNINGS + KERNEL_FLAGS[instruction_set(source) or ""],
                depends=ext.depends,
            )
        super().build_extension(ext)


def room(name: str, folders: list[str]) -> Extension:
    """Describe the extension of one room."""
    sources = [source for folder in folders for source in sorted(Path("csrc", folder).glob("*.c"))]
    return Extension(
        f"dcme_w2v._core.{name}",
        [f"dcme_w2v/_core/{name}.pyx", "csrc/status.c", *map(str, sources)],
        include_dirs=["csrc"],
        depends=[str(header) for header in Path("csrc").rglob("*.h")],
        extra_compile_args=FLAGS + WARNINGS,
        extra_link_args=["-pthread"] if sys.platform != "win32" else [],
        libraries=["m"] if sys.platform != "win32" else [],
    )


existing = {
    name: folders for name, folders in ROOMS.items() if Path(f"dcme_w2v/_core/{name}.pyx").exists()
}
setup(
    cmdclass={"build_ext": BuildExtension},
    ext_modules=cythonize(
        [room(name, folders) for name, folders in existing.items()],
        language_level=3,
        compiler_directives={"boundscheck": False, "wraparound": False, "embedsignature": True},
    ),
)

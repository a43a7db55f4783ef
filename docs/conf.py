"""Configuration of the documentation; `make docs` builds it."""

import runpy
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

from dcme_w2v import __version__

# The picture of docs/architecture.md.
layers = runpy.run_path(str(Path(__file__).parents[1] / "scripts" / "layers.py"), run_name="layers")
build = Path(__file__).parent / "_build"
build.mkdir(exist_ok=True)
(build / "layers.svg").write_text(layers["picture"](), encoding="utf-8")
del layers, build

project = "dcme-w2v"
author = "the authors of dcme-w2v"
version = release = __version__
copyright = author

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "mathml",
    "sphinx_click",
    "python_reference",
    "results_directive",
    "click_text",
    "command_pages",
]
# Pages that are not there yet; names that several modules have.
suppress_warnings = ["toc.empty_glob", "ref.python"]
myst_enable_extensions = ["dollarmath", "deflist", "attrs_block", "colon_fence"]
myst_heading_anchors = 3
exclude_patterns = ["_build", "_ext"]
default_role = "literal"
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "show-inheritance": True}
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True

html_math_renderer = "mathml"
html_theme = "furo"
html_title = f"dcme-w2v {release}"
html_static_path = ["_static"]
html_css_files = ["style.css"]
html_show_copyright = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0072B2", "color-brand-content": "#0072B2"},
}
man_pages: list[tuple[str, str, str, str, int]] = []  # man pages come from click: `make man`

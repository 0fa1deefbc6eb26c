# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Configuration of the documentation."""

import re
import sys
import warnings
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent)]

import skdp  # noqa: E402
from skdp.exceptions import SeededNoiseWarning  # noqa: E402

warnings.simplefilter("ignore", SeededNoiseWarning)

project = "skdp"
author = "the skdp developers"
project_copyright = f"2026, {author}"
version = release = skdp.__version__

extensions = [
    "claims",
    "landing_chart",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.doctest",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "_ext", "benchmarks/mechanisms.rst"]
nitpicky = False
templates_path = ["_templates"]
html_static_path = ["_static"]
html_css_files = ["skdp.css"]
html_js_files = ["skdp.js"]
html_context = {"default_mode": "auto"}

autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "ignore_pattern": r"_svg\.py",
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "thumbnail_size": (640, 448),
    "within_subsection_order": "FileNameSortKey",
    "remove_config_comments": True,
}

html_theme = "pydata_sphinx_theme"
html_title = f"skdp {version}"
html_show_sourcelink = False
# pages that have none below them
ALONE = ("index", "install", "reviewers", "claims", "papers", "changelog")
html_sidebars = {page: [] for page in ALONE}
html_theme_options = {
    "secondary_sidebar_items": {"**": ["page-toc"], "index": []},
    "header_links_before_dropdown": 5,
    "show_prev_next": True,
    "footer_start": ["copyright"],
    "footer_end": [],
}


def unlink_scikit_learn(app, what, name, obj, options, lines):
    """Replace links into scikit-learn's documentation, in inherited docstrings, by text."""

    def as_text(match):
        # a name with a final underscore would be a link again
        return f"``{match[1]}``" if match[1].endswith("_") else match[1]

    pattern = r":(?:ref|term):`([^`<]+?)\s*(?:<[^>]*>)?`"
    lines[:] = [re.sub(pattern, as_text, line) for line in lines]


def setup(app):
    """Connect to Sphinx."""
    app.connect("autodoc-process-docstring", unlink_scikit_learn, priority=900)

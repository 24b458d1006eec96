"""The documentation site: ``make docs`` builds it, a warning is an error.

The source folder is the repository, so that a link between pages is the same on the
site and in the files; this folder holds the settings.
"""

import sys
import warnings
from pathlib import Path

from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx

from stct import __version__

FOLDER = Path(__file__).parent
sys.path.insert(0, str(FOLDER))

from command_reference import write_reference  # noqa: E402

project = "stct"
author = "The stct authors"
project_copyright = "the stct authors, Apache-2.0"
version = release = __version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx_gallery.gen_gallery",
]
root_doc = "docs/index"
include_patterns = [
    "docs/**.md",
    "docs/gallery/*.rst",
    "benchmarks/results/*.md",
    "experiments/README.md",
    "experiments/results/tables.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
]
# Folders that are not even looked into; README.md is the page for the repository.
exclude_patterns = [".*", "site", "src", "tests", "build", "dist", "demo-output"]

myst_enable_extensions = ["attrs_inline"]
myst_heading_anchors = 3
suppress_warnings = ["myst.header"]  # tables.md begins with small headings

default_role = "py:obj"  # `name` in a docstring leads to that name
autodoc_typehints = "none"  # numpydoc says them in words
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

sphinx_gallery_conf = {
    "examples_dirs": ["examples"],
    "gallery_dirs": ["docs/gallery"],
    "filename_pattern": r"/plot_",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "show_memory": False,
    "min_reported_time": 1e9,
    "write_computation_times": False,
    "download_all_examples": False,
    "remove_config_comments": True,
}
warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")

html_theme = "pydata_sphinx_theme"
html_title = f"stct {release}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_extra_path = ["root"]  # index.html leads to docs/index.html
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "show_toc_level": 2,
    "header_links_before_dropdown": 7,
    "navigation_with_keys": False,
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {"docs/index": []}


def setup(app: Sphinx) -> None:
    """Write the page of the commands before pages are looked for."""
    write_reference(FOLDER / "generated" / "commands.md")
    app.add_lexer("csv", TextLexer)

"""Settings of the site, which ``nsjax docs`` builds.

The source folder is the repository: README, guide, reference and notebooks are read in place, so that a
link between two files works in the repository and on the site.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))  # `docs`, also for `sphinx-build`

from nsjax.version import __version__

project = "nsjax"
author = copyright = "The nsjax developers"
version = release = __version__

extensions = ["sphinx.ext.autodoc", "sphinx.ext.napoleon", "myst_nb", "docs.extension"]
root_doc = "nsjax/documentation/index"
include_patterns = [
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "nsjax/documentation/index.md",
    "nsjax/documentation/guide/*.md",
    "nsjax/documentation/reference/*.rst",
    "notebooks/*.ipynb",
]
exclude_patterns = [".*", "docs", "tests", "experiments", "site", "build", "dist", "**/__pycache__"]

html_theme = "furo"
html_title = f"nsjax {__version__}"
html_show_sourcelink = False
html_math_renderer = "mathml"  # made when the site is built, so that pages need no network
python_display_short_literal_types = True
toc_object_entries_show_parents = "hide"
add_module_names = False
default_role = "py:obj"  # `name` in docstrings: a link if the name exists, else code

nb_execution_mode = "off"  # notebooks show their saved outputs
myst_heading_anchors = 3
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_update_mathjax = False

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # docstrings give shapes and units
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_param = False
napoleon_use_ivar = True
napoleon_use_rtype = False

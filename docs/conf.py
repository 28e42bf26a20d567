"""Sphinx: `pip install -e '.[docs]' && python -m sphinx -W docs docs/_build`."""

import pgcc

project = "pgcc"
author = "The pgcc developers"
copyright = author
release = version = pgcc.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]
myst_heading_anchors = 3
autodoc_member_order = "bysource"
napoleon_google_docstring = False
html_theme = "alabaster"

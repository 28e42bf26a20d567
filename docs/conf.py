"""The site: `pip install -e '.[docs]' && python -m sphinx -W --keep-going -j auto docs docs/_build`.

Notebooks are executed; `-D nb_execution_mode=off` builds without running them. No page loads anything from the network.
"""

import importlib.util
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

import pgcc

project = "pgcc"
author = "The pgcc developers"
copyright = author
release = version = pgcc.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "reference_pages",  # a page per public name
    "code_links",  # `pgcc.dpp` in a page leads to its reference page
    "mathml",  # formulas without JavaScript
]
exclude_patterns = ["_build", "_extensions", "**/.ipynb_checkpoints"]
nitpicky = True
# What single backquotes hold in docstrings is often an argument, and types are words. Links of pages are checked.
nitpick_ignore_regex = [("py:obj", ".*"), ("py:class", ".*")]
default_role = "py:obj"

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "amsmath"]
myst_heading_anchors = 3
myst_links_external_new_tab = False
nb_execution_mode = "cache"
nb_execution_timeout = 120
nb_merge_streams = True

autodoc_typehints = "none"  # docstrings say what arguments are, in words
autodoc_member_order = "bysource"
autodoc_mock_imports = [name for name in ("torch", "distributed") if importlib.util.find_spec(name) is None]
napoleon_google_docstring = False
napoleon_use_param = False
napoleon_use_rtype = False
napoleon_use_ivar = True
strip_signature_backslash = True  # napoleon then keeps the underscore of circuit_
python_use_unqualified_type_names = True
toc_object_entries = False
add_module_names = True

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "pydata_sphinx_theme"
html_title = "pgcc"
html_logo = "_static/logo.svg"
html_favicon = "_static/logo.svg"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_theme_options = {
    "show_prev_next": True,
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "search_bar_text": "Search: marginals, k-DPP, .uai …",
}
html_sidebars = {"index": []}

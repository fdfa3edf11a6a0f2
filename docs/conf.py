"""Configuration of the documentation site: ``make docs`` builds it into ``build/site``, without a network."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(Path(__file__).parent / "_extensions"), str(ROOT / "tests" / "golden")]

import hogwild  # noqa: E402

project = "hogwild"
author = "The authors of hogwild"
project_copyright = author
version = release = hogwild.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_gallery.gen_gallery",
    "sphinx_design",
    "sphinx_copybutton",
    "numpydoc",
    "command_line",
    "mathml",
    "own_members",
    "repository_pages",
]
exclude_patterns = ["_*", "gallery/**/*.ipynb", "gallery/**/*.py", "gallery/**/*.md5", "gallery/**/*.zip"]
templates_path = ["_templates"]
highlight_language = "none"
nitpicky = True
smartquotes_action = "qe"  # quotes and ellipses; two hyphens begin an option
toc_object_entries_show_parents = "hide"  # names of members fit beside the page
python_maximum_signature_line_length = 88
# Annotations name types of other packages, whose pages cannot be looked up without a network.
nitpick_ignore_regex = [
    ("py:class", ".*"),
    ("py:mod", ".*"),
    ("py:data", ".*"),
    ("py:exc", "[A-Z].*"),
    ("py:obj", ".*"),
]

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "attrs_block"]
myst_heading_anchors = 4
myst_words_per_minute = 220
suppress_warnings = ["config.cache"]

autosummary_generate = True
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autodoc_default_options = {"members": True, "inherited-members": True, "undoc-members": True}
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "pydata_sphinx_theme"
html_title = "hogwild"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/mark.svg"
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "hogwild", "image_light": "_static/mark.svg", "image_dark": "_static/mark.svg"},
    "navbar_align": "left",
    "navbar_persistent": ["search-button"],
    "navbar_end": ["theme-switcher"],
    "header_links_before_dropdown": 8,
    "show_prev_next": True,
    "show_toc_level": 2,
    "navigation_depth": 3,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "back_to_top_button": False,
}
html_context = {"default_mode": "auto"}
html_sidebars = {"index": []}

sphinx_gallery_conf = {
    "examples_dirs": str(ROOT / "examples"),
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "ignore_pattern": r"__init__\.py",
    "reset_argv": "example_arguments.arguments",
    "plot_gallery": "True",
    "parallel": True,  # as many at a time as -j says; most of their time is taken by the compiler
    "abort_on_example_error": True,
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "within_subsection_order": "FileNameSortKey",
    "capture_repr": (),
    "default_thumb_file": str(ROOT / "docs" / "_static" / "mark.png"),
}

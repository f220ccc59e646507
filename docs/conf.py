"""How Sphinx builds the documentation: ``python3 run.py docs``."""
import re

import dy2static

project = "dy2static"
author = "The dy2static authors"
release = version = dy2static.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc"]
html_theme = "furo"
html_title = f"dy2static {release}"
exclude_patterns = ["_build"]
source_suffix = {".md": "markdown"}
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
autodoc_typehints = "none"
autodoc_member_order = "bysource"
default_role = "code"
suppress_warnings = ["misc.highlighting_failure"]


#: ``name: what it is``, or several names, at the beginning of a line.
PARAMETER = re.compile(r"^(\*{0,2}[a-z_]\w*(?:, \*{0,2}[a-z_]\w*)*): +(.*)$")


def as_fields(app, what, name, obj, options, lines):
    """Docstrings are paragraphs of plain text; lines ``name: what it is`` describe parameters and attributes."""
    shown = []
    for line in lines:
        text = line.strip().replace("*", r"\*").replace("|", r"\|")
        found = PARAMETER.match(line)
        if found:
            shown += [f":param {found[1]}: " + found[2].replace("*", r"\*").replace("|", r"\|")]
        elif text and shown and shown[-1].startswith(":param") and line[:1] == " ":
            shown[-1] += " " + text                     # what goes on is indented
        else:
            shown += ["", text] if text and shown and shown[-1].startswith(":param") else [text]
    lines[:] = [*shown, ""]


def setup(app):
    """Called by Sphinx."""
    app.connect("autodoc-process-docstring", as_fields)

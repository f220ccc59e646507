"""How Sphinx builds the documentation: ``python3 run.py docs``."""
import dy2static        # noqa: I001  before Chainer, which autodoc imports

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


def as_literal(app, what, name, obj, options, lines):
    """Docstrings are plain text: paragraphs stay, and what is indented or lists parameters is a list of lines."""
    text = "\n".join(lines).strip("\n").splitlines()
    shown = []
    for line in text:
        escaped = line.replace("*", r"\*").replace("|", r"\|")
        shown.append(f"| {escaped.strip()}" if line.strip() else "")
    lines[:] = [*shown, ""]


def setup(app):
    """Called by Sphinx."""
    app.connect("autodoc-process-docstring", as_literal)

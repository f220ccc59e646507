"""The README as a package index shows it; all else is in setup.cfg."""
import re
from pathlib import Path

from setuptools import setup

# a link or an image ("!") to a file of the checkout, which an index does not have: neither a URL nor a place in the page
RELATIVE = re.compile(r"!?\[([^\]]*)\]\((?![a-z]+:|#)[^)]*\)")


def description():
    """The README, with the text of each relative link in place of the link."""
    return RELATIVE.sub(r"\1", (Path(__file__).parent / "README.md").read_text(encoding="utf-8"))


setup(long_description=description(), long_description_content_type="text/markdown")

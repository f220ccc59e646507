"""The documentation builds without a warning; its links lead somewhere; examples in docstrings give what they show."""
import doctest
import importlib
import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

import dy2static

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


@pytest.mark.any_python
def test_the_site_builds(tmp_path):
    done = subprocess.run([sys.executable, "-m", "sphinx", "-W", "-q", str(ROOT / "docs"), str(tmp_path)], cwd=str(tmp_path),
                          env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout
    index = (tmp_path / "index.html").read_text(encoding="utf-8")
    pages = {path.relative_to(ROOT / "docs").with_suffix("").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert all(f'href="{page}.html' in index for page in pages - {"index"}), "every page is in the table of contents"
    assert "dy2static.to_static" in (tmp_path / "api.html").read_text(encoding="utf-8")


def test_every_key_of_stats_is_described():
    listed = re.findall(r"^ *(\w+): ", dy2static.StaticFunction.stats.__doc__, re.M)
    compiled = dy2static.to_static(lambda x: x + x)
    compiled(np.ones(2))
    assert listed == list(compiled.stats())


WITH_EXAMPLES = sorted(path for path in (ROOT / "dy2static").rglob("*.py") if ">>> " in path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=lambda path: path.stem)
def test_examples_of_docstrings_give_what_they_show(path):
    module = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
    done = doctest.testmod(module, extraglobs={"dy2static": dy2static, "np": np})
    assert done.attempted and not done.failed


PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")] + sorted((ROOT / "docs").rglob("*.md"))


@pytest.mark.any_python
def test_the_changelog_has_each_entry_once_and_under_a_theme():
    """Git joins the lines of both sides when it merges this page."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    released = text.partition("\n## 0.2.0")[2]
    assert "\n- " not in released.partition("\n### ")[0]
    starts = re.findall(r"^- (.{60})", text, re.M)
    assert len(starts) == len(set(starts))


def anchors(page):
    """The anchors of the headings of a page, as GitHub makes them."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in re.findall(r"^#+ (.*)$", text, re.M)}


@pytest.mark.any_python
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_to_headings(page):
    for path, anchor in re.findall(r"\]\((?!https?:)([^)#]*)#([^)]+)\)", page.read_text(encoding="utf-8")):
        assert anchor in anchors(page.parent / path if path else page), f"{path}#{anchor}"


INTERNALS = [page for page in PAGES if page.parent.name == "architecture" or page.name == "architecture.md"]


@pytest.mark.any_python
@pytest.mark.parametrize("page", INTERNALS, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_files_that_the_architecture_names_exist(page):
    files = {path.as_posix() for folder in ("dy2static", "tests", "benchmarks") for path in (ROOT / folder).rglob("*.*")}
    named = re.findall(r"`((?:\w+/)*\w+\.(?:py|c|h))\b", page.read_text(encoding="utf-8"))
    assert [name for name in named if not any(file.endswith("/" + name) for file in files)] == []

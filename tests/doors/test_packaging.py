"""What an index gets: the source distribution, and the wheel that is built of it, without a network."""
import ast
import email
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import dy2static

ROOT = Path(dy2static.__file__).resolve().parent.parent
pytest.importorskip("setuptools", reason="setuptools is not installed")
pytest.importorskip("wheel", reason="wheel is not installed")

BUILD = "import sys; from setuptools import build_meta; print(getattr(build_meta, sys.argv[1])(sys.argv[2]))"

# what `import dy2static` must not ask for: what extras and commands need (Chainer itself asks for CuPy and Pillow)
LATE = {"IPython", "basedpyright", "click", "furo", "hypothesis", "matplotlib", "mpi4py", "mypy", "myst_parser", "onnx", "onnxruntime", "pytest",
        "setuptools", "sklearn", "sphinx"}

# what its modules may import when they are loaded
ALLOWED = {"dy2static", "astor", "chainer", "chainerx", "gast", "numpy", "packaging", "safetensors"}

IMPORTS = """
import sys

class Asked:
    def find_spec(name, *_):
        asked.add(name.partition(".")[0])

asked = set()
sys.meta_path.insert(0, Asked)
import dy2static
print(*asked)
"""

# needs headers, C sources and the explorer's files
USE = """
import dy2static, sys
import numpy as np

@dy2static.to_static(strict=True, backend="c")
def f(x):
    return np.tanh(x) @ x

x = np.eye(3, dtype=np.float32)
assert np.allclose(f(x), np.tanh(x))
f.explore(x).save(sys.argv[1])
print(dy2static.__file__)
"""


def python(*arguments, **options):
    """What Python prints when it runs with these arguments."""
    run = subprocess.run([sys.executable, *map(str, arguments)], capture_output=True, text=True, timeout=300, **options)
    assert run.returncode == 0, run.stderr
    return run.stdout.strip()


def built(tree, kind, folder):
    """The path of the distribution that the build hook ``kind`` writes."""
    return folder / python("-c", BUILD, kind, folder, cwd=tree).split("\n")[-1]


@pytest.fixture(scope="module")
def distributions(tmp_path_factory):
    """(sdist, wheel), made in a copy of the checkout."""
    folder = tmp_path_factory.mktemp("packaging")
    tree = folder / "tree"
    shutil.copytree(ROOT / "dy2static", tree / "dy2static", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("setup.py", "setup.cfg", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree)
    sdist = built(tree, "build_sdist", folder)
    shutil.unpack_archive(sdist, folder, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    return sdist, built(folder / sdist.name[:-len(".tar.gz")], "build_wheel", folder)


@pytest.mark.any_python
def test_the_wheel_has_every_file_of_the_package(distributions):
    with zipfile.ZipFile(distributions[1]) as archive:
        names = {name for name in archive.namelist() if not name.endswith("/")}
    package = {path.relative_to(ROOT).as_posix() for path in (ROOT / "dy2static").rglob("*")
               if path.is_file() and path.parent.name != "__pycache__"}
    assert {Path(name).suffix for name in package} >= {".py", ".pyi", ".typed", ".c", ".h", ".html", ".js", ".css"}
    information = {name for name in names if ".dist-info/" in name}
    assert names - information == package
    assert any(name.endswith("/LICENSE") for name in information)


@pytest.mark.any_python
def test_an_index_can_show_the_readme(distributions):
    with zipfile.ZipFile(distributions[1]) as archive:
        name = next(name for name in archive.namelist() if name.endswith("METADATA"))
        metadata = email.message_from_string(archive.read(name).decode("utf-8"))
    assert metadata["Version"] == dy2static.__version__ and metadata["Description-Content-Type"] == "text/markdown"
    text = metadata.get_payload() or metadata["Description"]
    targets = re.findall(r"\]\(([^)]*)\)", text)
    assert targets and all(target.startswith("https://") for target in targets)
    assert "docs/training.md" in text and text.count("```") == (ROOT / "README.md").read_text(encoding="utf-8").count("```")


@pytest.mark.any_python
@pytest.mark.skipif(not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="there is no C compiler")
def test_the_wheel_works_where_it_is_unpacked(distributions, tmp_path):
    with zipfile.ZipFile(distributions[1]) as archive:
        archive.extractall(tmp_path / "site")
    (tmp_path / "use.py").write_text(USE, encoding="utf-8")
    place = python("use.py", "page.html", cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(tmp_path / "site")})
    assert Path(place).is_relative_to(tmp_path / "site")
    assert "<style>" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_import_asks_for_no_optional_package():
    asked = set(python("-c", IMPORTS, env={**os.environ, "PYTHONPATH": str(ROOT)}).split())
    assert {"chainer", "gast"} <= asked
    assert not asked & LATE


@pytest.mark.skipif(sys.version_info < (3, 10), reason="Python 3.9 has no list of its own modules")
def test_what_the_modules_that_an_import_loads_import_themselves():
    """At their first level, outside of functions and of blocks for type checkers: what `import dy2static` costs is decided here."""
    script = "import sys, dy2static; print(*[m.__file__ for n, m in sys.modules.items() if n.partition('.')[0] == 'dy2static'])"
    files = [Path(name) for name in python("-c", script, env={**os.environ, "PYTHONPATH": str(ROOT)}).split()]
    assert len(files) > 300
    found = {}
    for file in files:
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else \
                [node.module] if isinstance(node, ast.ImportFrom) and not node.level else []
            for name in names:
                found.setdefault(name.partition(".")[0], file)
    others = {name: str(file) for name, file in found.items() if name not in sys.stdlib_module_names and name not in ALLOWED}
    assert not others
    assert not found.keys() & {"asyncio", "concurrent", "http", "multiprocessing", "sqlite3", "unittest", "urllib", "xml"}

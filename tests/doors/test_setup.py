"""What is said twice about the set-up is said alike."""
import configparser
import os
import re
import runpy
import sys
from pathlib import Path

import pytest

import dy2static
from dy2static import compat

ROOT = Path(dy2static.__file__).resolve().parent.parent
RUN = runpy.run_path(str(ROOT / "run.py"), run_name="run")


def setup_cfg():
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg", encoding="utf-8")
    return parser


def test_one_version():
    assert setup_cfg()["metadata"]["version"] == dy2static.__version__


def test_one_chainer():
    assert RUN["CHAINER"] in setup_cfg()["options"]["install_requires"].split()
    assert compat.INSTALL_CHAINER[1].endswith(RUN["CHAINER"])


def test_one_oldest_python():
    assert setup_cfg()["options"]["python_requires"] == ">=%d.%d" % RUN["OLDEST"]


def test_the_readme_names_what_is_needed():
    """One bound of setuptools everywhere, a C compiler, and no extras with nothing behind them."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    bounds = set(re.findall(r"setuptools(?: older than |[^\n]*?<)(\d+)", "\n".join([readme, *RUN["BUILD"]])))
    assert bounds == {"81"}
    assert "C compiler" in readme and "C compiler" in RUN["__doc__"]
    extras = set(setup_cfg()["options.extras_require"])
    assert extras == {"test", "examples", "docs", "export", "cuda12", "cuda13", "mpi"}
    assert extras - {"test"} <= set(re.findall(r"^\| `(\w+)` \|", readme, re.M))


def test_every_number_of_the_readme_has_a_source():
    """Numbers of its text and commands; its tables of speeds and its program have tests of their own."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    text = re.sub(r"<!-- begin: \w+ -->.*?<!-- end -->|^```python$.*?^```$|\]\([^)]*\)|dy2static", "", text, flags=re.M | re.S)
    setup = setup_cfg()
    pythons = re.findall(r"Python :: (3\.\d+)$", setup["metadata"]["classifiers"], re.M)
    source = {pythons[0], pythons[-1], RUN["CHAINER"].partition("==")[2],            # from 3.9 to 3.13, Chainer 7.8.1
              *re.findall(r"setuptools[^\n]*?<(\d+)", "\n".join(RUN["BUILD"])),
              *re.findall(r"^cuda(\d+) =$", (ROOT / "setup.cfg").read_text(encoding="utf-8"), re.M)}
    assert f">={pythons[0]}" == setup["options"]["python_requires"]
    # the generation of NumPy, an option's example, and the difference of `test_examples.py::test_digits`
    text = re.sub(r"NumPy 2(\.0 release)?\b|check=3|about 1e-7|python3", "", text)
    assert set(re.findall(r"(?<![\w.])\d[\w.]*\d|(?<=cuda)\d+|(?<![\w.])\d(?![\w.])", text)) == source


@pytest.mark.skipif(not hasattr(sys, "stdlib_module_names"), reason="Python 3.9 does not know its library")
def test_the_examples_need_what_the_readme_installs():
    paths = list((ROOT / "examples").rglob("*.py"))
    imported = {name for path in paths for name in re.findall(r"^(?:from|import) (\w+)", path.read_text(encoding="utf-8"), re.M)}
    others = imported - sys.stdlib_module_names - {path.stem for path in paths} - {"dy2static", "chainer", "chainermn", "numpy"}
    extra = setup_cfg()["options.extras_require"]["examples"].split()
    assert others == {"sklearn"} and "scikit-learn" in extra
    assert '".[examples]"' in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_readme_gives_the_commands_that_run_py_has():
    commands = re.findall(r"^python3 run\.py (\w+)", (ROOT / "README.md").read_text(encoding="utf-8"), re.M)
    assert commands == ["demo", "test"]
    assert set(commands) < set(RUN["COMMANDS"])


@pytest.mark.skipif(os.name == "nt", reason="Windows has no executable bit")
def test_ci_can_be_started():
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


def test_an_environment_is_set_up_again_when_its_recipe_changes():
    environment = RUN["Environment"]
    assert environment().recipe() == environment().recipe()
    assert environment("1.23.5").recipe() != environment().recipe()
    assert environment("1.23.5").folder != environment().folder

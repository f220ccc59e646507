"""What tests of several files of this folder need."""
import importlib.util
import textwrap

import pytest

from dy2static import config

HEADER = "import chainer\nimport chainer.functions as F\nfrom dy2static import *\n"


@pytest.fixture
def module(tmp_path):
    """``module(text)``: the text as a module with a file of its own, so that its functions are new to us."""
    count = iter(range(100))

    def load(text):
        path = tmp_path / f"user_{next(count)}.py"
        path.write_text(HEADER + textwrap.dedent(text))
        spec = importlib.util.spec_from_file_location(path.stem, path)
        made = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(made)
        return made
    return load


@pytest.fixture
def quiet():
    """Logging is off before and after the test."""
    with config.CODE_LEVEL.set(""), config.PASS_LEVEL.set(""), config.VERBOSITY.set(0), config.ENABLED.set(1):
        yield

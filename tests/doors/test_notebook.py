"""Where users type: notebooks, Python's prompt, ``python -c``."""
import importlib.util
import os
import subprocess
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
TYPED = """\
import numpy as np, dy2static
@dy2static.to_static
def f(x):
    if x.sum() > 0:
        return x * 2
    return x

print(f(np.ones(3, np.float32)), f.cache_info().captures)
print(f.explain(np.ones(3, np.float32)))
"""


def run(*arguments, text=""):
    """What a new Python prints, errors and warnings included."""
    found = subprocess.run([sys.executable, *arguments], input=text, text=True, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, timeout=300)
    return found.returncode, found.stdout


@pytest.mark.skipif(importlib.util.find_spec("IPython") is None, reason="IPython is not installed")
def test_a_notebook():
    """Cells with errors between them, functions defined again, ``%%time``, ``%autoreload``: see `notebook`."""
    status, shown = run(os.path.join(HERE, "notebook.py"))
    assert status == 0, shown


@pytest.mark.parametrize("arguments, text", [(("-c", TYPED), ""), (("-q", "-i", "-"), TYPED)], ids=["-c", "prompt"])
def test_functions_that_are_typed(arguments, text):
    """Python keeps what is typed from 3.13 on; before, such functions run eagerly, with one warning that says so."""
    status, shown = run(*arguments, text=text)
    if sys.version_info >= (3, 13):
        assert "[2. 2. 2.] 1" in shown and "FallbackWarning" not in shown and "Error" not in shown
        assert "| graph: numpy sum; graph: numpy gt; graph: if" in shown and "not run" not in shown
    else:
        assert "[2. 2. 2.] 0" in shown and shown.count("FallbackWarning") == 1 and "Error" not in shown
        assert "this call runs eagerly: the source of f cannot be read" in shown

"""The table of common patterns in docs/limitations.md says what happens."""
import importlib.util
import pathlib
import re
import warnings

import chainer
import numpy as np
import pytest

import dy2static

PAGE = pathlib.Path(__file__).resolve().parent.parent.parent / "docs" / "limitations.md"
HEAD = ("import logging\nimport random\nimport chainer\nimport chainer.functions as F\nimport numpy as np\n\n\nclass Holder:\n    pass\n\n\n"
        "STATE, ORDER = Holder(), [0, 1, 2]\n\n\n")
ROWS = re.findall(r"^\| (.+?) \| (`.+?`) \| (compiled|the line runs as Python|the call runs in eager mode) \| ", PAGE.read_text(), re.M)


def test_all_rows_are_read():
    table = PAGE.read_text().split("## Common patterns")[1].split("The details:")[0]
    assert len(ROWS) == len(re.findall(r"^\| .* \|$", table, re.M)) - 1 > 10


@pytest.mark.parametrize("pattern, example, outcome", ROWS, ids=[row[0] for row in ROWS])
def test_pattern(pattern, example, outcome, tmp_path, capsys):
    lines = [*re.findall(r"`(.+?)`(?:<br>|$)", example), "return F.sum(F.tanh(x) * 2)"]
    path = tmp_path / "example.py"
    path.write_text(HEAD + "def f(x):\n" + "".join(f"    {line}\n" for line in lines))
    spec = importlib.util.spec_from_file_location("example", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    compiled = dy2static.to_static(module.f)
    x = np.random.RandomState(1).rand(3, 4).astype("f")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = compiled(chainer.Variable(x))
    assert float(found.array) == float(module.f(chainer.Variable(x)).array)
    stats, warned = compiled.stats(), [w for w in caught if issubclass(w.category, dy2static.FallbackWarning)]
    happened = "compiled" if not warned and stats["captures"] else "the line runs as Python" if not stats["fallbacks"] else \
        "the call runs in eager mode"
    assert happened == outcome, [str(w.message) for w in warned]
    assert len(warned) == (outcome != "compiled")

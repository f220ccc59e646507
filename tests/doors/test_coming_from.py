"""The table for those who come from Paddle: its lines run, one after the other."""
import pathlib
import re
import types

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest

import dy2static
from dy2static.runtime.staticness import IGNORED

PAGE = (pathlib.Path(__file__).resolve().parent.parent.parent / "docs" / "coming-from.md").read_text(encoding="utf-8")


def f(x):
    return F.relu(x) * 2


class Net(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.l = L.Linear(784, 10)

    def forward(self, x):
        return F.dropout(self.l(x))


@pytest.fixture
def namespace(tmp_path, monkeypatch):
    """What the lines start from."""
    monkeypatch.chdir(tmp_path)
    module = types.ModuleType("others")
    with chainer.using_config("train", True):
        yield {**{name: getattr(dy2static, name) for name in dy2static.__all__}, "chainer": chainer, "f": f, "net": Net(),
               "x": np.ones((4, 784), np.float32), "strategy": object(), "module": module, "look": lambda x: None}
    IGNORED.clear()
    dy2static.enable_to_static(True)
    dy2static.set_code_level("")


def lines_of(title):
    """The first code in the right column of a table."""
    section = PAGE.partition(f"## … {title}")[2].partition("\n## ")[0]
    rows = [row for row in section.splitlines() if row.startswith("| `")]
    return [re.match(r"\| .* \| `(.*?)`", row).group(1) for row in rows]


def test_every_line_of_the_table_for_paddle_runs(namespace):
    lines = lines_of("Paddle's")
    assert len(lines) > 30
    for line in lines:
        try:
            exec(line, namespace)
        except Exception as error:
            pytest.fail(f"{line}: {error!r}")
    np.testing.assert_array_equal(namespace["y"], f(namespace["x"]).array)


NAMES = """to_static not_to_static ignore_module enable_to_static set_code_level set_verbosity InputSpec StaticFunction
ProgramTranslator TracedLayer TranslatedLayer Executor CPUPlace CUDAPlace load_inference_model save load"""


@pytest.mark.parametrize("name", NAMES.split())
def test_every_name_is_there_and_in_the_table(name):
    assert name in dy2static.__all__ and hasattr(dy2static, name) and name in PAGE

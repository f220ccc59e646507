"""Parts of C texts: which of them are the same function, and which texts are the same library."""
import pathlib
import re

import chainer.functions as F
import numpy as np
import pytest

from dy2static import to_static
from dy2static.backends.c import names
from dy2static.backends.c.outline import Parts, numbered
from dy2static.native import compiler

pytestmark = pytest.mark.any_python

TYPES = {"x": "const float *", "y": "float *", "z": "float *"}


def call(parts, *lines):
    return parts.call(lines, TYPES, {"x", "y", "z"})


@pytest.mark.parametrize("first, second", [
    ("y[k] = x[80 + k];", "y[k] = x[k];"), ("y[k] = x[20];", "y[k] = x[0];"), ("f((x + 20), 3, y);", "f(x, 3, y);"),
    ("y[k] = ((const uint8_t *)x)[5 + k];", "y[k] = ((const uint8_t *)x)[k];"),
    ("y[k] = x[20 + k] + x[40 + k];", "y[k] = x[k] + x[20 + k];"),
    ("y[4 + k] = x[7 + k];", "z[k] = x[4 + k];")])
def test_the_front_of_an_array_is_a_part_like_others(first, second):
    parts = Parts()
    assert call(parts, first).split("(")[0] == call(parts, second).split("(")[0]
    assert len(parts.texts) == 1


def test_other_texts_are_other_functions():
    parts = Parts()
    for line in ("y[k] = x[20 + k] + x[40 + k];", "y[k] = x[k] + x[21 + k];", "y[k] = x[k * 2];", "y[0] = x[0] + x[1];"):
        call(parts, line)
    assert len(parts.texts) == 4


def test_names_depend_on_their_order_only():
    own = {"gain", "gain_2", "h_7", "sqrt"}
    assert numbered("float sum_gain_2 = gain[k] + h_7[sum_gain_2];", own) == "float sum_v_0 = v_1[k] + v_2[sum_v_0];"
    assert numbered("#define gain p[3]\ny = sqrt(gain) + sqrt[k];", own) == "#define v_0 p[3]\ny = sqrt(v_0) + sqrt[k];"


@pytest.mark.skipif(not compiler.available(), reason="there is no C compiler on this machine")
def test_functions_that_do_the_same_have_the_same_library(monkeypatch):
    """Names of the user's make no difference; an array may have the name of a function that the text calls."""
    def first(x, y):
        return F.sqrt(x) * y

    def second(image, gain):
        return F.sqrt(image) * gain

    def third(sqrt, define):
        return F.sqrt(sqrt) * define

    sources = []
    start = compiler.start
    monkeypatch.setattr(compiler, "start", lambda source, *flags: sources.append(source) or start(source, *flags))
    x, y = np.random.RandomState(0).rand(2, 3, 4)
    results = [to_static(function, strict=True, backend="c")(x, y).array for function in (first, second, third)]
    for result in results:
        np.testing.assert_allclose(result, np.sqrt(x) * y, 1e-15)
    texts = [source for source in sources if "PyObject *call_0" in source]
    assert len(texts) == 3 and texts[0] == texts[1]


def test_variables_of_kernels_hide_no_value():
    """Values may be called like the user's names; those that kernels declare themselves are given to none."""
    declared = re.compile(r"(?:int64_t|bool|\{type\}|uint8_t|int|double|float|dy_[a-z_]+|char|size_t) (?:\*(?:const )?)?([a-z]+) ?(?:=|\[|;|,)")
    folder = pathlib.Path(names.__file__).parent
    found = {name for file in folder.glob("*.py") for name in declared.findall(file.read_text())}
    assert {"size", "kept", "windows", "best"} < found
    assert [name for name in sorted(found) if names.CNames().fresh(name) == name] == []

"""Numbers that are looked up in a rising row, in ONNX files and in C: as NumPy does, of any sizes, and NaN included."""
import warnings

import numpy as np
import pytest
from c_library import CLibrary

from dy2static import InputSpec
from dy2static.export.captured import exported
from dy2static.export.to_onnx.door import model_of_program
from dy2static.export.to_onnx.writer import Options

LEFT, EDGES = np.array([-0.5, 0.1, 0.1, 0.4], "f"), [0.7, 0.2, -0.3]


def searched(x, row):
    return np.searchsorted(np.sort(row), x), np.searchsorted(LEFT, x, side="right"), np.sort(row).searchsorted(x, "right")


def digitized(x, row):
    return (np.digitize(x, LEFT), np.digitize(x, np.sort(row), right=True), np.digitize(x, np.array([0.5, 0.1, 0])),
            np.digitize(x, -np.sort(row)) if len(row) else row)


def between(x, row):
    known = np.interp(x, [0, 0.2, 0.2, 0.4], [1., 2., 3., 0.]), np.interp(x, LEFT, LEFT * 2, left=-1, right=7)
    return (*known, np.interp(x, np.sort(row), row))


def cases(rows):
    for n, m in rows:
        draw = np.random.RandomState(n + m)
        x = draw.uniform(-1, 1, (n, 2)).astype("f")
        x[:1, 0], x[1:2] = np.nan, 0.1
        yield x, draw.uniform(-1, 1, m)


def compare(function, run, rows):
    for x, row in cases(rows):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")             # eager division by zero between two points in one place
            expected = function(x, row)
        found = run(x, row)
        assert len(found) == len(expected)
        for actual, wanted in zip(found, expected):
            assert (actual.shape, actual.dtype) == (wanted.shape, wanted.dtype)
            np.testing.assert_allclose(actual, wanted, rtol=1e-6, atol=1e-9)


ALL = searched, digitized, between
ROWS = (4, 5), (3, 2), (1, 4), (2, 1), (7, 3)


@pytest.fixture(scope="module")
def programs():
    return [exported(function, [InputSpec(["n", 2]), InputSpec(["m"], "float64")]) for function in ALL]


@pytest.mark.parametrize("number", range(len(ALL)))
def test_in_onnx(number, programs):
    runs = pytest.importorskip("onnx_runs")
    opened = runs.session(model_of_program(programs[number], Options()))
    compare(ALL[number], lambda x, row: opened.run(None, {"x": x, "row": row}), ROWS)


def test_in_c(programs, tmp_path):
    library = CLibrary()
    for program in programs:
        library.add(program)
    for function, model in zip(ALL, library.build(tmp_path)):
        compare(function, model, ROWS)

"""Pairs of elements, deviations, covariances and quantiles of arrays of any size, in ONNX files and in C: as NumPy gives them."""
import numpy as np
import pytest
from c_library import CLibrary

from dy2static import InputSpec
from dy2static.export.captured import exported
from dy2static.export.to_onnx.door import model_of_program
from dy2static.export.to_onnx.writer import Options


def pairs(x, i):
    return (np.subtract.outer(x[:, 0], x), np.maximum.outer(i, i), np.less.outer(i, i), np.outer(i, i), np.kron(x, np.array([[1, -1]], "f")),
            np.append(i, 7))


def deviations(x, i):
    return np.std(x, axis=0, ddof=1), np.var(x, ddof=1), np.std(i, ddof=1), np.cov(x.T), np.cov(x[:, 1]), np.vdot(x, x)


def quantiles(x, i):
    return np.quantile(x, 0.3, axis=0), np.percentile(x.astype("d"), 80), np.quantile(x, 1, axis=0, keepdims=True)


ALL = pairs, deviations, quantiles


def compare(function, run):
    for n in (4, 2, 7, 3):
        x, i = np.random.RandomState(n).randn(n, 3).astype("f"), np.arange(n) % 3 - 1
        expected, found = function(x, i), run(x, i)
        assert len(found) == len(expected)
        for actual, wanted in zip(found, expected):
            assert (actual.shape, actual.dtype) == (wanted.shape, wanted.dtype)
            np.testing.assert_allclose(actual, wanted, rtol=2e-6, atol=1e-6)


@pytest.fixture(scope="module")
def programs():
    return [exported(function, [InputSpec(["n", 3]), InputSpec(["n"], "int64")]) for function in ALL]


@pytest.mark.parametrize("number", range(len(ALL)))
def test_in_onnx(number, programs):
    runs = pytest.importorskip("onnx_runs")
    opened = runs.session(model_of_program(programs[number], Options()))
    compare(ALL[number], lambda x, i: opened.run(None, {"x": x, "i": i}))


def test_in_c(programs, tmp_path):
    library = CLibrary()
    for program in programs:
        library.add(program)
    for function, model in zip(ALL, library.build(tmp_path)):
        compare(function, model)

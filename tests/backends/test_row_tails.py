"""Rows that are not whole vectors: what is left of them is one vector more, whose other lanes compute nothing of their own."""
import ctypes
import mmap
import sys
import warnings

import chainer
import chainer.functions as F
import numpy as np
import pytest

import dy2static
from dy2static.native import compiler, cpus

pytestmark = [pytest.mark.any_python, pytest.mark.skipif(not cpus.has_masked_loads() or not compiler.available(), reason="needs AVX2 and a C compiler")]

FUNCTIONS = {
    "layer normalization": lambda x, y: F.layer_normalization(x, y[0], y[1]),
    "softmax": lambda x, y: F.softmax(x * y),
    "largest": lambda x, y: F.max(F.relu(x + y), axis=1),
    "smallest": lambda x, y: F.min(x / y, axis=1),
    "product": lambda x, y: F.prod(x, axis=1) + F.sum(y, axis=1),
    "kept": lambda x, y: F.exp(-abs(F.exp(x) - F.broadcast_to(F.max(F.exp(x), axis=1, keepdims=True), x.shape))),
    "elements": lambda x, y: F.tanh(x + F.broadcast_to(y[0], x.shape)) * F.sigmoid(y),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_length_of_row(name, dtype):
    """Known sizes first, and then one program for all others."""
    rng, function = np.random.default_rng(5), FUNCTIONS[name]
    compiled = dy2static.to_static(function, backend="c")
    for size in (21, 46, *range(1, 37), 64, 100):
        x, y = (rng.uniform(0.5, 1.5, (3, size)).astype(dtype) for _ in range(2))
        with chainer.no_backprop_mode():
            expected, actual = function(x, y).array, compiled(x, y).array
        np.testing.assert_allclose(actual, expected, rtol=1e-4 if dtype == "float32" else 1e-11)
    with chainer.no_backprop_mode():
        assert "dy_last_" in compiled.program(x, y).native_code and compiled.cache_info().programs <= 8


def test_gradients():
    def function(x, g):
        return F.sum(F.softmax(F.layer_normalization(x, g, g)) ** 2)

    compiled, rng = dy2static.to_static(function, backend="c"), np.random.default_rng(6)
    for size in (10, 30, 47, 33):
        found = []
        values = rng.standard_normal((4, size)), rng.standard_normal(size)
        for each in (function, compiled):
            x, g = (chainer.Variable(value.copy()) for value in values)
            each(x, g).backward()
            found.append((x.grad, g.grad))
        for expected, actual in zip(*found):
            np.testing.assert_allclose(actual, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("place", [0, 15, 16, 17, 29])
@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf, 0.0])
def test_numbers_that_are_special(place, number):
    def function(x):
        return F.max(F.log(x), axis=1), F.min(1 / x, axis=1), F.sum(x, axis=1)

    x = np.random.default_rng(7).uniform(0.5, 1.5, (4, 30)).astype("f")
    x[1, place] = number
    compiled, found = dy2static.to_static(function, backend="c"), []
    with chainer.no_backprop_mode():
        for each in (function, compiled):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                found.append([y.array for y in each(x)] + [sorted({str(w.message) for w in caught})])
    np.testing.assert_allclose(found[1][:3], found[0][:3], rtol=1e-5)
    assert found[1][3] == found[0][3]


def test_lanes_behind_the_row_raise_no_warning():
    """What lies behind a row is the next one: zeros there are not divided by."""
    def function(x):
        return F.sum(1 / x[:, :10], axis=1), F.max(F.log(x[:, :10]), axis=1)

    x = np.zeros((3, 16), "f")
    x[:, :10] = 2
    with warnings.catch_warnings(), chainer.no_backprop_mode():
        warnings.simplefilter("error")
        compiled = dy2static.to_static(function, backend="c")
        np.testing.assert_allclose([y.array for y in compiled(x)], [np.full(3, 5), np.full(3, np.log(2))], rtol=1e-6)


@pytest.mark.skipif(sys.platform == "win32", reason="has no mprotect")
def test_memory_behind_an_array_is_not_read():
    page, library = mmap.PAGESIZE, ctypes.CDLL(None)
    memory = mmap.mmap(-1, 2 * page)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    assert library.mprotect(ctypes.c_void_p(address + page), page, 0) == 0
    x = np.frombuffer(memory, "f", 30, page - 120).reshape(3, 10)
    x[...] = 1
    with chainer.no_backprop_mode():
        np.testing.assert_allclose(dy2static.to_static(lambda x: F.softmax(x), backend="c")(x).array, np.full((3, 10), 0.1), rtol=1e-6)

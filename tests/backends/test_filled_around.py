"""Arrays of one number around a part: the part is written once where it is most of the array, with the same values as ever."""
import chainer
import numpy as np
import pytest
from native_cases import NativeCase, build

from dy2static import ops, to_static
from dy2static.native import compiler
from tests.backends.test_loop_ir import graph

pytestmark = [pytest.mark.any_python, pytest.mark.skipif(not compiler.available(), reason="there is no C compiler on this machine")]

ALL = slice(None)
PARTS = [
    ((300,), (slice(5, 290),)), ((3, 200), (ALL, slice(3, 180))), ((3, 200), (slice(1, 3), slice(3, None))), ((1, 256), (0,)),
    ((4, 5, 160), (ALL, slice(1, 5), slice(150))), ((4, 6, 3, 50), (slice(1, 4), slice(1, None))), ((2, 200), (1,)), ((2, 200), (1, slice(9, 190))),
    ((3, 200), (ALL, slice(3, 20))),                                                            # few elements
    ((40, 5), (ALL, slice(1, None))),                                                           # short lines
    ((3, 200), (ALL, slice(None, None, -1))), ((3, 200), (ALL, None, slice(1, None))), ((3, 200), (slice(1, 1),)), ((0, 200), (ALL, slice(1, None)))]


@pytest.mark.parametrize("dtype", ["float32", "int16"])
def test_parts_among_zeros(dtype):
    cases = []
    for shape, index in PARTS:
        part = np.random.RandomState(0).uniform(-9, 9, np.empty(shape)[index].shape).astype(dtype)
        made = graph(lambda x, index=index, shape=shape: ops.scatter_slice(x, index=index, shape=shape), part.shape, dtype=dtype)
        cases.append(NativeCase(f"{shape} {index}", made, [part]))
    build(cases)
    for case, (shape, index) in zip(cases, PARTS):
        expected = np.zeros(shape, dtype)
        expected[index] = case.operands[0]
        (actual,) = case.run(*case.operands)
        assert np.array_equal(actual, expected) and not case.declined, case.name


@pytest.mark.parametrize("number", [0, -0.0, 1.5, np.nan])
@pytest.mark.parametrize("width", [2, ((0, 0), (3, 1)), ((1, 0), (0, 0)), ((0, 3), (0, 70))])
def test_padding(width, number):
    x = np.random.RandomState(0).standard_normal((3, 150)).astype("f")
    def padded(x):
        return np.pad(x, width, constant_values=number) * 2
    result = to_static(padded, backend="c", strict=True)(x)
    np.testing.assert_array_equal(result, padded(x))
    assert np.array_equal(np.signbit(result), np.signbit(padded(x)))


def test_gradients_of_parts_that_overlap():
    def f(x):
        return x[1:, 2:] * 2 + x[:-1, :-2] * x[:-1, 1:-1]
    x, found = np.random.RandomState(0).standard_normal((20, 300)).astype("f"), []
    for each in (f, to_static(f, backend="c", strict=True)):
        given = chainer.Variable(x)
        result = each(given)
        result.grad = x[1:, 2:]
        result.backward()
        found.append(given.grad)
    np.testing.assert_allclose(found[1], found[0], rtol=1e-5, atol=1e-5)

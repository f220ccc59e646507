"""Operands that lie the other way round are turned in squares: which ones, and that no bit changes."""
import numpy as np
import pytest

import dy2static
from dy2static import ops
from dy2static.backends.c import turned_loads as loads
from dy2static.native import compiler
from tests.backends.test_loop_ir import graph, only

pytestmark = pytest.mark.any_python

needs_compiler = pytest.mark.skipif(not compiler.available(), reason="there is no C compiler on this machine")


def turned(function, *shapes):
    """How many loads of the last sweep are turned."""
    nest = only(graph(function, *shapes))
    return len(loads.turned_loads(nest, nest.sweeps[-1]))


def swapped(x):
    return ops.transpose(x, axes=(0, 2, 1))


@pytest.mark.parametrize("function, shapes, count", [
    (lambda x, y: x + swapped(y), [(3, 16, 20), (3, 20, 16)], 1),
    (lambda x, y: ops.tanh(x) * swapped(y) + swapped(y), [(3, 16, 20), (3, 20, 16)], 1),         # twice the same
    (lambda x, y: x + y, [(3, 16, 20), (3, 16, 20)], 0),
    (lambda x, y: x + swapped(y), [(3, 4, 20), (3, 20, 4)], 0),                                  # too few turns
    (lambda x, y: x + ops.transpose(y, axes=(1, 0, 2)), [(16, 20, 8), (20, 16, 8)], 0)])         # whole rows
def test_loads_that_are_turned(function, shapes, count):
    assert turned(function, *shapes) == count


@pytest.mark.parametrize("function, shape, axes", [
    (lambda x: ops.transpose(x, axes=(0, 3, 2, 1)) * 2.0, (3, 16, 20, 24), [0, 2, 1, 3]),        # what lies side by side, next to the last
    (lambda x: ops.transpose(x, axes=(3, 2, 1, 0)) * 2.0, (16, 20, 24, 9), [1, 2, 0, 3]),
    (lambda x: ops.transpose(x, axes=(0, 2, 1, 3)) * 2.0, (3, 16, 20, 24), [0, 1, 2, 3]),        # whole rows
    (lambda x: ops.transpose(x, axes=(0, 3, 2, 1)) * 2.0, (3, 16, 20, 4), [0, 1, 2, 3]),         # too few turns
    (lambda x: ops.transpose(x, axes=(0, 3, 2, 1)) * x, (3, 16, 20, 16), [0, 2, 1, 3])])
def test_order_of_loops(function, shape, axes):
    loops = only(graph(function, shape), reorders=True).inner
    assert [axis for loop in loops for axis in loop.axes] == axes


def test_buffers_that_would_be_too_large(monkeypatch):
    monkeypatch.setattr(loads, "OWN_BYTES", 5000)
    assert turned(lambda x, y: x + swapped(y), (2, 16, 16), (2, 16, 16)) == 1
    assert turned(lambda x, y: swapped(x) * swapped(y) + x, (2, 16, 16), (2, 16, 16)) == 0


@needs_compiler
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize("shape", [(4, 64, 256), (3, 9, 8), (2, 17, 70), (1, 100, 131)])
def test_no_bit_changes(shape, dtype):
    batch, rows, columns = shape
    x, y = (np.random.RandomState(0).uniform(-9, 9, size).astype(dtype) for size in (shape, (batch, columns, rows)))
    compiled = dy2static.to_static(lambda x, y: x * x - y.transpose(0, 2, 1) * x, backend="c")
    assert np.array_equal(compiled(x, y), x * x - y.transpose(0, 2, 1) * x)


@needs_compiler
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int16", "bool"])
@pytest.mark.parametrize("axes", [(0, 3, 2, 1), (3, 2, 1, 0), (3, 1, 0, 2), (2, 0, 3, 1)])
def test_no_bit_changes_in_another_order(axes, dtype):
    x = np.random.RandomState(0).uniform(-9, 9, (3, 17, 20, 9)).astype(dtype)
    compiled = dy2static.to_static(lambda x: np.where(x.transpose(axes) > 0, x.transpose(axes), 3), backend="c")
    assert np.array_equal(compiled(x), np.where(x.transpose(axes) > 0, x.transpose(axes), 3))


@needs_compiler
def test_an_array_and_itself_turned():
    x = np.random.RandomState(0).standard_normal((200, 200)).astype(np.float32)
    compiled = dy2static.to_static(lambda x: x + 2 * x.T, backend="c")
    assert np.array_equal(compiled(x), x + 2 * x.T)

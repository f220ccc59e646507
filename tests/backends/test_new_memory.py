"""Arrays in new memory that need no other: what is copied, and what is changed, is made where the result goes."""
import numpy as np
import pytest

import dy2static
from dy2static import ops
from dy2static.backends.c.new_memory import without_copies
from dy2static.native import compiler
from tests.backends.test_loop_ir import graph

needs_compiler = pytest.mark.skipif(not compiler.available(), reason="there is no C compiler on this machine")


def twice(x):
    return ops.reshape(ops.broadcast_to(x, shape=(2, 3, 4)), shape=(6, 4))


def joined(x):
    return ops.reshape(ops.concat(x, x, axis=0), shape=(24,))


def changed(x):
    return ops.put(x, ops.full(shape=(4,), value=0.0, dtype=x.dtype), index=(1,))


def two_arrays(x):
    made = ops.tanh(x)
    return made, ops.copy(made)


def three_copies(x):
    made = ops.concat(x, x, axis=0)
    one = ops.copy(made)
    return ops.copy(one), ops.copy(made), one + made


@pytest.mark.parametrize("function, count", [
    (lambda x: ops.copy(twice(x)), 0), (lambda x: ops.copy(joined(x)), 0),
    (lambda x: ops.copy(x), 1),                                                                 # the caller's
    (lambda x: ops.copy(ops.transpose(ops.tanh(x), axes=(1, 0))), 1),                           # in another order
    (two_arrays, 1), (three_copies, 1),                                                         # outputs are apart
    (lambda x: changed(ops.copy(x)), 0),                                                        # which copies
    (lambda x: ops.copy(x) + changed(ops.copy(x)), 1)])
def test_copies_that_stay(function, count):
    made = without_copies(graph(function, (3, 4)))
    assert [node.op.name for node in made.nodes].count("copy") == count
    known = set(made.inputs)
    for node in made.nodes:
        assert known.issuperset(node.inputs)
        known.update(node.outputs)
    assert known.issuperset(made.outputs) and len(set(made.outputs)) == len(made.outputs)


def repeated(x):
    return np.repeat(x, 3, 0), np.tile(x, (2, 2)), np.roll(x, 5), np.roll(x, 2, 1)


def written(x):
    y = x.copy()
    y[1:3] = 0
    y[:, 2] += y[:, 1]
    z = y * 2
    z[0] = y[1]
    return y, z


def changed_in_parts(x):
    y = x.copy()
    y[::2] *= 2
    y[:, 1] += y[:, 2]
    y[0] -= 1.5
    z = y[1] * 3
    y[1] = z
    return y, z


def written_once(x):
    y = np.zeros_like(x)
    y[1:] = x[:-1]
    y[0, ::2] = 1
    return y


def kept_before(x):
    y = x * 2
    z = y.copy()
    z[1] = 5
    w = z.copy()
    w[2] = 7
    return y, z, w, np.zeros(1)


@needs_compiler
@pytest.mark.parametrize("function, copies", [(repeated, 0), (written, 1), (changed_in_parts, 1), (written_once, 1), (kept_before, 1)])
def test_values_and_whole_copies(function, copies):
    x = np.random.RandomState(0).rand(5, 7).astype("f")
    compiled = dy2static.to_static(function, backend="c")
    for _ in range(2):
        expected, found = function(x), compiled(x)
        expected, found = (r if isinstance(r, tuple) else (r,) for r in (expected, found))
        assert all(a.dtype == b.dtype and np.array_equal(a, b) for a, b in zip(expected, found))
        assert not any(np.shares_memory(a, b) for k, a in enumerate(found) for b in (x, *found[:k]))
    text = compiled.program(x).native_code
    assert "scratch + " not in text or copies                                   # results are made where they go
    assert text.count("< 35; ++k0)") == copies


def products(x, y, v):
    return np.inner(v, v * 2), np.tensordot(x, y), np.tensordot(x, y.T, ([0, 1], [1, 0])), np.einsum("ij->ji", x) + 0, x.T.mean(1)


@needs_compiler
def test_sums_of_all_products_and_transposed_arrays_are_loops_in_the_order_of_memory():
    x, y = np.random.RandomState(0).rand(2, 40, 50).astype("f")
    compiled = dy2static.to_static(products, backend="c")
    for a, b in zip(products(x, y, x[0]), compiled(x, y, x[0])):
        np.testing.assert_allclose(b, a, rtol=1e-5)
    text = compiled.program(x, y, x[0]).native_code
    assert "dy_gemm" not in text and "j0 * 50 + j1" in text

"""Loops with long functions one after the other run in stages: which ones, and that no bit changes."""
import warnings

import chainer
import chainer.functions as F
import numpy as np
import pytest
from chainer import Variable

import dy2static
from dy2static import ops
from dy2static.backends.c import distribution
from dy2static.backends.c.distribution import distribute
from dy2static.backends.loops.ir import Accumulate
from dy2static.ir.building import Builder, building
from dy2static.ir.types import Tensor
from dy2static.native import compiler, cpus
from tests.backends.test_loop_ir import graph, only, softmax

pytestmark = pytest.mark.any_python


def stages(function, *shapes, sweep=-1):
    """What each stage defines or adds up, the values with buffers, and the length of a strip."""
    nest = only(graph(function, *shapes))
    bodies, buffers, strip = distribute(nest.sweeps[sweep], nest.inner[-1].size, "at")

    def name(statement):
        return statement.value.name if hasattr(statement, "value") else statement.reduction.op
    return [[name(s) for s in body] for body in bodies], [value.name for value in buffers], strip


def test_each_stage_has_no_chain_of_long_functions():
    found = stages(lambda x, y: ops.sigmoid(ops.tanh(x * y) - y) * ops.exp(x), (1024,), (1024,))
    assert found == ([["mul", "tanh"], ["tanh", "sub", "sigmoid", "exp", "mul_1"]], ["tanh"], 512)


def test_what_two_stages_read_has_one_buffer():
    def function(x):
        y = ops.square(x)
        return ops.exp(ops.exp(ops.exp(y))) * ops.sqrt(y)
    found = stages(function, (200,))
    bodies, buffers, strip = found
    assert [body[-1] for body in bodies[:2]] == ["exp", "exp_1"] and len(bodies) == 3
    assert buffers == ["square", "exp", "exp_1"] and strip == 200


@pytest.mark.parametrize("size, kept", [(96, ["where", "exp"]), (8192, ["exp"])])       # long rows have no room for both
def test_what_reads_a_mask_does_not_reduce(size, kept):
    builder = Builder()
    with building(builder):
        x, mask = (builder.input(Tensor((4, size), np.dtype(dtype)), name) for name, dtype in (("x", "float32"), ("mask", "bool")))
        softmax_of = softmax(ops.where(mask, x * 0.5, np.float32(-1e9)))
    nest = only(builder.build((softmax_of,)))
    assert [value.name for value in nest.kept] == kept
    first = distribute(nest.sweeps[0], size, "at").bodies
    assert [len(body) for body in first] == [2, 2] and isinstance(first[-1][-1], Accumulate)
    assert len(distribute(nest.sweeps[1], size, "at").bodies) == (1 if "where" in kept else 2)


REDUCTIONS = {
    "softmax": F.softmax, "sum": lambda x: F.sum(x, axis=1), "max": lambda x: F.max(x, axis=1), "min": lambda x: F.min(x, axis=1),
    "prod": lambda x: F.prod(x, axis=1), "all": lambda x: F.sum(x * x), "two": lambda x: F.max(x, axis=1) + F.sum(x, axis=1),
}


@pytest.mark.skipif(not compiler.available(), reason="there is no C compiler on this machine")
@pytest.mark.parametrize("name", REDUCTIONS)
def test_each_lane_of_whole_vectors_has_an_accumulator(name):
    """Also where a row has numbers that are not finite, in any lane."""
    rng, function = np.random.default_rng(3), REDUCTIONS[name]
    for dtype, size in (("float32", 48), ("float64", 32), ("float32", 4112), ("float32", 45)):
        x = rng.uniform(0.5, 1.5, (6, size)).astype(dtype)
        x[1, 7], x[2, size - 2], x[3, 30], x[4, :] = np.nan, np.inf, -np.inf, -x[4]
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected, fast = function(Variable(x)).array, dy2static.to_static(function, backend="c")
            actual = fast(Variable(x)).array
            code = fast.program(Variable(x)).native_code
            assert ("dy_joined_" in code) == (size != 45 or cpus.has_masked_loads()) and ("dy_last_" in code) <= (size == 45)
        np.testing.assert_allclose(actual, expected, rtol=2e-5 if dtype == "float32" else 1e-12)


@pytest.mark.parametrize("function, size", [
    (lambda x: ops.tanh(x) * ops.exp(x), 1024),             # side by side
    (lambda x: ops.sqrt(ops.sqrt(x)), 1024),                # short ones
    (lambda x: ops.tanh(ops.exp(x)), 40)])                  # too few elements
def test_other_loops_stay_whole(function, size):
    bodies, buffers, strip = stages(function, (size,))
    assert len(bodies) == 1 and not buffers and strip == 0


def test_many_buffers_keep_their_loop_whole(monkeypatch):
    monkeypatch.setattr(distribution, "_BYTES", 100)
    bodies, _, _ = stages(lambda x: ops.tanh(ops.exp(x)), (1024,))
    assert len(bodies) == 1


def native(function):
    """A function of arrays that native code computes."""
    compiled = dy2static.to_static(function, backend="c")
    return lambda *arrays: compiled(*map(Variable, arrays)).array


def lstm(tanh, sigmoid, exp, x, y):
    c = sigmoid(x) * y + sigmoid(y) * tanh(x * y)
    return sigmoid(x - y) * tanh(c) - c


def chain(tanh, sigmoid, exp, x, y):
    return exp(tanh(exp(x) - y)) * x + sigmoid(y * tanh(x))


@pytest.mark.parametrize("function", [lstm, chain])
@pytest.mark.parametrize("shape", [(9, 83), (150_001,)])            # rows in Python's order, shares of threads with a rest
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_no_element_changes(function, shape, dtype):
    random = np.random.RandomState(0)
    x, y = (random.standard_normal(shape).astype(dtype) for _ in range(2))
    x.flat[7], y.flat[-1] = np.nan, np.inf
    at_once = native(lambda x, y: function(F.tanh, F.sigmoid, F.exp, x, y))(x, y)
    np.testing.assert_array_equal(at_once, function(native(F.tanh), native(F.sigmoid), native(F.exp), x, y))


def test_rows_sums_and_gradients():
    def function(x, y):
        h = F.exp(F.tanh(x * y))
        return F.sum(F.softmax(F.sigmoid(h) + y) * F.sin(h), axis=0)

    random = np.random.RandomState(0)
    arrays = [random.standard_normal((33, 83)).astype(np.float32) for _ in range(2)]
    found = []
    for f in (dy2static.to_static(function, backend="c"), function):
        values = [Variable(array) for array in arrays]
        result = f(*values)
        F.sum(result * result).backward()
        found.append([result.array, *(v.grad for v in values)])
    for a, b in zip(*found):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_what_a_later_sweep_reads_is_in_the_row_buffer():
    def function(x):
        y = F.exp(x)
        z = F.sin(y * F.max(F.tanh(y), axis=1, keepdims=True))
        return z * F.sum(F.cos(F.exp(y * 0.1)), axis=1, keepdims=True) + F.tanh(F.cos(y))

    bodies, buffers, _ = stages(lambda x: (y := ops.exp(x)) * ops.max(ops.tanh(y), axis=(1,), keepdims=True), (3, 1100), sweep=0)
    assert bodies == [["exp"], ["exp", "tanh", "max"]] and not buffers
    x = np.random.RandomState(0).standard_normal((5, 1100)).astype(np.float32)
    with chainer.no_backprop_mode():
        np.testing.assert_allclose(native(function)(x), function(Variable(x)).array, rtol=1e-4, atol=1e-4)


def test_what_is_written_in_place_is_read_before():
    """The result may take the memory of an argument that is no longer used; stages read all of a strip before one writes."""
    def function(x):
        h = x * 2.0
        for _ in range(3):
            h = F.tanh(F.exp(h) - h) + h
        return h

    x = np.linspace(-1, 1, 5000, dtype=np.float32)
    np.testing.assert_allclose(native(function)(x), function(Variable(x)).array, rtol=1e-5)

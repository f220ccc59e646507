"""Native code for arrays whose sizes only the run knows: one function for all of them."""
import chainer
import chainer.functions as F
import numpy as np
import pytest

from dy2static import InputSpec, ops, to_static
from dy2static.backends.c.backend import C
from dy2static.backends.c.executor import Region
from dy2static.backends.c.partition import partition
from dy2static.backends.host.backend import NUMPY
from dy2static.ir.building import Builder, building
from dy2static.ir.dims import Dim
from dy2static.ir.shapes import evaluate_shape
from dy2static.ir.types import Tensor
from dy2static.native import compiler

pytestmark = pytest.mark.skipif(not compiler.available(), reason="there is no C compiler on this machine")

n, m = Dim("n"), Dim("m")


def rows(x, y, z, k):
    h = ops.tanh(x * y + 1.0)
    return h, ops.softmax(h, axis=1), ops.log_softmax(ops.transpose(h, axes=(1, 0)), axis=1), ops.logsumexp(h, axis=(0,))


def reductions(x, y, z, k):
    return (ops.sum(x, axis=(0,)), ops.sum(x, axis=None), ops.mean(x, axis=(0,)), ops.mean(x, axis=None), ops.max(x, axis=(1,)),
            ops.min(x, axis=(0,)), ops.all(x > -1.0, axis=(0,)), ops.sum_to(z, shape=(4,)), ops.argmax(x, axis=0))


def products(x, y, z, k):
    square = ops.matmul(x, x, transb=True)
    return ops.matmul(square, x), ops.matmul(x, z, transb=True), ops.matmul(x, x, transa=True), ops.einsum(
        x, z, inputs=("ab", "cb"), output="ca")


def joins(x, y, z, k):
    both = ops.concat(x, z, x * 2.0, axis=0)
    return both, ops.stack(x, x + 1.0, axis=1), ops.exp(both), ops.concat(x, x, axis=1)


def parts(x, y, z, k):
    turned = ops.reshape(ops.transpose(ops.stack(x, -x, axis=0), axes=(1, 0, 2)), shape=(n, 8))
    a, b = ops.split(turned, sizes=(3, 5), axis=1)
    return a * 1.0, ops.exp(b), ops.getitem(x, index=(slice(None), slice(None, None, -1))) + 1.0, \
        ops.reshape(x, shape=(4, n)) * 3.0


def picks(x, y, z, k):
    return (ops.take(z, k, axis=0) + x, ops.scatter_add(x, k, shape=(5, 4), axis=0), ops.take_along(x, ops.reshape(k, shape=(n, 1)), axis=1),
            ops.where(x > 0.0, x, ops.broadcast_to(y, shape=(n, 4))), ops.full(shape=(n, m), value=2, dtype=np.dtype("f")))


CASES = (rows, reductions, products, joins, parts, picks)


def graph_of(function):
    builder = Builder(function.__name__)
    inputs = [builder.input(Tensor(shape, np.dtype(dtype)), name) for name, shape, dtype in
              (("x", (n, 4), "f"), ("y", (4,), "f"), ("z", (m, 4), "f"), ("k", (n,), "i"))]
    with building(builder):
        return builder.build(tuple(function(*inputs)))


def operands(a, b):
    random = np.random.RandomState(a)
    return (random.randn(a, 4).astype("f"), random.randn(4).astype("f"), random.randn(b, 4).astype("f"),
            random.randint(0, 4 if b > 4 else b, a).astype("i"))


@pytest.mark.parametrize("function", CASES, ids=lambda f: f.__name__)
def test_graphs(function, monkeypatch):
    graph = graph_of(function)
    declined = []
    decline = Region.decline
    monkeypatch.setattr(Region, "decline", lambda self, *args: declined.append(self) or decline(self, *args))
    assert any(node.op.name == "native" for node in partition(graph).nodes)
    native, numpy = (backend.compile(graph, name="f", escaping=set(graph.outputs)) for backend in (C, NUMPY))
    assert "np." not in native.source.replace("np.empty", "") and native.native_nodes >= len(graph.outputs)
    run, expect = native.call, numpy.call
    for a, b in ((1, 5), (3, 4), (4, 4), (7, 1), (600, 5)):
        values = operands(a, b)
        found, wanted = run(native.make_arena and native.make_arena(), *values), expect(numpy.make_arena and numpy.make_arena(), *values)
        for value, one, other in zip(graph.outputs, found, wanted):
            assert one.dtype == other.dtype and np.shape(one) == evaluate_shape(value.shape, {"n": a, "m": b})
            np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-5)
    assert not declined


def test_no_elements():
    """They are NumPy's, with what it says of them."""
    native = C.compile(graph_of(reductions), name="f", escaping=())
    with pytest.raises(ValueError, match="zero-size array"):
        native.call(native.make_arena and native.make_arena(), *operands(0, 3))


def chosen(x, y):
    rows = x[y.array[:, 0] > 0]
    h = F.tanh(F.matmul(rows, y, transb=True))
    return F.sum(F.softmax(h) * h) + F.sum(F.mean(rows, axis=0))


def test_programs():
    """Values and gradients, for another size in every call."""
    compiled = to_static(chosen, strict=True, backend="c")
    for seed in range(5):
        random = np.random.RandomState(seed)
        x, y = (random.randn(6, 3).astype("f") for _ in range(2))
        results = []
        for function in (chosen, compiled):
            v, w = chainer.Variable(x), chainer.Variable(y)
            loss = function(v, w)
            results.append([loss.array, *(g.array for g in chainer.grad([loss], [v, w]))])
        for found, wanted in zip(results[1], results[0]):
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
    assert compiled.stats()["captures"] == 1 and compiled.stats()["native"] > 10


def decoded(x, w, bound):
    """A list that grows in a loop, as one array."""
    h, out = x, [x * 3]
    while float(F.sum(h * h).array) > bound:
        h = F.tanh(F.matmul(h, w)) * 0.5
        out.append(h * 2)
    return F.sum(F.stack(out, axis=1) ** 2), F.concat(out, axis=0)


def work(x, w, bound):
    """Items that are taken off again, by a number of the graph, and one by one."""
    out, steps = [x * 1.5, x * 0.5], 0
    while len(out) > 0 and steps < 12:
        h = out.pop()
        steps += 1
        if float(F.sum(h * h).array) > bound:
            out.append(h * 0.5)
            out.append(h * -0.25)
            x = x + h
    return x * steps


def read(x, w, bound):
    h, out = x, []
    for i in range(int(abs(x.array).sum())):
        h = F.sin(h) * w[0]
        out.append(h)
    total = F.sum(x)
    for item in out:
        total = total + F.sum(item * item)
    return total, total * len(out)


def numbers(x, w, bound):
    found, h = [], x
    while float(F.sum(h * h).array) > bound:
        h = h * 0.7
        found.append(float(F.max(h).array))
    return x * sum_of(found)


def sum_of(found):
    total = 0.0
    for number in found:
        total = total + number
    return total


@pytest.mark.parametrize("function", [decoded, work, read, numbers], ids=lambda f: f.__name__)
def test_lists(function):
    """Values and gradients of two orders; loops that make lists are native as a whole, unless lists are saved in each trip."""
    compiled = to_static(function, strict=True, backend="c")
    for seed in range(4):
        random = np.random.RandomState(seed)
        x, w = random.randn(2, 3).astype("f"), (random.randn(3, 3) * 0.5).astype("f")
        results = []
        for run in (function, compiled):
            v, u = chainer.Variable(x), chainer.Variable(w)
            found = run(v, u, 0.05)
            found = found if isinstance(found, tuple) else (found,)
            first = chainer.grad([sum(F.sum(y * y) for y in found)], [v, u], enable_double_backprop=True)
            first = [g for g in first if g is not None]
            second = chainer.grad([sum(F.sum(g * g) for g in first)], [v])
            results.append([y.array for y in (*found, *first, *second)])
        assert len(results[0]) == len(results[1])
        for found, wanted in zip(results[1], results[0]):
            np.testing.assert_allclose(found, wanted, rtol=2e-3, atol=1e-4)
    stats = compiled.stats()
    assert stats["captures"] == 1 and stats["fallbacks"] == 0 and stats["native"] > 10
    source = compiled.program(chainer.Variable(x), chainer.Variable(w), 0.05).source
    assert function is work or "append" not in source and "while" not in source      # its backward wants lists of lists


def test_gradients_of_rows_that_a_loop_reads():
    """The gradient of an array whose rows a loop reads is made behind the loop: no iteration touches the other rows."""
    def decayed(x, w):
        h = x[0] * 0
        for row in x:
            h = F.tanh(F.matmul(h, w) + row)
        return F.sum(h * h) + F.sum(x[1])

    random = np.random.RandomState(0)
    for backend in ("numpy", "c"):
        compiled = to_static(decayed, strict=True, backend=backend, input_spec=[InputSpec([None, 2, 3]), InputSpec([3, 3])])
        for length in (4, 7, 2):
            values = [random.randn(length, 2, 3).astype("f"), random.randn(3, 3).astype("f")]
            found = []
            for function in (decayed, compiled):
                x, w = map(chainer.Variable, values)
                function(x, w).backward()
                found.append((x.grad, w.grad))
            for eager, own in zip(*found):
                np.testing.assert_allclose(eager, own, rtol=1e-5, atol=1e-6)
        assert compiled.stats()["captures"] == 1


def test_calls_of_numpy_on_any_number_of_rows_are_native():
    def f(x):
        centred = x - x.mean(axis=0)
        return (np.maximum(centred, 0) @ np.eye(4, dtype="f") / x.std(axis=0)).T * 3 + 1

    compiled = to_static(f, backend="c", input_spec=[InputSpec([None, 4])])
    for count in (2, 5, 9):
        x = np.random.RandomState(count).rand(count, 4).astype("f")
        np.testing.assert_allclose(compiled(x), f(x), rtol=1e-5, atol=1e-6)
    counts = compiled.program(x).counts
    assert compiled.cache_info().captures == 1 and counts["native"] == counts["nodes"] == 11

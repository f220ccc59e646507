"""Operations on transposed arrays are done in the order of memory, with the numbers of eager mode."""
import chainer
import chainer.functions as F
import numpy as np
import pytest
from random_graphs import arrays, build

from dy2static import ops, to_static
from dy2static.ir.interpret import interpret
from dy2static.ir.verify import verify
from dy2static.native import compiler
from dy2static.passes.order_of_memory import operate_in_order_of_memory

needs_compiler = pytest.mark.skipif(not compiler.available(), reason="there is no C compiler on this machine")


def turned(x):
    return ops.transpose(x, axes=(1, 0))


def first_read(graph):
    """The ops of a graph, each with whether it reads elements in the order of the graph's inputs."""
    transposed = {node.outputs[0] for node in graph.nodes if node.op.name == "transpose"}
    return [(node.op.name, transposed.isdisjoint(node.inputs)) for node in graph.nodes if node.op.name != "transpose"]


@pytest.mark.parametrize("function, expected", [
    (lambda x, y: ops.sum(turned(x), axis=1), [("sum", True)]),
    (lambda x, y: ops.argmax(ops.tanh(turned(x)), axis=0), [("tanh", True), ("argmax", True)]),
    (lambda x, y: ops.max(turned(x) * turned(y), axis=(0, 1)), [("mul", True), ("max", True)]),
    (lambda x, y: ops.sum(ops.softmax(turned(x), axis=1), axis=0), [("softmax", True), ("sum", True)]),
    (lambda x, y: turned(ops.exp(turned(x))) + y, [("exp", True), ("add", True)])])
def test_operands_are_read_as_they_lie(function, expected):
    graph = build(function, (3, 4), (3, 4))
    after = operate_in_order_of_memory(graph)
    verify(after)
    assert [name for name, _ in first_read(after)] == [name for name, _ in expected]
    if expected[-1][0] != "add":
        assert first_read(after) == expected
    inputs = arrays(graph)
    for a, b in zip(interpret(graph, *inputs), interpret(after, *inputs)):
        np.testing.assert_allclose(a, b, rtol=1e-12)


@pytest.mark.parametrize("function", [
    lambda x, y: ops.sum(turned(x) * y, axis=1),                                           # one of them lies the other way round
    lambda x, y: ops.reshape(ops.exp(turned(x)), shape=(12,)),
    lambda x, y: ops.matmul(ops.exp(turned(x)), x),
    lambda x, y: ops.exp(turned(x)),                                                        # small, and leaves the graph
    lambda x, y: ops.sum(ops.exp(x), axis=1)])
def test_others_stay(function):
    graph = build(function, (3, 4), (4, 3))
    assert operate_in_order_of_memory(graph) is graph


def test_what_is_read_afterwards_lies_in_its_own_order():
    graph = build(lambda x: (lambda t: (ops.sum(t, axis=0), t))(ops.exp(turned(x))), (70, 80))
    assert operate_in_order_of_memory(graph, graph.outputs) is graph
    after = operate_in_order_of_memory(graph)
    assert after is not graph and after.outputs == graph.outputs


def random_steps(random, x, y):
    """Values of random transpositions, operations and reductions of two."""
    values = [x, y]
    for _ in range(random.randint(3, 14)):
        a = values[random.randint(len(values))]
        kind = random.randint(6)
        if kind == 0:
            values.append(ops.transpose(a, axes=tuple(random.permutation(a.ndim).tolist())))
        elif kind == 1:
            values.append(ops.tanh(a))
        elif kind == 2:
            same = [b for b in values if b.shape == a.shape]
            values.append(a + same[random.randint(len(same))])
        elif a.ndim > 1 and kind == 3:
            values.append(ops.softmax(a, axis=int(random.randint(a.ndim))))
        elif a.ndim > 1 and kind == 4:
            axes = tuple(random.permutation(a.ndim)[:random.randint(1, 3)].tolist())
            values.append([ops.sum, ops.max][random.randint(2)](a, axis=axes, keepdims=bool(random.randint(2))))
        elif a.ndim > 1:
            values.append(a - ops.broadcast_to(ops.mean(a, axis=int(random.randint(a.ndim)), keepdims=True), shape=a.shape))
    return tuple(values[-int(random.randint(1, 4)):])


@pytest.mark.parametrize("shape", [(2, 3, 4), (16, 17, 18)])
def test_random_graphs(shape):
    changed = 0
    for seed in range(60):
        random = np.random.RandomState(seed)
        graph = build(lambda x, y, random=random: random_steps(random, x, y), shape, shape)
        after = operate_in_order_of_memory(graph)
        verify(after)
        changed += after is not graph
        inputs = arrays(graph)
        for a, b in zip(interpret(graph, *inputs), interpret(after, *inputs)):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
    assert changed > 15


@needs_compiler
@pytest.mark.parametrize("function", [
    lambda x: x.T.sum(1), lambda x: x.T + 1, lambda x: (np.tanh(x.T) * 2).argmax(0), lambda x: (x.T * 2).reshape(-1),
    lambda x: (x.T - x.T.mean(1, keepdims=True)).max(0), lambda x: (lambda t: (t.sum(0), t.max(1), t))(np.tanh(x.T))])
def test_native_code(function):
    compiled, x = to_static(function, backend="c"), np.random.RandomState(0).rand(70, 80).astype("f")
    compiled(x)
    found, expected = compiled(x), function(x)
    for a, b in zip(*[r if isinstance(r, tuple) else (r,) for r in (found, expected)]):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@needs_compiler
@pytest.mark.parametrize("function", [
    lambda x: F.transpose(x) * 2, lambda x: F.max(F.transpose(x), axis=1), lambda x: F.transpose(F.softmax(F.transpose(x)))])
def test_gradients(function):
    def gradient(run):
        x = chainer.Variable(np.random.RandomState(0).rand(70, 80).astype("f"))
        F.sum(run(x) ** 2).backward()
        return x.grad

    compiled = to_static(function, backend="c")
    gradient(compiled)
    np.testing.assert_allclose(gradient(compiled), gradient(function), rtol=1e-5, atol=1e-6)

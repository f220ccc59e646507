"""Channels that are shuffled are copied once, with the numbers of eager mode."""
import chainer
import chainer.functions as F
import numpy as np
import pytest
from random_graphs import arrays, build

from dy2static import ops, to_static
from dy2static.ir.interpret import interpret
from dy2static.native import compiler
from dy2static.passes.interleaved_joins import interleave_joins

pytestmark = pytest.mark.any_python


def shuffled(*parts, split=(2, 2, 3, 4), axes=(0, 2, 1, 3), axis=1):
    joined = ops.concat(*parts, axis=axis)
    return ops.tanh(ops.reshape(ops.transpose(ops.reshape(joined, shape=split), axes=axes), shape=(48,)))


@pytest.mark.parametrize("shape, how", [
    ((2, 3, 4), {}), ((2, 3, 4), {"axis": 0, "split": (2, 2, 3, 4)}), ((2, 3, 4), {"axes": (1, 0, 2, 3)}),
    ((2, 6, 2), {"split": (2, 2, 6, 2)}), ((6, 4), {"axis": 0, "split": (2, 6, 4), "axes": (1, 0, 2)})])
def test_parts_are_joined_where_they_belong(shape, how):
    graph = build(lambda a, b: shuffled(a, b, **how), shape, shape)
    after = interleave_joins(graph)
    names = [node.op.name for node in after.nodes]
    assert names[-3:] == ["concat", "reshape", "tanh"] and names.count("transpose") == 2 and after.outputs == graph.outputs
    inputs = arrays(graph)
    for a, b in zip(interpret(graph, *inputs), interpret(after, *inputs)):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("function, shapes", [
    (lambda a, b: shuffled(a, b), ((2, 2, 4), (2, 4, 4))),                                  # parts of several sizes
    (lambda a, b: shuffled(a, b, split=(2, 3, 2, 4)), ((2, 3, 4), (2, 3, 4))),              # told apart otherwise
    (lambda a, b: shuffled(a, b, axes=(0, 3, 1, 2)), ((2, 3, 4), (2, 3, 4))),               # neighbors are not neighbors afterwards
    (lambda a, b: ops.transpose(ops.reshape(ops.concat(a, b, axis=1), shape=(2, 2, 3, 4)), axes=(0, 2, 1, 3)), ((2, 3, 4), (2, 3, 4)))])
def test_others_stay(function, shapes):
    graph = build(function, *shapes)
    assert interleave_joins(graph) is graph


def test_what_is_read_afterwards_stays():
    graph = build(lambda a, b: shuffled(a, b), (2, 3, 4), (2, 3, 4))
    for node in graph.nodes[:-2]:
        assert interleave_joins(graph, node.outputs) is graph


@pytest.mark.skipif(not compiler.available(), reason="there is no C compiler on this machine")
def test_shuffled_channels():
    def function(x):
        n, channels, *image = x.shape
        a, b = F.split_axis(x, 2, axis=1)
        h = F.reshape(F.concat([a, F.tanh(b)], axis=1), (n, 2, channels // 2, *image))
        return F.reshape(F.transpose(h, (0, 2, 1, 3, 4)), x.shape) * 2

    compiled, rng = to_static(function, backend="c"), np.random.default_rng(8)
    for size in (3, 5, 4, 6):
        values, found = rng.standard_normal((2, 6, size, 5)).astype("f"), []
        for each in (function, compiled):
            x = chainer.Variable(values.copy())
            y = each(x)
            F.sum(y * y).backward()
            found.append((y.array, x.grad))
        for expected, actual in zip(*found):
            np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)

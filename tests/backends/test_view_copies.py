"""Reshapes that copy are native code: where the result is a view it stays one, and nothing is copied twice."""
import chainer
import chainer.functions as F
import numpy as np
import pytest

import dy2static
from dy2static import ops
from dy2static.backends.c.partition import partition
from dy2static.backends.c.view_copies import copying
from dy2static.backends.compiled_calls import NATIVE, NATIVE_VIEW
from dy2static.native import compiler
from tests.backends.test_loop_ir import graph

needs_compiler = pytest.mark.skipif(not compiler.available(), reason="there is no C compiler on this machine")


def turned(x):
    return ops.reshape(ops.transpose(x, axes=(1, 0)), shape=(-1,))


@pytest.mark.parametrize("function, shape, is_found", [
    (turned, (80, 60), True),
    (turned, (8, 6), False),                                                                    # too few elements
    (turned, (1, 4800), False), (turned, (0, 4800), False),                                     # a view shows it
    (lambda x: ops.reshape(x, shape=(60, 80)), (80, 60), False),
    (lambda x: ops.reshape(ops.broadcast_to(x, shape=(3, 80, 60)), shape=(240, 60)), (80, 60), True),
    (lambda x: ops.reshape(ops.transpose(ops.transpose(x, axes=(1, 0)), axes=(1, 0)), shape=(-1,)), (80, 60), False),
    (lambda x: ops.reshape(ops.getitem(x, index=((0, 80, 1), (59, None, -1))), shape=(-1,)), (80, 60), True)])
def test_reshapes_that_copy(function, shape, is_found):
    made = graph(function, shape)
    producer = {v: node for node in made.nodes for v in node.outputs}
    found = copying(made.nodes[-1], producer, set(made.nodes))
    assert (found is not None) == is_found and (found is None or found.source is made.inputs[0])


def test_only_the_last_of_two_copies_is_taken():
    made = graph(lambda x: turned(ops.reshape(turned(x), shape=(60, 80))), (80, 60))
    producer = {v: node for node in made.nodes for v in node.outputs}
    found = copying(made.nodes[-1], producer, set(made.nodes))
    assert found.source is made.nodes[1].outputs[0]


def test_memory_of_native_code_needs_no_question():
    made = partition(graph(lambda x: turned(ops.tanh(x)), (80, 60)))
    assert [node.op for node in made.nodes] == [NATIVE]


def test_other_memory_is_asked_for_in_each_call_and_views_that_nothing_reads_are_gone():
    made = partition(graph(turned, (80, 60)))
    assert [node.op for node in made.nodes] == [NATIVE_VIEW]
    made = partition(graph(lambda x: (turned(x), ops.transpose(x, axes=(1, 0))), (80, 60)))
    assert sorted(node.op.name for node in made.nodes) == ["native_view", "transpose"]


def flat(x):
    return F.reshape(F.transpose(x), (-1,))


@needs_compiler
@pytest.mark.parametrize("order", ["C", "F"])
def test_results_share_memory_where_those_of_eager_mode_do(order):
    x = np.asarray(np.random.RandomState(0).standard_normal((80, 60)), np.float32, order=order)
    compiled = dy2static.to_static(flat, backend="c")
    for _ in range(2):
        result = compiled(x).array
        assert np.array_equal(result, flat(x).array) and np.shares_memory(result, x) == (order == "F")


@needs_compiler
@pytest.mark.parametrize("function, shape", [
    (lambda x: F.space2depth(x, 2), (2, 8, 20, 20)), (lambda x: F.depth2space(x, 2), (2, 8, 20, 20)),
    (lambda x: F.repeat(x, 3, 1), (40, 60)), (lambda x: flat(F.tanh(x)) * 2, (70, 80)), (lambda x: flat(F.tanh(x)), (70, 80))])
def test_values_and_gradients(function, shape):
    x = np.random.RandomState(0).standard_normal(shape).astype(np.float32)
    compiled = dy2static.to_static(function, backend="c")
    found = []
    for each in (function, compiled, compiled):
        given = chainer.Variable(x)
        result = each(given)
        result.grad = np.asarray(np.random.RandomState(1).standard_normal(result.shape), np.float32, order="F")
        result.backward()
        found.append((result.array, given.grad))
    for result, gradient in found[1:]:
        np.testing.assert_allclose(result, found[0][0], rtol=1e-6)
        np.testing.assert_allclose(gradient, found[0][1], rtol=1e-5, atol=1e-6)


@needs_compiler
def test_a_view_of_a_copy_is_a_view():
    compiled = dy2static.to_static(lambda x: (lambda h: (h, h[:10]))(flat(F.tanh(x))), backend="c")
    whole, part = compiled(np.ones((70, 80), np.float32))
    assert np.shares_memory(whole.array, part.array)

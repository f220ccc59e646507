"""Gradients of graphs: against finite differences, to second order, through split, and where there are none."""
import functools
import operator

import numpy as np
import pytest
from hypothesis import given, settings
from random_graphs import SMOOTH, arrays, build, graphs

from dy2static import ops, passes
from dy2static.backends.host.emit import emit
from dy2static.errors import CaptureError, InternalError, Location
from dy2static.ir.building import Builder, building
from dy2static.ir.interpret import interpret
from dy2static.ir.op import OPS, declare
from dy2static.ir.types import Dynamic, Tensor
from dy2static.ir.verify import verify
from dy2static.passes.differentiation.partition_joint import partition_joint


def gradient(graph, targets=None, given=None):
    return passes.autodiff(graph, range(len(graph.inputs)) if targets is None else targets,
                           range(len(graph.outputs)) if given is None else given)


def ones_for(graph, gradients):
    return [np.ones(v.shape, v.dtype) for v in gradients.graph.inputs[len(graph.inputs):]]


def total(graph, inputs):
    return sum(np.sum(output) for output in interpret(graph, *inputs))


def assert_numerical(graph, gradients, eps=1e-6):
    """Compare the gradients of the sum of all outputs with central differences, in one direction per input."""
    inputs = arrays(graph)
    actual = iter(interpret(gradients.graph, *inputs, *ones_for(graph, gradients)))
    for index, connected in enumerate(gradients.connected):
        direction = np.random.RandomState(index).uniform(-1, 1, inputs[index].shape)
        sides = []
        for sign in (1, -1):
            moved = list(inputs)
            moved[index] = inputs[index] + sign * eps * direction
            sides.append(total(graph, moved))
        numerical = (sides[0] - sides[1]) / (2 * eps)
        analytical = np.sum(next(actual) * direction) if connected else 0
        np.testing.assert_allclose(analytical, numerical, rtol=1e-4, atol=1e-6)


@settings(max_examples=150)
@given(graphs(unary=tuple(SMOOTH)))
def test_random_graphs_to_second_order(graph):
    first = gradient(graph)
    verify(first.graph)
    assert_numerical(graph, first)
    if first.graph.outputs:
        second = gradient(first.graph)
        verify(second.graph)
        assert_numerical(first.graph, second)


@settings(max_examples=150)
@given(graphs())
def test_forward_and_backward_apart_equal_the_joint_graph(graph):
    """Saved values come from the forward function, the rest by reference; both functions are generated."""
    graph = passes.run(passes.CLEAN, graph)
    joint = gradient(graph).graph
    inputs = arrays(graph)
    gys = ones_for(graph, gradient(graph))
    expected = interpret(joint, *inputs, *gys)
    parts = partition_joint(joint, graph)
    verify(parts.backward)
    forward = emit(graph, name="forward", escaping=set(graph.outputs), saved=parts.saved)
    backward = emit(parts.backward, name="backward", escaping=set(joint.outputs))
    results = forward.bind()(forward.make_arena(), *inputs)
    outputs, saved = results[:len(graph.outputs)], results[len(graph.outputs):]
    arena = backward.make_arena()
    read = [inputs[i] for i in parts.inputs] + [outputs[i] for i in parts.outputs]
    actual = backward.bind()(arena, *saved, *read, *gys)
    for a, b in zip(actual, expected):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
        assert not any(np.shares_memory(a, array) for array in arena)


def halved(x):
    return x * 0.5


@pytest.mark.parametrize("function, shapes, connected", [
    (lambda x, y: ops.tanh(x), [(2,), (2,)], (True, False)),
    (lambda x, y: x + ops.stop_gradient(y), [(2,), (2,)], (True, False)),
    (lambda x, y: ops.sign(x) + y, [(2,), (2,)], (False, True)),
    (lambda x, y: x, [(2,), (2,)], (True, False)),
    (lambda x, y: (x * y, ops.constant(value=np.zeros(2))), [(2,), (2,)], (True, True)),
    (lambda x: ops.where(x > 0, x, 0), [(2,)], (True,)),
    (lambda x: ops.cast(ops.cast(x, dtype="int64"), dtype="float64"), [(2,)], (False,)),
], ids=["unused", "stopped", "not differentiable", "an input is the output", "constant output", "decision", "integers"])
def test_activity(function, shapes, connected):
    graph = build(function, *shapes)
    first = gradient(graph)
    assert first.connected == connected
    assert len(first.graph.outputs) == sum(connected)


def test_control_flow_is_refused_not_ignored():
    graph = build(lambda x: ops.pop(ops.push(ops.new_stack(elem=x.type), x))[1], (2,))
    with pytest.raises(CaptureError, match="push"):
        gradient(graph)


def test_targets_and_given_outputs_are_chosen():
    graph = build(lambda x, y: (x * y, ops.tanh(y)), (2,), (2,))
    only = gradient(graph, targets=(0,), given=(1,))
    assert only.connected == (False,) and len(only.graph.inputs) == 3
    both = gradient(graph, targets=(1, 0), given=(0,))
    x, y, g = (np.array(v) for v in ([1.0, 2.0], [3.0, 4.0], [1.0, 10.0]))
    gy, gx = interpret(both.graph, x, y, g)
    assert gy.tolist() == [1, 20] and gx.tolist() == [3, 40]


def test_an_output_given_twice_counts_twice():
    graph = build(lambda x: (lambda y: (y, y))(x * x), (1,))
    first = gradient(graph)
    (gx,) = interpret(first.graph, np.array([3.0]), np.array([1.0]), np.array([10.0]))
    assert gx.tolist() == [66]


def test_nodes_carry_the_line_they_differentiate():
    builder = Builder("forward")
    x = builder.input(Tensor((2,), "float32"), "x")
    with building(builder):
        builder.loc = Location("model.py", 1)
        h = ops.tanh(x)
        builder.loc = Location("model.py", 2)
        y = ops.exp(h)
    graph = builder.build((y,))
    lines = [node.loc.line for node in gradient(graph).graph.nodes[2:]]
    assert lines == sorted(lines, reverse=True) and set(lines) == {1, 2}


@pytest.fixture
def opaque():
    """An op with a tape, like a Chainer function we do not know: its gradients run in reverse order."""
    order = []
    pull = declare("test_pull", "g tape", {"label": ""}, kind="opaque", effect=True, infer=lambda g, tape, *, label: g,
                   numpy=lambda g, tape, label: (order.append(label), g * tape)[1])
    op = declare("test_opaque", "x", {"label": ""}, kind="opaque", infer=lambda x, *, label: (x, Dynamic()),
                 numpy=lambda x, label: (x * x, 2 * x),
                 vjp=lambda g, y, x, *, label: (pull(g[0], y[1], label=label),))
    yield op, order
    del OPS["test_pull"], OPS["test_opaque"]


def test_opaque_nodes(opaque):
    op, order = opaque
    graph = build(lambda x: op(op(x, label="first")[0], label="second")[0], (1,))
    parts = partition_joint(gradient(graph).graph, graph)
    assert [str(v.type) for v in parts.saved] == ["object", "object"]
    (gx,) = interpret(gradient(graph).graph, np.array([3.0]), np.array([1.0]))
    assert gx.tolist() == [4 * 27] and order == ["second", "first"]


def linear_relu(x, W, b):
    return ops.relu(ops.matmul(x, W, transb=True) + b)


@pytest.mark.parametrize("function, shapes, saved, inputs, outputs", [
    (linear_relu, [(8, 3), (4, 3), (4,)], [], (0, 1), (0,)),
    (lambda x: ops.log(ops.exp(x)), [(3,)], ["exp"], (), ()),
    (lambda x, W: ops.sum(ops.matmul(ops.reshape(x, shape=(2, 6)), W), axis=None), [(3, 4), (6, 2)], [], (0, 1), ()),
    (lambda x: ops.tanh(ops.transpose(ops.tanh(x))), [(3, 4)], ["tanh"], (), (0,)),
    (lambda x: x * 2.0 * 3.0, [(3,)], [], (), ()),
], ids=["by reference", "intermediate", "views of inputs are made again", "views of intermediates too", "constants"])
def test_what_is_saved(function, shapes, saved, inputs, outputs):
    graph = build(function, *shapes)
    parts = partition_joint(gradient(graph).graph, graph)
    producers = graph.producers()
    assert [producers[v].op.name for v in parts.saved] == saved
    assert (parts.inputs, parts.outputs) == (inputs, outputs)


@pytest.mark.parametrize("shape, axes, new, copied", [
    ((4, 3, 2), (0, 2, 1), (4, 6), True), ((4, 3, 2), (1, 0, 2), (12, 2), True), ((4, 3, 2), (0, 2, 1), (4, 2, 3, 1), False),
    ((4, 3, 2), (0, 1, 2), (4, 6), False), ((4, 3, 2), (2, 0, 1), (2, 12), False),
    ((4, 1, 3), (1, 0, 2), (12,), False), ((3, 4), (1, 0), (2, 2, 3), False), ((3, 4), (1, 0), (6, 2), True), ((0, 4), (1, 0), (0,), False)])
def test_reshapes_that_copy_are_saved(shape, axes, new, copied):
    """A backward reads what an array holds by then, but not through a reshape for which NumPy copies."""
    moved = np.ones(shape).transpose(axes)
    assert copied is not (np.shares_memory(moved, moved.reshape(new)) or 0 in shape)
    graph = passes.run(passes.CLEAN, build(lambda x, g: ops.reshape(ops.transpose(x, axes=axes), shape=new) * g, shape, new))
    parts = partition_joint(gradient(graph).graph, graph)
    assert (len(parts.saved), parts.inputs) == ((1, (1,)) if copied else (0, (0, 1)))
    graph = passes.run(passes.CLEAN, build(lambda x, g: ops.reshape(ops.transpose(ops.exp(x), axes=axes), shape=new) * g, shape, new))
    saved = partition_joint(gradient(graph).graph, graph).saved
    assert [v.shape for v in saved] == [shape]                      # nobody writes what the call has made


_WIDE = dict(shape=(5, 2, 4, 3))


@pytest.mark.parametrize("view, of_numpy, new", [
    *[(functools.partial(ops.getitem, index=index), operator.itemgetter(index), new) for index, new in (
        ((slice(None), slice(None, None, 2)), (12,)), ((slice(None, None, -1), slice(None, None, -1)), (24,)), (1, (6, 2)),
        ((slice(None, None, -1),) * 3, (24,)), ((None, slice(None), slice(1, 3)), (12,)))],
    (lambda x: ops.split(x, sizes=(1, 3), axis=1)[1], lambda x: x[:, 1:], (2, 9)),
    (lambda x: ops.split(x, sizes=(1, 3), axis=1)[1], lambda x: x[:, 1:], (9, 2)),
    (lambda x: ops.unstack(x, axis=1)[2], lambda x: x[:, 2], (6,)), (lambda x: ops.unstack(x, axis=0)[1], lambda x: x[1], (3, 4)),
    *[(lambda x: ops.broadcast_to(x, **_WIDE), lambda x: np.broadcast_to(x, **_WIDE), new) for new in ((10, 12), (5, 8, 3), (5, 24))]])
def test_reshapes_of_views_that_copy_are_saved(view, of_numpy, new):
    array = np.ones((2, 4, 3))
    is_copied = not np.shares_memory(array, of_numpy(array).reshape(new))
    graph = passes.run(passes.CLEAN, build(lambda x, g: ops.reshape(view(x), shape=new) * g, array.shape, new))
    assert len(partition_joint(gradient(graph).graph, graph).saved) == is_copied


def test_what_was_not_kept_is_computed_again(opaque):
    graph = build(lambda x: ops.log(ops.exp(x)), (3,))
    parts = partition_joint(gradient(graph).graph, graph, kept=())
    assert (parts.saved, parts.inputs) == ((), (0,)) and parts.backward.nodes[0] is graph.nodes[0]
    graph = build(lambda x: opaque[0](x)[0], (3,))
    with pytest.raises(InternalError, match="was not kept"):
        partition_joint(gradient(graph).graph, graph, kept=())


@settings(max_examples=100)
@given(graphs())
def test_double_backward_apart(graph):
    """What double backward from outside does: the first backward also gives what the second one needs."""
    graph = passes.run(passes.CLEAN, graph)
    joint = gradient(graph).graph
    second = gradient(joint).graph
    held = partition_joint(joint, graph).saved
    later = partition_joint(second, joint)
    first = partition_joint(joint.with_(outputs=joint.outputs + later.saved), graph, kept=held)
    assert set(first.saved) <= set(held)
    inputs = arrays(graph) + ones_for(graph, gradient(graph))
    gg = [np.ones(v.shape) for v in joint.outputs]
    values = dict(zip(joint.inputs, inputs))
    values.update(zip(second.inputs[len(inputs):], gg))
    for part, results in ((graph.with_(outputs=graph.outputs + held), graph.outputs + held),
                          (first.backward, joint.outputs + later.saved), (later.backward, second.outputs)):
        values.update(zip(results, interpret(part, *(values[v] for v in part.inputs))))
    for value, expected in zip(second.outputs, interpret(second, *inputs, *gg)):
        np.testing.assert_allclose(values[value], expected, rtol=1e-9, atol=1e-12)


def test_the_backward_of_a_linear_layer_is_chainers_products():
    graph = build(linear_relu, (8, 3), (4, 3), (4,), dtype="float32")
    parts = partition_joint(gradient(graph).graph, graph)
    source = emit(parts.backward, name="backward", escaping=set(parts.backward.outputs)).source
    assert source == """\
def backward(arena, x0, x1, relu, grelu):
    greater_1, mask = arena
    greater(relu, c0, out=greater_1)
    multiply(grelu, greater_1, out=mask)
    sum_to = add.reduce(mask, axis=0)
    matmul_1 = mask.dot(x1)
    matmul_2 = mask.T.dot(x0)
    return matmul_1, matmul_2, sum_to
"""

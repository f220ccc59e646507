"""Generated NumPy functions: equal to the interpreter, memory never shared wrongly, readable."""
import traceback

import numpy as np
import pytest
from hypothesis import given, settings
from random_graphs import arrays, build, graphs

from dy2static import ops, passes
from dy2static.backends.flatten import flatten
from dy2static.backends.host.buffers import last_uses
from dy2static.backends.host.emit import emit
from dy2static.errors import Location
from dy2static.ir.building import Builder, building
from dy2static.ir.dims import Dim
from dy2static.ir.interpret import interpret
from dy2static.ir.op import OPS, declare
from dy2static.ir.types import Tensor, type_of

F4 = np.dtype("float32")


def function_of(graph, **options):
    return emit(graph, name="forward", escaping=set(graph.outputs), **options)


def call(function, inputs):
    arena = function.make_arena()
    for array in arena:
        array.fill(np.nan if array.dtype.kind == "f" else 1)           # what is not written must not be read
    return function.bind()(arena, *inputs), arena


def assert_same(actual, expected):
    assert type(actual) is type(expected)
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)


@settings(max_examples=150)
@given(graphs(dtype="float32"))
def test_random_graphs(graph):
    inputs = arrays(graph)
    expected = interpret(graph, *inputs)
    for g in (graph, passes.run(passes.CLEAN, graph)):
        results, arena = call(function_of(g), inputs)
        for actual, wanted in zip(results, expected):
            assert_same(actual, np.asarray(wanted))
            assert not any(np.shares_memory(actual, array) for array in arena)


@settings(max_examples=100)
@given(graphs(dtype="float32"))
def test_saved_values_stay(graph):
    saved = tuple({v for node in graph.nodes for v in node.outputs if node.op.kind != "view"} - set(graph.outputs))[:3]
    saved = tuple(v for v in saved if v.dtype == F4)
    inputs = arrays(graph)
    results, _ = call(function_of(graph, saved=saved), inputs)
    expected = interpret(graph.with_(outputs=graph.outputs + saved), *inputs)
    for actual, wanted in zip(results, expected):
        np.testing.assert_allclose(actual, wanted, rtol=1e-5, atol=1e-6)


@settings(max_examples=150)
@given(graphs(dtype="float32"))
def test_lifetimes_never_overlap(graph):
    """Two values in one storage: the second is made when, or after, the first is read for the last time."""
    plan = function_of(graph).plan
    last = last_uses(flatten(graph))
    made = {v: i for i, node in enumerate(graph.nodes) for v in node.outputs}
    owners = [v for v in plan.places if plan.slots[plan.places[v]].view is None]
    for a in owners:
        for b in owners:
            if a is not b and plan.slots[plan.places[a]].storage == plan.slots[plan.places[b]].storage:
                assert last[a] <= made[b] or last[b] <= made[a]
    for slot in plan.slots:
        assert slot.nbytes <= plan.sizes[slot.storage]


def mlp(x, W, b):
    return ops.relu(ops.matmul(x, W, transb=True) + b)


def test_text():
    builder = Builder("forward")
    shapes = {"x": (8, 16), "W": (64, 16), "b": (64,), "V": (4, 64), "c": (4,)}
    x, W, b, V, c = (builder.input(Tensor(shape, F4), name) for name, shape in shapes.items())
    with building(builder):
        builder.loc = Location("/home/me/model.py", 12)
        h = mlp(x, W, b)
        builder.loc = Location("/home/me/model.py", 13)
        y = ops.matmul(h, V, transb=True) + c
    function = function_of(builder.build((y,)))
    assert function.source == """\
def forward(arena, x, W, b, V, c):
    matmul_1, matmul_2 = arena
    x.dot(W.T, out=matmul_1)             # model.py:12
    add(matmul_1, b, out=matmul_1)
    maximum(matmul_1, c0, out=matmul_1)
    matmul_1.dot(V.T, out=matmul_2)      # model.py:13
    add_1 = add(matmul_2, c)
    return (add_1,)
"""
    assert {number: loc.line for number, loc in function.origins.items()} == {3: 12, 4: 12, 5: 12, 6: 13, 7: 13}
    assert function.constants["c0"].dtype == F4
    assert function.slots == (((8, 64), F4), ((8, 4), F4))


@pytest.mark.parametrize("shape", [(), (1,), (0, 3)])
def test_sizes_zero_and_one(shape):
    graph = build(lambda x, y: (ops.tanh(x) * y + 1.0, ops.sum(x, axis=None)), shape, shape, dtype="float32")
    inputs = arrays(graph)
    for actual, expected in zip(call(function_of(graph), inputs)[0], interpret(graph, *inputs)):
        assert_same(actual, np.asarray(expected))


@pytest.mark.parametrize("op", [ops.max, ops.min])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_extrema_of_arrays_that_run_backwards(op, axis):
    """NumPy before 2.2 gets them wrong where it is given memory for them."""
    graph = build(lambda x: tuple(op(v, axis=axis) * 1.5 for v in (
        x, ops.getitem(x, index=slice(None, None, -1)), ops.transpose(ops.getitem(x * 2.0, index=(slice(None), slice(None, None, -1)))))),
        (2, 4))
    for seed in range(4):
        for x in (arrays(graph, seed)[0], arrays(graph, seed)[0][::-1], arrays(graph, seed)[0][:, ::-1]):
            for v, found in zip((x, x[::-1], (x * 2.0)[:, ::-1].T), call(function_of(graph), [x])[0]):
                np.testing.assert_array_equal(found, getattr(v, op.name)(axis=axis) * 1.5)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_numbers_do_not_change_dtypes(dtype):
    graph = build(lambda x: ops.sigmoid(x * 0.1 + 1e-3) - 2, (3,), dtype=dtype)
    inputs = arrays(graph)
    (actual,), _ = call(function_of(graph), inputs)
    assert_same(actual, interpret(graph, *inputs)[0])


def test_views_of_inputs_stay_views_and_views_of_results_own_their_memory():
    graph = build(lambda x: (ops.transpose(x), ops.reshape(ops.tanh(x), shape=(12,))), (3, 4))
    (x,) = inputs = arrays(graph)
    (turned, flat), arena = call(function_of(graph), inputs)
    assert turned.base is x
    assert flat.base is not None and not any(np.shares_memory(flat, array) for array in arena)


def test_constants_that_escape_are_copies():
    graph = build(lambda x: (ops.constant(value=np.arange(3.0)), x), (2,))
    function = function_of(graph)
    bound = function.bind()
    first = bound(function.make_arena(), np.ones(2))[0]
    first[:] = 7
    assert bound(function.make_arena(), np.ones(2))[0].tolist() == [0, 1, 2]


def test_outputs_that_are_inputs_or_appear_twice():
    graph = build(lambda x: (lambda y: (x, y, y))(ops.exp(x)), (2,))
    x, y, z = call(function_of(graph), [np.zeros(2)])[0]
    assert x.tolist() == [0, 0] and y is z and y.tolist() == [1, 1]


def test_broadcasts_are_left_to_numpy_where_the_shape_comes_out_right():
    both = build(lambda x, y: ops.broadcast_to(x, shape=(4, 3)) * ops.broadcast_to(y, shape=(4, 3)), (3,), (4, 1))
    none = build(lambda x: ops.tanh(ops.broadcast_to(x, shape=(4, 3))), (3,))
    assert "broadcast_to" not in function_of(both).source
    assert "broadcast_to" in function_of(none).source


def test_unknown_sizes_are_read_from_the_inputs():
    n = Dim("n")
    builder = Builder("forward")
    x, y = builder.input(Tensor((n, 3), F4), "x"), builder.input(Tensor((3,), F4), "y")
    with building(builder):
        out = ops.tanh(x * y) + ops.full(shape=(n, 3), value=1.0)
        total = ops.sum(out, axis=None)
    graph = builder.build((out, total))
    for size in (0, 1, 5):
        inputs = [np.ones((size, 3), F4), np.ones(3, F4)]
        for actual, expected in zip(call(function_of(graph), inputs)[0], interpret(graph, *inputs)):
            assert_same(actual, np.asarray(expected))


@pytest.fixture
def host_ops():
    seen = []
    names = ["test_look", "test_both"]
    look = declare(names[0], "x", kind="effect", effect=True, infer=lambda x: (), numpy=seen.append)
    both = declare(names[1], "x", {"alpha": 1.0}, kind="opaque", infer=lambda x, *, alpha: (x, x),
                   numpy=lambda x, alpha: (x, x * alpha))
    yield look, both, seen
    for name in names:
        del OPS[name]


def test_unknown_code_sees_arrays_of_its_own_in_order(host_ops):
    look, both, seen = host_ops
    builder = Builder("forward")
    x = builder.input(Tensor((2,), F4), "x")
    with building(builder):
        h = ops.tanh(x)
        builder.add(look, (h,))
        g, k = both(ops.exp(h), alpha=2.0)
        builder.add(look, (k,))
    results, arena = call(function_of(builder.build((g,))), [np.ones(2, F4)])
    assert len(seen) == 2
    for array in (*seen, *results):
        assert not any(np.shares_memory(array, other) for other in arena)
    np.testing.assert_allclose(seen[1], 2 * np.exp(np.tanh(1)), rtol=1e-6)


def test_tracebacks_and_debuggers_see_the_generated_lines():
    graph = build(lambda x, y: ops.matmul(x, y), (2, 3), (3, 2), names="xy")
    function = function_of(graph).bind()
    with pytest.raises(ValueError) as caught:
        function((), np.ones((2, 3)), np.ones((2, 2)))
    assert "matmul_1 = x.dot(y)" in "".join(traceback.format_tb(caught.tb))


def test_raise():
    def function(x):
        ops.raise_(x, exception=KeyError, message="no {}")
        return x

    with pytest.raises(KeyError, match="no 1.0"):
        call(function_of(build(function, ())), [np.array(1.0)])


def test_effects_run_also_where_nobody_reads_their_result():
    graph = build(lambda x: (ops.random_uniform(shape=(2,)), ops.tanh(x))[1:], (2,))
    third = np.random.RandomState(0).rand(3)[2]
    call(function_of(graph), [np.ones(2)])
    assert np.random.rand() == third


@pytest.mark.parametrize("dtype", ["bool", "int8", "int32"])
@pytest.mark.parametrize("name, attrs", [("sum_to", {"shape": (3,)}), ("cumsum", {"axis": 0}), ("cumprod", {"axis": 0}), ("power_const", {})])
def test_results_that_leave_have_the_dtype_of_the_graph(name, attrs, dtype):
    x = np.arange(6).reshape(2, 3).astype(dtype)
    builder = Builder(name)
    value = builder.input(type_of(x), "x")
    with building(builder):
        graph = builder.build(builder.add(OPS[name], (value,), attrs))
    (found,), _ = call(function_of(graph), [x])
    assert found.dtype == graph.outputs[0].dtype
    np.testing.assert_array_equal(found, interpret(graph, x)[0])

"""Graphs: building, verifying, printing, interpreting; control flow and containers in hand-built graphs."""
import numpy as np
import pytest

from dy2static import ops
from dy2static.errors import InternalError, Location, RunError, VerifyError
from dy2static.ir.building import Builder, building, constant, current
from dy2static.ir.dims import Dim
from dy2static.ir.graph import Graph, Node, Value
from dy2static.ir.interpret import interpret
from dy2static.ir.op import OPS
from dy2static.ir.printer import to_source
from dy2static.ir.size_bounds import maximum
from dy2static.ir.substitute import size_with, with_sizes
from dy2static.ir.types import Dynamic, List, Never, Scalar, Stack, Tensor, Token, Union, python_scalar, type_of
from dy2static.ir.verify import verify

F4 = np.dtype("float32")
VECTOR = Tensor((3,), F4)
INT, FLOAT, BOOL = map(python_scalar, ("py_int", "py_float", "py_bool"))


def build(types, body, name="graph"):
    """The graph of a function of values."""
    builder = Builder(name)
    inputs = [builder.input(type, hint) for type, hint in zip(types, "xyzuvw")]
    with building(builder):
        results = body(*inputs)
    return builder.build(results if isinstance(results, tuple) else (results,))


def add_node(op, inputs, regions, attrs=()):
    """Outputs of a node with regions, in the graph being built."""
    return current().add(op, tuple(inputs), dict(attrs), tuple(regions))


def run_both(graph, *arrays):
    """The results of the interpreter, after checking that the printed text gives the same."""
    results = interpret(verify(graph), *arrays)
    scope = {}
    exec(to_source(graph), scope)
    printed = scope[graph.name](*arrays)
    for a, b in zip(printed, results):
        np.testing.assert_equal(a, b)
    return results


# Operators on values --------------------------------------------------------------------------------------------

X, Y, ROW = np.array([[1., 2.], [3., 4.]], "f4"), np.array([[2., 2.], [0.5, 8.]], "f4"), np.array([10., 20.], "f4")

OPERATORS = {
    "x + y": lambda x, y: x + y, "x - y": lambda x, y: x - y, "x * y": lambda x, y: x * y, "x / y": lambda x, y: x / y,
    "x ** y": lambda x, y: x ** y,
    "x ** 2": lambda x, y: x ** 2, "2.0 ** x": lambda x, y: 2.0 ** x, "-x": lambda x, y: -x,
    "x @ y": lambda x, y: x @ y, "1 - x": lambda x, y: 1 - x,
    "1 / x": lambda x, y: 1 / x, "x / 2": lambda x, y: x / 2,
    "x > y": lambda x, y: x > y, "x >= y": lambda x, y: x >= y, "x < 2": lambda x, y: x < 2,
    "x <= y": lambda x, y: x <= y,
    "float64 number": lambda x, y: x * np.float64(0.3),
    "array": lambda x, y: x + ROW, "left array": lambda x, y: x * 3 + ROW,
}


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_do_what_numpy_does(name):
    operator = OPERATORS[name]
    (result,) = run_both(build([type_of(X), type_of(Y)], operator), X, Y)
    expected = np.asarray(operator(X, Y))
    np.testing.assert_allclose(result, expected, rtol=1e-6)
    assert result.dtype == (expected.dtype if expected.dtype == bool else F4)


BROADCASTS = [((2, 3), (3,)), ((2, 1), (1, 3)), ((), (4,)), ((5, 1, 2), (3, 1)), ((0, 3), (1, 3))]


@pytest.mark.parametrize("shapes", BROADCASTS, ids=str)
def test_operators_broadcast_in_the_open(shapes):
    a, b = (np.asarray(np.random.uniform(1, 2, shape), F4) for shape in shapes)
    graph = build([type_of(a), type_of(b)], lambda x, y: x * y)
    (result,) = run_both(graph, a, b)
    np.testing.assert_equal(result, a * b)
    assert all(v.shape == result.shape for v in graph.nodes[-1].inputs)


@pytest.mark.parametrize("operator", [
    lambda x, y: x + y, lambda x, y: x * 2 - y, lambda x, y: x > y, lambda x, y: -x ** 2])
@pytest.mark.parametrize("numbers", [(3, 4), (2.5, 3), (True, 2), (np.float32(2), np.float32(0.5))], ids=str)
def test_operators_on_numbers(operator, numbers):
    graph = build([type_of(n) for n in numbers], operator)
    (result,) = run_both(graph, *numbers)
    expected = operator(*numbers)
    assert result == expected and type_of(result) == graph.outputs[0].type == type_of(expected)


def test_a_number_with_an_array_becomes_an_array_of_its_dtype():
    graph = build([VECTOR, FLOAT], lambda x, s: s * x + s)
    (result,) = run_both(graph, np.arange(3, dtype=F4), 0.5)
    np.testing.assert_equal(result, np.array([0.5, 1, 1.5], F4))


@pytest.mark.parametrize("error, body", [
    (ValueError, lambda x, y: x + y), (TypeError, lambda x, y: ops.add(x, ops.cast(x, dtype="float64"))),
    (TypeError, lambda x, y: ops.tanh(x, x)), (TypeError, lambda x, y: ops.tanh(x, slope=1)),
    (ValueError, lambda x, y: ops.sum(x, axis=1)), (IndexError, lambda x, y: ops.getitem(x, index=3)),
    (IndexError, lambda x, y: ops.getitem(x, index=(0, 0))), (TypeError, lambda x, y: ops.getitem(x, index=True)),
    (ValueError, lambda x, y: ops.reshape(x, shape=(2, 2))), (TypeError, lambda x, y: ops.where(x, x, x)),
    (ValueError, lambda x, y: x @ y), (ValueError, lambda x, y: ops.concat(x, y, axis=1)),
    (TypeError, lambda x, y: ops.list_len(x)),
])
def test_wrong_operands_are_refused_when_the_node_is_made(error, body):
    with pytest.raises(error):
        build([VECTOR, Tensor((4,), F4)], body)


def test_ops_need_a_graph_to_be_built():
    value = Value(VECTOR, "x")
    with pytest.raises(InternalError, match="outside"):
        value + value


def test_unknown_sizes_are_checked_by_the_caller():
    with pytest.raises(ValueError, match="broadcast"):
        build([Tensor((Dim("n"),), F4), Tensor((Dim("m"),), F4)], lambda x, y: x + y)
    graph = build([Tensor((Dim("n"), 2), F4)], lambda x: ops.reshape(x, shape=(-1,)) * 2)
    assert graph.outputs[0].shape == (2 * Dim("n"),)
    (result,) = run_both(graph, np.ones((3, 2), F4))
    assert result.shape == (6,)
    with pytest.raises(RunError, match="is not a"):
        interpret(graph, np.ones((3, 1), F4))


# The verifier ---------------------------------------------------------------------------------------------------

x, y, z = Value(VECTOR, "x"), Value(VECTOR, "y"), Value(VECTOR, "z")
token, t1, t2 = Value(Token(), "token"), Value(Token(), "t1"), Value(Token(), "t2")
_IDENTITY = build([VECTOR], lambda x: x)
_TRUE = build([VECTOR], lambda x: ops.py_bool(ops.sum(x)))


def node(op, inputs, outputs, **attrs):
    return Node(op, tuple(inputs), tuple(outputs), attrs)


BROKEN = {
    "before its definition": Graph((x,), (y,), (node(ops.tanh, [z], [y]),)),
    "defined twice": Graph((x,), (y,), (node(ops.tanh, [x], [y]), node(ops.tanh, [x], [y]))),
    "not unique": Graph((x,), (y,), (node(ops.tanh, [x], [Value(VECTOR, "x")]), node(ops.tanh, [x], [y]))),
    "the rule gives": Graph((x,), (y,), (node(ops.getitem, [x], [y], index=((0, 2, 1),)),)),
    "is not defined": Graph((x,), (y,), ()),
    "takes 2 operands": Graph((x,), (y,), (node(ops.add, [x], [y]),)),
    "no attribute": Graph((x,), (y,), (node(ops.tanh, [x], [y], slope=1),)),
    "not canonical": Graph((x,), (y,), (node(ops.concat, [x], [y], axis=-1),)),
    "is a value of the graph": Graph((x, z), (y,), (node(ops.concat, [x], [y], axis=z),)),
    "has 0 regions": Graph((x,), (y,), (node(ops.while_, [x], [y]),)),
    "taken twice": Graph((token,), (t1,), (node(ops.identity, [token], [t1]), node(ops.identity, [token], [t2]))),
    "the test of a loop gives one": Graph((x,), (y,), (
        Node(ops.while_, (x,), (y,), {}, (Graph((x,), (x, x), ()), _IDENTITY)),)),
    "gets": Graph((x,), (y,), (
        Node(ops.while_, (x,), (y,), {}, (_TRUE, build([Tensor((2,), F4)], lambda x: x))),)),
    "z before": Graph((x,), (y,), (         # a region sees its own inputs only
        Node(ops.while_, (x,), (y,), {}, (_TRUE, Graph((x,), (Value(VECTOR, "w"),), (node(ops.tanh, [z], [y]),)))),)),
}


@pytest.mark.parametrize("message", BROKEN)
def test_the_verifier_refuses(message):
    with pytest.raises(VerifyError, match=message):
        verify(BROKEN[message])


def test_the_verifier_looks_again_at_a_node_that_changed():
    made = node(ops.getitem, [x], [Value(VECTOR, "part")], index=((0, 3, 1),))
    graph = Graph((x,), made.outputs, (made,))
    assert verify(verify(graph)) is graph
    made.attrs["index"] = ((0, 2, 1),)
    with pytest.raises(VerifyError, match="the rule gives"):
        verify(graph)


def test_the_verifier_names_the_line():
    place = Location("model.py", 12)
    with pytest.raises(VerifyError, match="model.py:12"):
        verify(Graph((x,), (y,), (Node(ops.tanh, (z,), (y,), {}, (), place),)))


# Control flow and containers ------------------------------------------------------------------------------------


def power_of_two(limit):
    """x doubled while its sum is below a limit, and how often."""
    def body(x, count):
        test = build([VECTOR, INT], lambda x, count: ops.sum(x) < limit, "test")
        step = build([VECTOR, INT], lambda x, count: (x * 2, count + 1), "body")
        return add_node(ops.while_, (x, count), (test, step))
    return build([VECTOR, INT], body, "double")


@pytest.mark.parametrize("start, count", [(1, 4), (100, 0), (0.1, 8)])
def test_while(start, count):
    begin = np.full(3, start, F4)
    result, times = run_both(power_of_two(40.0), begin, 0)
    assert times == count
    np.testing.assert_allclose(result, begin * 2 ** count)


def clipped():
    """A branch in a loop in a branch: every nesting once, with names that meet."""
    def inner(x, limit):
        def body(x, limit):
            small = build([VECTOR, FLOAT], lambda x, limit: x * 0.5)
            large = build([VECTOR, FLOAT], lambda x, limit: x - 1.0)
            (x,) = add_node(ops.if_, (ops.py_float(ops.max(x)) < 8.0, x, limit), (small, large))
            return x, limit
        test = build([VECTOR, FLOAT], lambda x, limit: ops.py_float(ops.max(x)) > limit)
        x, _ = add_node(ops.while_, (x, limit), (test, build([VECTOR, FLOAT], body)))
        return x

    def outer(x, limit):
        return add_node(ops.if_, (ops.any(x > limit), x, limit),
                        (build([VECTOR, FLOAT], inner), build([VECTOR, FLOAT], lambda x, limit: x)))
    return build([VECTOR, FLOAT], outer)


@pytest.mark.parametrize("top", [0.5, 3.0, 20.0])
def test_nested_regions(top):
    (result,) = run_both(clipped(), np.array([0, 0.25, top], F4), 1.0)
    while top > 1.0:
        top = top * 0.5 if top < 8 else top - 1
    assert result[-1] == top


def positive_or_raise(message="not positive: {}"):
    def body(x):
        def fail(x):
            return add_node(ops.raise_, (x,), (), {"exception": ValueError, "message": message})
        return add_node(ops.if_, (ops.all(x > 0.0), x),
                        (build([VECTOR], lambda x: ops.log(x)), build([VECTOR], fail)))
    return build([VECTOR], body)


def test_a_branch_that_raises():
    graph = positive_or_raise()
    assert graph.outputs[0].type == VECTOR
    run_both(graph, np.ones(3, F4))
    scope = {}
    exec(to_source(graph), scope)
    for function in (lambda a: interpret(graph, a), scope["graph"]):
        with pytest.raises(ValueError, match=r"not positive: \[0. 1. 1.\]"):
            function(np.array([0, 1, 1], F4))


def test_a_message_made_at_the_time():
    graph = positive_or_raise(lambda x: f"least is {x.min()}")
    with pytest.raises(ValueError, match="least is -1.0"):
        interpret(graph, np.array([0, -1, 1], F4))


def test_branches_that_both_raise_give_never():
    fail = build([VECTOR], lambda x: add_node(ops.raise_, (), (), {"message": "no"}))
    graph = build([VECTOR], lambda x: add_node(ops.if_, (ops.all(x > 0.0), x), (fail, fail)))
    assert graph.outputs[0].type == Never()


def test_branches_of_two_types_give_a_union():
    def body(flag, x):
        (u,) = add_node(ops.if_, (flag, x), (build([VECTOR], lambda x: x), build([VECTOR], lambda x: ops.sum(x))))
        return u
    graph = build([BOOL, VECTOR], body)
    assert graph.outputs[0].type == Union((VECTOR, Tensor((), F4)))


def test_union_values():
    either = Union((FLOAT, VECTOR))

    def body(x):
        union = ops.union_new(x, type=either)
        return ops.union_tag(union), ops.union_get(union, tag=1)
    graph = build([VECTOR], body)
    tag, value = run_both(graph, np.ones(3, F4))
    assert tag == 1
    np.testing.assert_equal(value, np.ones(3, F4))


def test_stack():
    def body(x, y):
        stack = ops.push(ops.push(ops.new_stack(elem=VECTOR), x), y)
        stack, last = ops.pop(stack)
        return last, ops.pop(stack)[1], stack
    graph = build([VECTOR, VECTOR], body)
    assert graph.outputs[2].type == Stack(VECTOR)
    last, first, rest = run_both(graph, np.zeros(3, F4), np.ones(3, F4))
    assert last.sum() == 3 and first.sum() == 0 and len(rest) == 1


def test_a_list_grown_in_a_loop():
    def body(x):
        state = (ops.list_new(x), x)
        types = [v.type for v in state]
        test = build(types, lambda xs, x: ops.list_len(xs) < 4)
        step = build(types, lambda xs, x: (ops.list_append(xs, x * 2), x * 2))
        xs, _ = add_node(ops.while_, state, (test, step))
        return xs, ops.list_get(xs, ops.py_constant(value=-1))
    graph = build([VECTOR], body)
    assert graph.outputs[0].type == List(VECTOR)
    items, last = run_both(graph, np.ones(3, F4))
    assert [a[0] for a in items] == [1, 2, 4, 8] and last[0] == 8


@pytest.mark.parametrize("value, type", [
    (np.zeros((2, 0), "f2"), Tensor((2, 0), "float16")), (np.float32(1), Scalar("numpy", F4)),
    (np.bool_(True), Scalar("numpy", bool)),
    (True, BOOL), (3, INT), (3.0, FLOAT), ("text", Dynamic()), (None, Dynamic()),
], ids=repr)
def test_type_of(value, type):
    assert type_of(value) == type


# The printer ----------------------------------------------------------------------------------------------------

PRINTED = '''\
import numpy as np


def mlp(x, W):
    # x: float32[n, 3]
    # W: float32[2, 3]
    n = x.shape[0]
    matmul = np.dot(x, W.T)  # float32[n, 2]  model.py:7
    relu = np.maximum(matmul, 0)  # float32[n, 2]  model.py:8
    sum = np.empty((), np.float32)  # float32[]  model.py:8
    np.add.reduce(relu, axis=(0, 1), keepdims=False, out=sum)
    return (sum,)
'''


def test_printed_text():
    builder = Builder("mlp")
    data, weight = builder.input(Tensor((Dim("n"), 3), F4), "x"), builder.input(Tensor((2, 3), F4), "W")
    with building(builder):
        builder.loc = Location("/home/me/model.py", 7)
        h = ops.matmul(data, weight, transb=True)
        builder.loc = Location("/home/me/model.py", 8)
        graph = builder.build((ops.sum(ops.relu(h)),))
    assert to_source(graph) == PRINTED


def test_names_that_python_has_taken():
    graph = build([VECTOR], lambda x: ops.py_abs(ops.py_float(ops.sum(ops.abs(x)))))
    renamed = {"sum": "len", "abs": "abs", "py_float": "lambda"}
    outputs = {v: Value(v.type, renamed.get(v.name, v.name)) for n in graph.nodes for v in n.outputs}
    swap = lambda values: tuple(outputs.get(v, v) for v in values)
    nodes = tuple(Node(n.op, swap(n.inputs), swap(n.outputs), n.attrs) for n in graph.nodes)
    assert run_both(Graph(graph.inputs, swap(graph.outputs), nodes), np.full(3, -2, F4)) == (6.0,)


def test_with_sizes():
    """A graph for any size becomes one for a size, or for another free one, in its regions, too."""
    def graph_of(n):
        builder = Builder("sized")
        with building(builder):
            x = builder.input(Tensor((n, 3), np.float32), "x")
            test, body = builder.region(), builder.region()
            for region in (test, body):
                region.input(Tensor((n, 3), np.float32), "state")
            with building(test):
                going = OPS["py_bool"](OPS["less"](OPS["sum"](test.inputs[0]), constant(9, np.float32)))
            with building(body):
                doubled = body.inputs[0] + body.inputs[0]
            looped, = builder.add(OPS["while_"], (x,), {}, (test.build((going,)), body.build((doubled,))))
            flat = OPS["reshape"](looped, shape=(n * 3,))
            wide = OPS["concat"](flat, flat, axis=0)
        return verify(builder.build((wide,)))
    free = graph_of(Dim("n"))
    for size in (1, 4, Dim("m") + 2):
        assert str(verify(with_sizes(free, {"n": size}))) == str(graph_of(size))
    assert size_with((Dim("n") * 2 + 5) // 3, {"n": 5}) == 5 and size_with(maximum(Dim("n"), Dim("m")), {"n": 7, "m": 2}) == 7

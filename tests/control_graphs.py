"""Random graphs with branches in loops in branches, for the tests of control flow."""
import numpy as np
from hypothesis import strategies as st

from dy2static import ops
from dy2static.errors import Location
from dy2static.ir.building import Builder, building, current
from dy2static.ir.graph import Graph
from dy2static.ir.interpret import interpret
from dy2static.ir.types import Tensor, python_scalar

INT, BOOL = python_scalar("py_int"), python_scalar("py_bool")
UNARY = ["tanh", "sin", "neg", "sigmoid", "identity", "square", "reshape"]


def region(types, body, name="region"):
    """The graph of a function of values of these types."""
    builder = Builder(name)
    inputs = [builder.input(type, f"v{i}") for i, type in enumerate(types)]
    builder.loc = current().loc
    with building(builder):
        results = body(*inputs)
    return builder.build(tuple(results) if isinstance(results, (tuple, list)) else (results,))


def if_(pred, captured, then, orelse):
    """The results of an if_ node whose branches are Python functions of the captured values."""
    types = [v.type for v in captured]
    return current().add(ops.if_, (pred, *captured), {}, (region(types, then, "then"), region(types, orelse, "orelse")))


def while_(state, invariants, test, body, **attrs):
    """The results of a while_ node."""
    values = (*state, *invariants)
    types = [v.type for v in values]
    return current().add(ops.while_, values, {"carried": len(state), **attrs},
                         (region(types, test, "test"), region(types, body, "body")))


def number(value):
    return ops.py_constant(value=value)


def repeat(count, state, invariants, body):
    """A while_ that runs ``body(state, invariants)`` ``count`` (a Value) times; gives the last state."""
    n = len(state)
    results = while_((number(0), *state), (count, *invariants), lambda i, *rest: i < rest[n],
                     lambda i, *rest: (i + 1, *body(rest[:n], rest[n + 1:])))
    return results[1:]


@st.composite
def control_graphs(draw, depth=3, inputs=2, effects=True):
    """A graph over vectors of three numbers, with a few branches and loops."""
    builder = Builder("forward")
    pool = [builder.input(Tensor((3,), np.dtype("float64")), f"x{i}") for i in range(inputs)]
    builder.loc = Location("model.py", 1)
    with building(builder):
        pool = _block(draw, pool, depth, effects)
        count = draw(st.integers(1, 2))
        outputs = tuple(draw(st.sampled_from(pool[-3:])) for _ in range(count))
    return builder.build(outputs)


def _block(draw, pool, depth, effects):
    """Values with some more: each step reads some and makes one or two."""
    pool = list(pool)
    kinds = ["unary", "binary"] + (["if", "while"] * 2 if depth else []) + (["draw"] if effects else [])
    for _ in range(draw(st.integers(1, 3))):
        current().loc = Location("model.py", current().loc.line + 1)
        pool += _STEPS[draw(st.sampled_from(kinds))](draw, pool, depth, effects)
    return pool


def _pick(draw, pool, least=1, most=2):
    return [draw(st.sampled_from(pool)) for _ in range(draw(st.integers(least, most)))]


def _unary(draw, pool, depth, effects):
    x, name = draw(st.sampled_from(pool)), draw(st.sampled_from(UNARY))
    return [ops.reshape(ops.reshape(x, shape=(1, 3)), shape=(3,)) if name == "reshape" else getattr(ops, name)(x)]


def _binary(draw, pool, depth, effects):
    x, y = draw(st.sampled_from(pool)), draw(st.sampled_from(pool))
    return [draw(st.sampled_from([lambda: ops.tanh(x * y), lambda: x - y, lambda: x + 0.5 * y]))()]


def _draw(draw, pool, depth, effects):
    return [draw(st.sampled_from(pool)) * ops.random_uniform(shape=(3,))]


def _predicate(draw, pool):
    return ops.sum(draw(st.sampled_from(pool)), axis=None) > draw(st.sampled_from([-0.5, 0.0, 0.3]))


def _if(draw, pool, depth, effects):
    captured = _pick(draw, pool, 1, 3)
    count = draw(st.integers(1, 2))

    def side(*values):
        made = _block(draw, values, depth - 1, effects) if draw(st.booleans()) else list(values)
        return [draw(st.sampled_from(made)) for _ in range(count)]
    return list(if_(_predicate(draw, pool), captured, side, side))


def _while(draw, pool, depth, effects):
    state, invariants = _pick(draw, pool), _pick(draw, pool, 0, 2)
    if draw(st.booleans()):
        limit = number(draw(st.integers(0, 3)))
    else:
        limit = ops.py_int(ops.sum(ops.abs(draw(st.sampled_from(pool))), axis=None))

    def body(state, invariants):
        made = _block(draw, (*state, *invariants), depth - 1, effects)
        return [draw(st.sampled_from([*made[-2:], *state])) for _ in state]
    return list(repeat(limit, state, invariants, body))


_STEPS = {"unary": _unary, "binary": _binary, "if": _if, "while": _while, "draw": _draw}


def unroll(graph, inputs):
    """The straight-line graph of one run: the sides taken, the iterations made, the numbers drawn."""
    builder = Builder(graph.name)
    made = [builder.input(v.type, v.name) for v in graph.inputs]
    return builder.build(tuple(v for v, _ in _follow(builder, graph, list(zip(made, inputs)))))


def _follow(builder, graph, arguments):
    """Pairs of a value of the new graph and what it is in this run, for each output."""
    known = dict(zip(graph.inputs, arguments))
    for node in graph.nodes:
        pairs = [known[v] for v in node.inputs]
        if node.op.name == "if_":
            results = _follow(builder, node.regions[0 if pairs[0][1] else 1], pairs[1:])
        elif node.op.name == "while_":
            test, body = node.regions
            n = node.attrs["carried"]
            results, fixed = pairs[:n], pairs[n:]
            while _follow(builder, test, results + fixed)[0][1]:
                results = _follow(builder, body, results + fixed)
        else:
            arrays = interpret(Graph(node.inputs, node.outputs, (node,)), *(x for _, x in pairs))
            if node.op.effect:
                values = builder.add(ops.constant, (), {"value": arrays[0]})
            else:
                values = builder.add(node.op, tuple(v for v, _ in pairs), node.attrs)
            results = list(zip(values, arrays))
        known.update(zip(node.outputs, results))
    return [known[v] for v in graph.outputs]

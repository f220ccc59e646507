"""Clean-up passes: what becomes of small graphs, and that random graphs keep their meaning."""
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from random_graphs import arrays, build, graphs

from dy2static import ops, passes
from dy2static.errors import VerifyError
from dy2static.ir.building import Builder, building
from dy2static.ir.interpret import interpret
from dy2static.ir.op import OPS, declare
from dy2static.ir.types import Tensor

neg, turn = ops.neg, ops.transpose


def names(graph):
    return [node.op.name for node in graph.nodes]


def clean(graph):
    return passes.run(passes.CLEAN, graph)


@settings(max_examples=200)
@given(graphs())
def test_random_graphs_keep_their_meaning(graph):
    inputs = arrays(graph)
    before, after = interpret(graph, *inputs), clean(graph)
    for a, b in zip(interpret(after, *inputs), before):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)
    assert len(after.nodes) <= len(graph.nodes) and after.inputs == graph.inputs
    assert clean(after) is after or names(clean(after)) == names(after)


@settings(max_examples=200)
@given(graphs())
def test_results_handed_out_stay_apart(graph):
    """Arrays that did not share memory do not share it after the passes."""
    inputs = arrays(graph)
    before, after = interpret(graph, *inputs), interpret(clean(graph), *inputs)
    for i in range(len(before)):
        for j in range(i):
            assert np.shares_memory(after[i], after[j]) <= np.shares_memory(before[i], before[j])
        for x in inputs:
            assert np.shares_memory(after[i], x) <= np.shares_memory(before[i], x)


#: Each function is followed by ``tanh`` so that the result of interest is not an output.
SIMPLER = {
    "transposes": (lambda x: ops.transpose(ops.transpose(x)), []),
    "transposes joined": (lambda x: turn(turn(ops.reshape(x, shape=(2, 3, 2)), axes=(1, 2, 0)), axes=(1, 2, 0)),
                          ["reshape", "transpose"]),
    "reshapes": (lambda x: ops.reshape(ops.reshape(x, shape=(12,)), shape=(3, 4)), []),
    "broadcasts": (lambda x: ops.broadcast_to(ops.broadcast_to(x, shape=(1, 3, 4)), shape=(2, 3, 4)), ["broadcast_to"]),
    "casts": (lambda x: ops.cast(x, dtype="float64"), []),
    "sums of nothing": (lambda x: ops.sum_to(ops.sum_to(x, shape=(3, 4)), shape=(3, 4)), []),
    "sums of one": (lambda x: ops.sum(ops.reshape(x, shape=(3, 1, 4)), axis=1), ["reshape", "sum"]),
    "times one": (lambda x: 1.0 * (ops.exp(x) * 1.0) / 1.0, ["exp"]),
    "minus zero": (lambda x: ops.exp(x) - 0.0, ["exp"]),
    "plus zero": (lambda x: x + 0.0, ["constant", "broadcast_to", "add"]),
    "minus negative zero": (lambda x: x - -0.0, ["constant", "broadcast_to", "sub"]),
    "times zero": (lambda x: x * 0.0, ["constant", "broadcast_to", "mul"]),
    "negatives": (lambda x: neg(neg(ops.exp(x))), ["exp"]),
    "copies of what a backward may find written": (lambda x: neg(neg(ops.transpose(x))), ["transpose", "neg", "neg"]),
    "turned operand": (lambda x: ops.matmul(x, ops.transpose(x)), ["matmul"]),
    "turned product": (lambda x: ops.transpose(ops.matmul(x, x, transb=True)), ["matmul"]),
    "stop_gradient": (lambda x: ops.stop_gradient(x), ["stop_gradient"]),
    "same twice": (lambda x: ops.exp(x) + ops.exp(x), ["exp", "add"]),
    "constants": (lambda x: x * (ops.constant(value=np.array(2.0)) * ops.constant(value=np.array(4.0))),
                  ["constant", "broadcast_to", "mul"]),
}


@pytest.mark.parametrize("case", SIMPLER)
def test_simpler(case):
    function, expected = SIMPLER[case]
    graph = build(lambda x: ops.tanh(function(x)), (3, 4))
    after = clean(graph)
    assert names(after) == expected + ["tanh"]
    for inputs in (arrays(graph), [np.array([[-0.0, 0.0, np.inf, np.nan]] * 3)]):
        with np.errstate(all="ignore"):
            a, b = interpret(after, *inputs)[0], interpret(graph, *inputs)[0]
        np.testing.assert_allclose(a, b, rtol=1e-14)
        if case != "sums of nothing":                 # eager makes no node for those
            assert (np.signbit(a) == np.signbit(b)).all()


#: Results that the user holds: a value may not become another array that somebody holds.
KEPT = {
    "input": (lambda x: x * 1.0, ["constant", "broadcast_to", "mul"]),
    "two outputs": (lambda x: (ops.exp(x), ops.exp(x)), ["exp", "exp"]),
    "an output and its view": (lambda x: (ops.exp(x), ops.reshape(ops.exp(x), shape=(12,))), ["exp", "exp", "reshape"]),
    "an output and an intermediate": (lambda x: (ops.exp(x), ops.tanh(ops.exp(x))), ["exp", "tanh"]),
    "negatives of an intermediate": (lambda x: neg(neg(ops.exp(x))), ["exp"]),
    "negatives of an output": (lambda x: (lambda y: (y, neg(neg(y))))(ops.exp(x)), ["exp", "neg", "neg"]),
    "view of an input": (lambda x: ops.transpose(ops.transpose(x)), ["transpose", "transpose"]),
}


@pytest.mark.parametrize("case", KEPT)
def test_what_is_handed_out(case):
    function, expected = KEPT[case]
    graph = build(function, (3, 4))
    assert names(clean(graph)) == expected


def test_attributes_are_compared_by_their_bits():
    power = ops.power_const
    graph = build(lambda x: (x * 0.0 - x * -0.0) + power(x, exponent=1) + power(x, exponent=1.0), (2,))
    assert names(clean(graph)).count("mul") == 2
    assert names(clean(graph)).count("power_const") == 2


def test_dead_nodes_go_and_effects_stay():
    graph = build(lambda x: (ops.exp(x), ops.tanh(x), ops.random_uniform(shape=(2,)))[1], (2,))
    assert names(passes.eliminate_dead(graph)) == ["tanh", "random_uniform"]


def test_draws_are_never_merged():
    graph = build(lambda: ops.random_uniform(shape=(2,)) - ops.random_uniform(shape=(2,)))
    assert names(clean(graph)) == ["random_uniform", "random_uniform", "sub"]


def test_unchanged_graphs_are_the_same_objects():
    graph = build(lambda x: ops.tanh(x), (2,))
    assert clean(graph) is graph


def test_every_pass_is_verified():
    graph = build(lambda x: ops.tanh(x), (2,))
    with pytest.raises(VerifyError):
        passes.run(passes.Pipeline("wrong", "", (passes.Pass(lambda g: g.with_(nodes=())),)), graph)


@pytest.fixture
def keep():
    """An op of unknown code, that may keep and change what it sees."""
    yield declare("test_keep", "x", kind="effect", effect=True, infer=lambda x: Tensor((), x.dtype), numpy=np.sum)
    del OPS["test_keep"]


def test_unknown_code_keeps_what_it_sees(keep):
    graph = build(lambda x: (lambda a, b: keep(a) + keep(b))(ops.exp(x), ops.exp(x)), (2,))
    assert names(clean(graph)).count("exp") == 2


def test_unknown_code_may_write(keep):
    graph = build(lambda x: ops.sum(ops.exp(x), axis=None) + keep(x) + ops.sum(ops.exp(x), axis=None), (2,))
    assert names(clean(graph)).count("exp") == 2


def test_a_builder_knows_what_made_a_value():
    """Also when nodes have been taken out, put elsewhere or replaced since it was asked."""
    builder = Builder()
    with building(builder):
        x = builder.input(Tensor((2,), np.dtype("float32")))
        a = neg(x)
        b = neg(a)
        first, second = builder.nodes
        assert builder.producer(x) is None and builder.producer(a) is first and builder.producer(b) is second
        del builder.nodes[1:]
        c = neg(a)
        assert builder.producer(b) is None and builder.producer(c) is builder.nodes[1]
        builder.nodes.insert(0, second)
        assert [builder.producer(v) for v in (b, a, c)] == builder.nodes
        builder.nodes[:] = [replace(node, loc=None) for node in reversed(builder.nodes)]
        assert [builder.producer(v) for v in (c, a, b)] == builder.nodes

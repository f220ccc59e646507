"""Where a compiled call is cut into FunctionNodes."""
import pytest
from hypothesis import given, settings
from random_graphs import build, graphs

from dy2static import ops, passes
from dy2static.passes.differentiation.activity import active_values


def cut(function, *shapes, escaping=None, needs=None):
    """Per segment: names of its active ops, origins of its inputs, indexes of its outputs."""
    graph = build(function, *shapes)
    active = active_values(graph, graph.inputs if needs is None else [graph.inputs[i] for i in needs])
    result = passes.segments(graph, range(len(graph.outputs)) if escaping is None else escaping, active)
    return [([n.op.name for n in s.graph.nodes], s.inputs, s.outputs) for s in result]


def loss_of(h):
    return ops.sum(ops.square(h), axis=None)


def x0(*rest):
    return (("input", 0), *rest)


CASES = {
    "one output": (lambda x: ops.exp(ops.tanh(x)), {}, [(["tanh", "exp"], x0(), (0,))]),
    "h and its loss": (
        lambda x: (lambda h: (h, loss_of(h)))(ops.tanh(x)), {},
        [(["tanh"], x0(), (0,)), (["square", "sum"], ((0, 0),), (1,))]),
    "order of the outputs does not matter": (
        lambda x: (lambda h: (loss_of(h), h))(ops.tanh(x)), {},
        [(["tanh"], x0(), (1,)), (["square", "sum"], ((0, 0),), (0,))]),
    "only Variables cut": (
        lambda x: (lambda h: (h, loss_of(h)))(ops.tanh(x)), {"escaping": [1]},
        [(["tanh", "square", "sum"], x0(), (1,))]),
    "a side path that is not an output": (
        lambda x: (lambda h, t: (h, h * t))(ops.exp(x), ops.tanh(x)), {},
        [(["exp"], x0(), (0,)), (["tanh", "mul"], x0((0, 0)), (1,))]),
    "a trunk for two ends": (
        lambda x: (lambda t: (ops.exp(t), ops.sin(t)))(ops.tanh(x)), {},
        [(["tanh", "exp", "sin"], x0(), (0, 1))]),
    "a trunk for a cut and an end": (
        lambda x: (lambda t: (lambda h: (h, h * t))(ops.exp(t)))(ops.tanh(x)), {},
        [(["tanh"], x0(), (None,)), (["exp"], ((0, 0),), (0,)), (["mul"], ((0, 0), (1, 0)), (1,))]),
    "a chain of cuts": (
        lambda x: (lambda a: (lambda b: (a, b, ops.sin(b)))(ops.exp(a)))(ops.tanh(x)), {},
        [(["tanh"], x0(), (0,)), (["exp"], ((0, 0),), (1,)), (["sin"], ((1, 0),), (2,))]),
    "ends that nothing connects": (
        lambda x, y: (ops.tanh(x), ops.exp(y)), {},
        [(["tanh"], (("input", 0),), (0,)), (["exp"], (("input", 1),), (1,))]),
    "an output twice": (
        lambda x: (lambda y: (y, y))(ops.tanh(x)), {}, [(["tanh"], x0(), (0,))]),
    "an input is an output": (
        lambda x: (x, ops.tanh(x)), {}, [(["tanh"], x0(), (1,))]),
    "only an input": (lambda x: x, {}, []),
    "needs no gradient": (lambda x: ops.tanh(x), {"needs": []}, []),
    "no gradient on the way": (
        lambda x: (lambda h: (h, ops.exp(ops.stop_gradient(h))))(ops.tanh(x)), {}, [(["tanh"], x0(), (0,))]),
    "nodes without gradient are with those that read them": (
        lambda x, y: x * ops.tanh(y), {"needs": [0]}, [(["tanh", "mul"], (("input", 0), ("input", 1)), (0,))]),
    "in both segments that read them": (
        lambda x, y: (lambda t: (lambda h: (h, h - t))(x * t))(ops.exp(y)), {"needs": [0]},
        [(["exp", "mul"], (("input", 0), ("input", 1)), (0,)), (["exp", "sub"], (("input", 1), (0, 0)), (1,))]),
}


@pytest.mark.parametrize("case", CASES)
def test_cuts(case):
    function, options, expected = CASES[case]
    shapes = [(2,)] * function.__code__.co_argcount
    assert cut(function, *shapes, **options) == expected


@settings(max_examples=200)
@given(graphs(outputs=4))
def test_every_active_node_that_leads_out_is_in_one_segment(graph):
    active = active_values(graph, graph.inputs)
    result = passes.segments(graph, range(len(graph.outputs)), active)
    made = [v for s in result for node in s.graph.nodes for v in node.outputs if v in active]
    assert len(made) == len(set(made))
    needed = set(passes.eliminate_dead(graph.with_(outputs=tuple(v for v in graph.outputs if v in active))).nodes)
    for k, segment in enumerate(result):
        known = set(segment.graph.inputs)
        for origin in segment.inputs:
            assert origin[0] == "input" or origin[0] < k
        for node in segment.graph.nodes:
            assert known.issuperset(node.inputs) and node in needed
            known.update(node.outputs)
    escaping = [i for s in result for i in s.outputs if i is not None]
    assert {graph.outputs[i] for i in escaping} == {v for v in graph.outputs if v in active} - set(graph.inputs)

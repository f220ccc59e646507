"""Branches and loops in graphs: passes, gradients of every order, generated code."""
import numpy as np
import pytest
from control_graphs import control_graphs, if_, number, region, repeat, unroll, while_
from hypothesis import given, settings
from random_graphs import arrays, build

from dy2static import ops, passes
from dy2static.codegen.numpy import emit
from dy2static.ir.interpret import interpret
from dy2static.ir.printer import to_source
from dy2static.ir.verify import verify


def run(graph, inputs):
    """The interpreter's results, from fixed random numbers."""
    np.random.seed(1)
    with np.errstate(all="ignore"):
        return interpret(graph, *inputs)


def run_emitted(graph, inputs, saved=()):
    """The results of the generated function, and its text."""
    function = emit(graph, name="forward", escaping=set(graph.outputs), saved=saved)
    arena = function.make_arena()
    for array in arena:
        array.fill(np.nan if array.dtype.kind == "f" else 1)           # what is not written must not be read
    kept = [np.copy(x) for x in inputs]
    np.random.seed(1)
    with np.errstate(all="ignore"):
        results = function.bind()(arena, *inputs)
    for before, after in zip(kept, inputs):
        np.testing.assert_array_equal(before, after)
    for result in results[:len(graph.outputs)]:
        assert not any(np.shares_memory(result, array) for array in arena)
    return results, function.source


def assert_close(actual, expected):
    for a, b in zip(actual, expected):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)
    assert len(actual) == len(expected)


@settings(max_examples=200)
@given(control_graphs())
def test_random_graphs(graph):
    """Interpreter, printed text, generated function: all the same, before and after the passes."""
    verify(graph)
    inputs = arrays(graph)
    expected = run(graph, inputs)
    clean = passes.run(passes.CLEAN, graph)
    assert_close(run(clean, inputs), expected)
    for g in (graph, clean):
        scope = {}
        exec(to_source(g), scope)
        np.random.seed(1)
        assert_close(scope["forward"](*inputs), expected)
        assert_close(run_emitted(g, inputs)[0], expected)


def seeds(graph, inputs):
    """Inputs of a joint graph: those of the forward graph, then output gradients."""
    rng = np.random.RandomState(3)
    return inputs + [np.asarray(rng.uniform(-1, 1, v.shape)) for v in graph.inputs[len(inputs):]]


def floats(graph):
    return [j for j, v in enumerate(graph.outputs) if v.type.dtype.kind == "f"]


def check_gradients(graph, inputs, order):
    """Gradients through control flow equal those of the straight-line graph of the same run, None where it has none.

    Gives per order the graph that was differentiated, what came out, and the inputs.
    """
    np.random.seed(1)
    straight = unroll(graph, inputs)
    for _ in range(order):
        actual = passes.autodiff(graph, range(len(graph.inputs)), floats(graph))
        expected = passes.autodiff(straight, range(len(graph.inputs)), floats(straight))
        verify(actual.forward)
        inputs = seeds(verify(actual.graph), inputs)
        results = dict(zip(actual.graph.outputs, run(actual.graph, inputs)))
        there = [results[c] if c in results else c for c in actual.connected]
        assert there == list(expected.connected)
        found = [v for v, is_there in zip(actual.gradients, there) if is_there]
        assert_close([results[v] for v in found], run(expected.graph, inputs))
        assert not any(np.any(results[v]) for v, is_there in zip(actual.gradients, there) if v and not is_there)
        yield graph, actual, inputs
        if not found:
            return
        graph, straight = actual.graph.with_(outputs=tuple(found)), expected.graph


@settings(max_examples=150)
@given(control_graphs())
def test_random_gradients(graph):
    list(check_gradients(graph, arrays(graph), 1))


@settings(max_examples=60)
@given(control_graphs(depth=2))
def test_random_gradients_to_third_order(graph):
    list(check_gradients(graph, arrays(graph), 3))

"""Branches and loops in graphs: passes, gradients of every order, generated code."""
import numpy as np
import pytest
from control_graphs import control_graphs, if_, number, region, repeat, while_
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

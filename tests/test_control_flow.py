"""Branches and loops in graphs: passes, gradients of every order, generated code."""
import numpy as np
import pytest
from control_graphs import control_graphs, if_, number, region, repeat, unroll, while_
from hypothesis import given, settings
from random_graphs import arrays, build

from dy2static import ops, passes
from dy2static.codegen.differentiate import SegmentPlan, compile_backward
from dy2static.codegen.numpy import emit
from dy2static.ir.interpret import interpret
from dy2static.ir.printer import to_source
from dy2static.ir.verify import verify
from dy2static.runtime.segment import Segment


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


class Compiled:
    """A graph compiled as a call would be: a forward, and backwards made on demand, each differentiable again."""

    def __init__(self, graph, inputs, counter=None):
        graph = passes.run(passes.CLEAN, graph)
        plan = SegmentPlan(graph, range(len(graph.inputs)))
        results, self.source = run_emitted(plan.graph, inputs, plan.saved)
        known = {**dict(zip(plan.graph.inputs, inputs)), **dict(zip((*plan.graph.outputs, *plan.saved), results))}
        self.outputs = results[:len(graph.outputs)]
        self.segment, self.held = Segment("f", plan), [known[v] for v in plan.held]
        self.entering = list(inputs)

    def backward(self, given, again=False):
        """The gradients of all inputs (None where there is none), and with ``again`` the node of this backward."""
        plan = self.segment.plan
        targets = tuple(range(len(plan.targets)))
        program = compile_backward(self.segment, targets, tuple(g is not None for g in given), again)
        given = [g for g in given if g is not None]
        sources = {"held": self.held, "given": given}
        arena = program.pool.take() if program.pool else None
        for array in arena or ():
            array.fill(np.nan if array.dtype.kind == "f" else 1)
        before = [np.array(x) for x in given]
        with np.errstate(all="ignore"):
            results = program.run(arena, *(sources[kind][k] for kind, k in program.operands))
        assert_close(given, before)
        count = sum(program.connected)
        for result in results[:count]:
            assert not any(np.shares_memory(result, array) for array in arena or ())
        ready = iter(results)
        gradients = [next(ready) if connected else None for connected in program.connected]
        for target, index in program.conditions:
            gradients[target] = gradients[target] if results[index] else None
        if program.again is None:
            return gradients, None
        sources["extra"] = results[count + program.bools:]
        node = Compiled.__new__(Compiled)
        node.segment, node.held = program.again, [sources[kind][k] for kind, k in program.held]
        node.outputs, node.connected = results[:count], program.connected
        return gradients, node


def check_compiled(graph, order):
    """Generated forward and backwards give what the interpreter gives for the joint graphs."""
    inputs = arrays(graph)
    node = Compiled(graph, inputs)
    assert_close(node.outputs, run(graph, inputs))
    for k, (differentiated, joint, values) in enumerate(check_gradients(graph, inputs, order)):
        given = [v for v in values[-len(floats(differentiated)):]] if floats(differentiated) else []
        if k:                                                  # the graph has those outputs whose gradient was there
            given = iter(given)
            given = [next(given) if there else None for there in present]
        results = dict(zip(joint.graph.outputs, run(joint.graph, values)))
        expected = [None if c is False or c is not True and not results[c] else results[v]
                    for c, v in zip(joint.connected, joint.gradients)]
        gradients, node = node.backward(given, again=k < order - 1)
        assert [g is None for g in gradients] == [g is None for g in expected]
        assert_close([g for g in gradients if g is not None], [g for g in expected if g is not None])
        present = [g is not None for c, g in zip(joint.connected, expected) if c is not False]
        if node is None:
            return


@settings(max_examples=150)
@given(control_graphs())
def test_random_graphs_compiled(graph):
    check_compiled(graph, 1)


@settings(max_examples=80)
@given(control_graphs(depth=2))
def test_random_graphs_compiled_to_third_order(graph):
    check_compiled(graph, 3)

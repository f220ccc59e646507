"""Branches and loops in graphs: passes, gradients of every order, generated code."""
import numpy as np
import pytest
from control_graphs import control_graphs, if_, number, repeat, unroll, while_
from hypothesis import given, settings
from random_graphs import arrays, build

from dy2static import ops, passes
from dy2static.backends.host.backend import NUMPY
from dy2static.backends.host.emit import emit
from dy2static.ir.interpret import interpret
from dy2static.ir.printer import to_source
from dy2static.ir.types import Scalar, Tensor
from dy2static.ir.verify import verify
from dy2static.passes.differentiation.inner_autodiff import requires_grad
from dy2static.program.backward import Target, compile_backward
from dy2static.program.nodes import SegmentPlan
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
@given(control_graphs(depth=2, inputs=3))
def test_what_each_source_marks(graph):
    """All sources in one pass mark what each of them marks alone."""
    values = {v for node in graph.nodes for v in node.outputs}
    for certainly in (False, True):
        found = passes.requires_grad_of_each(graph.nodes, graph.inputs, values, certainly)
        assert found == [(requires_grad(graph.nodes, [v], certainly) & values) | {v} for v in graph.inputs]
    deciding = passes.deciding_values(graph)
    facts = {v: k % 2 if k % 3 else 2 for k, v in enumerate(sorted(deciding, key=lambda v: v.name)) if isinstance(v.type, (Scalar, Tensor))}
    alone = [passes.requires_grad_in_run(graph, [v], values, facts, deciding) for v in graph.inputs]
    assert passes.requires_grad_in_run(graph, graph.inputs, values, facts, deciding) == [found for found, in alone]


@settings(max_examples=60)
@given(control_graphs(depth=2))
def test_random_gradients_to_third_order(graph):
    list(check_gradients(graph, arrays(graph), 3))


class Compiled:
    """A graph compiled as a call would be: a forward, and backwards made on demand, each differentiable again."""

    def __init__(self, graph, inputs):
        graph = passes.run(passes.CLEAN, graph)
        plan = SegmentPlan(graph, range(len(graph.inputs)))
        results, self.source = run_emitted(plan.graph, inputs, plan.saved)
        known = {**dict(zip(plan.graph.inputs, inputs)), **dict(zip((*plan.graph.outputs, *plan.saved), results))}
        self.outputs = results[:len(graph.outputs)]
        self.segment, self.held = Segment("f", plan, Target(NUMPY)), [known[v] for v in plan.held]

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
    present = []
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
        if node is None:
            return
        present = [g is not None for c, g in zip(node.connected, gradients) if c is not False]


@settings(max_examples=150)
@given(control_graphs())
def test_random_graphs_compiled(graph):
    check_compiled(graph, 1)


@settings(max_examples=80)
@given(control_graphs(depth=2))
def test_random_graphs_compiled_to_third_order(graph):
    check_compiled(graph, 3)


# Examples by hand -----------------------------------------------------------------------------------------------


def newton(a, tolerance=1e-6):
    """The square root of ``a``, which must be positive."""
    return while_((a, number(0)), (a,),
                  lambda x, n, a: ops.max(ops.abs(x * x - a), axis=None) > tolerance,
                  lambda x, n, a: (x - (x * x - a) / (2.0 * x), n + 1), counted=False)[0]


def recurrent(x, W):
    """A state that goes round five times, then a decision about it."""
    (h,) = repeat(number(5), (x,), (W,), lambda s, i: (ops.tanh(ops.matmul(s[0], i[0])),))
    return if_(ops.sum(h, axis=None) > 0.0, (h, x), lambda h, x: (h * x,), lambda h, x: (x,))[0]


def nested(x, y):
    """A loop in a branch in a loop; both sides read from outside."""
    def body(state, invariants):
        def inner(x, y):
            return repeat(number(3), (x,), (y,), lambda s, i: (ops.sin(s[0]) + i[0] * s[0],))
        return if_(ops.sum(state[0], axis=None) > 0.5, (state[0], invariants[0]), inner,
                   lambda x, y: (ops.tanh(x * y) + 0.3,))
    return repeat(number(4), (x,), (y,), body)[0]


def swapped(x, y):
    """Two states that change places."""
    return repeat(number(3), (x, y), (), lambda s, i: (s[1] * 2.0, ops.tanh(s[0])))


def unchanged(x, y):
    """State that no iteration changes; how many there are, x says."""
    limit = ops.py_int(ops.sum(ops.abs(x), axis=None))
    return y, repeat(limit, (y,), (), lambda s, i: s)[0]


def unchanged_inside(x):
    """State that a loop in a loop does not change."""
    def count(v):
        return ops.py_int(ops.sum(ops.abs(v), axis=None))
    return ops.sin(repeat(count(x), (x,), (), lambda s, i: repeat(count(s[0]), s, (), lambda t, j: t))[0])


EXAMPLES = {"newton": (lambda x: newton(x * x + 0.5), [(64,)]), "recurrent": (recurrent, [(4, 8), (8, 8)]), "nested": (nested, [(3,), (3,)]),
            "swapped": (swapped, [(3,), (3,)]), "unchanged": (unchanged, [(3,), (3,)]),
            "unchanged inside": (unchanged_inside, [(3,)])}


def example(name):
    function, shapes = EXAMPLES[name]
    graph = build(function, *shapes)
    return graph, [np.abs(x) + 0.1 for x in arrays(graph)]


@pytest.mark.parametrize("name", EXAMPLES)
def test_gradients_against_finite_differences(name):
    graph, inputs = example(name)
    graph = passes.run(passes.CLEAN, graph)
    for _ in range(3):
        joint = verify(passes.autodiff(graph, range(len(graph.inputs)), floats(graph)).graph)
        weights = [np.random.uniform(-1, 1, graph.outputs[j].shape) for j in floats(graph)]
        rng = np.random.RandomState(2)
        directions = [rng.uniform(-1, 1, x.shape) for x in inputs]

        sides = [run(graph, [x + step * d for x, d in zip(inputs, directions)]) for step in (1e-6, -1e-6)]
        totals = [sum(np.sum(results[j] * w) for j, w in zip(floats(graph), weights)) for results in sides]
        gradients = run(joint, inputs + weights)
        numerical = (totals[0] - totals[1]) / 2e-6
        connected = [d for d, c in zip(directions, passes.autodiff(
            graph, range(len(graph.inputs)), floats(graph)).connected) if c is not False]
        np.testing.assert_allclose(sum(np.sum(g * d) for g, d in zip(gradients, connected)), numerical, rtol=1e-4)
        graph, inputs = joint, inputs + weights


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_compiled_to_third_order(name):
    graph, _ = example(name)
    check_compiled(graph, 3)


NEWTON = """\
def forward(arena, x0):
    while_, mul, max_1, greater_1, mul_1 = arena
    copyto(while_, x0)
    while True:
        multiply(while_, while_, out=mul)
        subtract(mul, x0, out=mul)
        absolute(mul, out=mul)
        maximum.reduce(mul, axis=0, keepdims=False, out=max_1)
        greater(max_1, c1em06, out=greater_1)
        if not greater_1:
            break
        multiply(while_, while_, out=mul)
        subtract(mul, x0, out=mul)
        multiply(c2, while_, out=mul_1)
        true_divide(mul, mul_1, out=mul)
        subtract(while_, mul, out=while_)
    while__1 = while_.copy()
    return (while__1,)
"""

TURNS = """\
def forward(arena, x0, x1):
    while__1, next_while__1 = arena
    copyto(while__1, x0)
    while_ = 0
    while while_ < 5:
        while_ = while_ + 1
        while__1.dot(x1, out=next_while__1)
        while__1, next_while__1 = next_while__1, while__1
    while__2 = while__1.copy()
    return (while__2,)
"""

SIDES = """\
def forward(arena, x0):
    sum_1, greater_1, if_ = arena
    add.reduce(x0, axis=None, out=sum_1)
    greater(sum_1, c0, out=greater_1)
    if greater_1:
        multiply(x0, c2, out=if_)
    else:
        tanh(x0, out=if_)
    exp_1 = exp(if_)
    return (exp_1,)
"""


@pytest.mark.parametrize("function, shapes, expected", [
    (newton, [(64,)], NEWTON),
    (lambda x, W: repeat(number(5), (x,), (W,), lambda s, i: (ops.matmul(s[0], i[0]),))[0], [(2, 4), (4, 4)], TURNS),
    (lambda x: ops.exp(if_(ops.sum(x, axis=None) > 0.0, (x,), lambda x: (x * 2.0,), lambda x: (ops.tanh(x),))[0]),
     [(3,)], SIDES),
], ids=["newton", "two buffers in turn", "both sides into one buffer"])
def test_text(function, shapes, expected):
    graph = passes.run(passes.CLEAN, build(function, *shapes))
    assert run_emitted(graph, [np.abs(x) for x in arrays(graph)])[1] == expected


def count_of(limit):
    return build(lambda x, W: repeat(ops.py_int(ops.sum(x, axis=None)), (x,), (W,), lambda s, i: (s[0] * i[0],))[0],
                 (1,), (1,)), [np.array([limit]), np.array([2.0])]


@pytest.mark.parametrize("limit, gradients", [(0.0, [1, None]), (1.0, [2, 1]), (3.0, [8, 36])])
def test_a_loop_that_does_not_run_connects_its_invariants_to_nothing(limit, gradients):
    graph, inputs = count_of(limit)
    found, _ = Compiled(graph, inputs).backward([np.ones(1)])
    assert [g if g is None else g.tolist() for g in found] == [g if g is None else [g] for g in gradients]


@pytest.mark.parametrize("start, connected", [(1.0, [True, True]), (-1.0, [True, False])])
def test_an_operand_of_one_side_has_a_gradient_if_that_side_ran(start, connected):
    graph = build(lambda x, W: if_(ops.sum(x, axis=None) > 0.0, (x, W), lambda x, W: (x * W,),
                                   lambda x, W: (x * 2.0,))[0], (1,), (1,))
    found, _ = Compiled(graph, [np.array([start]), np.array([2.0])]).backward([np.ones(1)])
    assert [g is not None for g in found] == connected


def test_numbers_and_decisions_carry_no_gradient():
    graph = build(lambda x: repeat(number(2), (ops.cast(x, dtype="int64"), x), (), lambda s, i: (s[0] + 1, s[1]))[0],
                  (2,))
    assert passes.autodiff(graph, [0], [0]).connected == (False,)


# Passes ---------------------------------------------------------------------------------------------------------


def clean(graph):
    return passes.run(passes.CLEAN, graph)


def test_what_nobody_reads_goes():
    """Results, state, invariants and captured operands, with what only they need."""
    def function(x, y):
        a, b = if_(ops.sum(x, axis=None) > 0.0, (x, y), lambda x, y: (ops.exp(x), ops.exp(y)), lambda x, y: (x, y))
        c, d, e = repeat(number(2), (a, b, a), (y,), lambda s, i: (ops.tanh(s[0]), s[1] * i[0], s[2]))
        return c
    branch, loop = (n for n in clean(build(function, (2,), (2,))).nodes if n.regions)
    assert len(branch.inputs) == 2 and len(branch.outputs) == 1
    assert len(loop.inputs) == 3 and loop.attrs["carried"] == 2          # the counter and one state
    assert [len(r.nodes) for r in branch.regions] == [1, 0]


def test_state_that_another_state_needs_stays():
    graph = build(lambda x, y: repeat(number(2), (x, y), (), lambda s, i: (s[0] + s[1], s[1] * 2.0))[0], (2,), (2,))
    assert clean(graph).nodes[-1].attrs["carried"] == 3


def test_state_that_does_not_change_is_an_invariant():
    graph = build(lambda x, y: ops.exp(repeat(number(2), (x, y), (), lambda s, i: (s[0] * s[1], s[1]))[0]), (2,), (2,))
    loop = next(n for n in clean(graph).nodes if n.regions)
    assert loop.attrs["carried"] == 2 and len(loop.inputs) == 4


def test_regions_are_simplified_too():
    graph = build(lambda x: if_(ops.sum(x, axis=None) > 0.0, (x,), lambda x: (ops.exp(x) * 1.0 + ops.exp(x),),
                                lambda x: (x,))[0], (2,))
    assert [n.op.name for n in clean(graph).nodes[-1].regions[0].nodes] == ["exp", "add"]


def test_effects_stay_in_order():
    """A draw in a side nobody reads, in a loop nobody reads, keeps its place in the stream of random numbers."""
    def function(x):
        if_(ops.sum(x, axis=None) > 0.0, (x,), lambda x: (x * ops.random_uniform(shape=(2,)),), lambda x: (x,))
        repeat(number(3), (x,), (), lambda s, i: (s[0] * ops.random_uniform(shape=(2,)),))
        return ops.random_uniform(shape=(2,))
    graph = build(function, (2,))
    numbers = np.random.RandomState(1).rand(10)
    for g in (graph, clean(graph)):
        assert run(g, [np.ones(2)])[0].tolist() == numbers[8:].tolist()
        assert run_emitted(g, [np.ones(2)])[0][0].tolist() == numbers[8:].tolist()

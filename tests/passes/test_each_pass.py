"""Each pass on a graph of a few nodes: what it changes, what it leaves alone, and that the numbers stay."""
import functools

import numpy as np
import pytest
from control_graphs import if_
from random_graphs import arrays, build

from dy2static import ops
from dy2static.errors import InternalError
from dy2static.ir.building import Builder, building
from dy2static.ir.interpret import interpret
from dy2static.ir.op import OPS
from dy2static.ir.template import AT
from dy2static.ir.types import Stack, Tensor, python_scalar
from dy2static.passes.batching import batch_products
from dy2static.passes.cleanup import dce
from dy2static.passes.cleanup.cse import eliminate_common
from dy2static.passes.cleanup.dce import eliminate_dead
from dy2static.passes.cleanup.simplify import simplify
from dy2static.passes.differentiation.autodiff import autodiff
from dy2static.passes.differentiation.partition_joint import partition_joint
from dy2static.passes.differentiation.requires_grad_flow import deciding_values, requires_grad_in_run
from dy2static.passes.extract import extract
from dy2static.passes.marks import erase_marks
from dy2static.passes.memory.aliases import held_values
from dy2static.passes.memory.rematerialize import Saving, mark_recomputed, schedule_late
from dy2static.passes.pretranspose import pretranspose
from dy2static.passes.weight_gradients import weight_gradients


def names(graph):
    return [node.op.name for node in graph.nodes]


def same_numbers(before, after):
    inputs = arrays(before)
    for a, b in zip(interpret(before, *inputs), interpret(after, *inputs)):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


# --- clean-up ---------------------------------------------------------------------------------------------------------


def test_cse_merges_equal_nodes():
    graph = build(lambda x: ops.tanh(x) * ops.tanh(x) + ops.exp(x), (3,))
    after = eliminate_common(graph)
    assert names(after).count("tanh") == 1 and len(after.nodes) == len(graph.nodes) - 1
    same_numbers(graph, after)


def test_cse_keeps_two_arrays_that_leave():
    graph = build(lambda x: (ops.tanh(x), ops.tanh(x)), (3,))
    assert eliminate_common(graph) is graph


def test_dce_drops_what_no_output_reads():
    graph = build(lambda x: (ops.tanh(x), ops.exp(x)), (3,))
    assert names(eliminate_dead(graph.with_(outputs=graph.outputs[:1]))) == ["tanh"]
    assert eliminate_dead(graph) is graph


def test_marks_for_gradients_read_nothing_more_once_a_graph_is_about_to_run():
    """What is saved for a backward stays."""
    graph = build(lambda x, y: ops.tanh(ops.attached(ops.neg(x), ops.exp(y))), (3,), (3,))
    (log,) = [node.outputs[0] for node in graph.nodes if node.op.name == "exp"]
    assert names(erase_marks(graph)) == ["neg", "identity", "tanh"]
    assert names(erase_marks(graph, saved=(log,))) == ["neg", "exp", "identity", "tanh"]
    same_numbers(graph, erase_marks(graph))
    plain = build(ops.tanh, (3,))
    assert erase_marks(plain) is plain


def test_dce_looks_once_through_a_branch_with_many_operands(monkeypatch):
    def side(*values):
        return ops.tanh(functools.reduce(ops.add, values[:-1]))     # does not read the last one

    found, read = [], dce._read
    monkeypatch.setattr(dce, "_read", lambda region: (found.append(region), read(region))[1])
    after = eliminate_dead(build(lambda *values: if_(ops.py_constant(value=True), values, side, side), *[(3,)] * 40))
    assert len(after.nodes[-1].inputs) == 40 and len(found) == 2


def test_simplify_moves_transposes_into_products():
    graph = build(lambda x, y: ops.tanh(ops.matmul(ops.transpose(x), y)), (3, 4), (3, 2))
    after = eliminate_dead(simplify(graph))
    assert names(after) == ["matmul", "tanh"] and after.nodes[0].attrs["transa"]
    same_numbers(graph, after)


# --- products ---------------------------------------------------------------------------------------------------------


def test_products_of_one_matrix_become_one():
    graph = build(lambda w, *xs: tuple(ops.tanh(ops.matmul(x, w)) for x in xs), (70, 70), *[(2, 70)] * 3)
    after = batch_products(graph)
    assert names(after).count("matmul") == 1 and names(after).count("getitem") == 3
    same_numbers(graph, after)


def test_products_that_are_results_become_one_and_are_copied():
    graph = build(lambda w, *xs: tuple(ops.matmul(x, w) for x in xs), (70, 70), *[(2, 70)] * 3)
    after = batch_products(graph)
    assert [names(after).count(name) for name in ("matmul", "getitem", "copy")] == [1, 3, 3]
    same_numbers(graph, after)


def test_two_products_of_one_matrix_stay():
    graph = build(lambda w, *xs: tuple(ops.tanh(ops.matmul(x, w)) for x in xs), (70, 70), *[(2, 70)] * 2)
    assert batch_products(graph) is graph


def test_a_sum_of_products_becomes_one_product():
    graph = build(lambda *xs: sum((ops.matmul(x, y, transa=True) for x, y in zip(xs[::2], xs[1::2])), start=0.0),
                  *[(2, 70)] * 6)
    after = batch_products(graph)
    assert names(after).count("matmul") == 1 and names(after).count("concat") == 2
    same_numbers(graph, after)


def test_weights_that_many_products_read_are_pretransposed():
    graph = build(lambda w, *xs: tuple(ops.tanh(ops.matmul(x, w, transb=True)) for x in xs), (40, 40), *[(8, 40)] * 4)
    after = pretranspose(graph)
    assert names(after).count("pretransposed") == 1 and not any(n.attrs["transb"] for n in after.nodes if n.op.name == "matmul")
    same_numbers(graph, after)
    few = build(lambda w, *xs: tuple(ops.tanh(ops.matmul(x, w, transb=True)) for x in xs), (40, 40), *[(8, 40)] * 3)
    assert pretranspose(few) is few


def scanned(step, state, stacks):
    """The graph of one ``scan`` over stacks.  step: gives the next state from the state and the items."""
    builder = Builder("forward")
    operands = [builder.input(python_scalar("py_int"), "n"), *(builder.input(t, "s") for t in state),
                *(builder.input(Stack(t), "items") for t in stacks)]
    body = Builder("body")
    with building(body):
        following = step(*[body.input(t, "x") for t in (*state, *stacks)])
    with building(builder):
        results = builder.add(OPS["scan"], operands, {"carried": len(state), "reads": len(stacks)}, (body.build(following),))
    return builder.build(tuple(results))


def test_a_scan_leaves_sums_of_products_to_one_product():
    rows, total = Tensor((2, 70), np.dtype("float64")), Tensor((70, 70), np.dtype("float64"))
    graph = scanned(lambda s, x, y: (s + ops.matmul(x, y, transa=True),), [total], [rows, rows])
    after = weight_gradients(graph)
    assert names(after).count("stack_product") == 1
    assert not any(node.op.name == "matmul" for loop in after.nodes for region in loop.regions for node in region.nodes)
    random = np.random.RandomState(0)
    inputs = (3, random.rand(70, 70), [random.rand(2, 70) for _ in range(3)], [random.rand(2, 70) for _ in range(3)])
    np.testing.assert_allclose(interpret(after, *inputs)[0], interpret(graph, *inputs)[0])


def test_a_scan_leaves_the_gradient_of_rows_behind_the_loop():
    """An iteration adds one row of zeros else: behind the loop, each row is added where it belongs, also one that comes twice."""
    row, total, number = Tensor((4,), np.dtype("float64")), Tensor((3, 4), np.dtype("float64")), python_scalar("py_int")
    graph = scanned(lambda s, x, k: (s + ops.scatter_at(ops.tanh(x), k, index=(AT,), shape=(3, 4)),), [total], [row, number])
    after = weight_gradients(graph)
    assert names(after).count("stack_scatter") == 1
    assert not any(node.op.name == "scatter_at" for node in after.walk())
    random = np.random.RandomState(0)
    for numbers in ([2, 0, 2], [-1, 1], []):
        inputs = (len(numbers), random.rand(3, 4), [random.rand(4) for _ in numbers], numbers)
        np.testing.assert_allclose(interpret(after, *inputs)[0], interpret(graph, *inputs)[0])
    with pytest.raises(IndexError):
        interpret(after, 1, random.rand(3, 4), [random.rand(4)], [3])


def test_a_sum_that_an_iteration_reads_stays():
    rows, total = Tensor((2, 70), np.dtype("float64")), Tensor((70, 70), np.dtype("float64"))
    graph = scanned(lambda s, x, y: (ops.tanh(s) + ops.matmul(x, y, transa=True),), [total], [rows, rows])
    assert weight_gradients(graph) is graph


def test_requires_grad_follows_the_iterations_that_ran():
    """Of ``a, b = b, c`` the last ``a`` requires a gradient through ``c`` only after two iterations."""
    kind = Tensor((3,), np.dtype("float64"))
    graph = scanned(lambda a, b, c: (b, ops.tanh(c), c), [kind, kind, kind], [])
    n, a, b, c = graph.inputs
    last_a, last_b, _ = graph.outputs
    after = [requires_grad_in_run(graph, [b, c], graph.outputs, {n: count}, deciding_values(graph)) for count in (0, 1, 2)]
    assert [last_a in of_c for _, of_c in after] == [False, False, True]
    assert [last_b in of_c for _, of_c in after] == [False, True, True]
    assert [last_a in of_b for of_b, _ in after] == [False, True, False]


def test_held_values_are_those_that_views_show():
    graph = build(lambda x: (ops.transpose(ops.tanh(x)), ops.exp(ops.sin(x))), (3, 4))
    held = held_values(graph, graph.outputs)
    assert {v for node in graph.nodes if node.op.name in ("tanh", "exp") for v in node.outputs} <= held
    assert not held.intersection(v for node in graph.nodes if node.op.name == "sin" for v in node.outputs)


# --- forward and backward ---------------------------------------------------------------------------------------------


def joint_of(function, *shapes):
    graph = build(function, *shapes)
    return graph, autodiff(graph, range(len(shapes)), range(len(graph.outputs)))


def test_partition_saves_what_the_backward_reads():
    graph, gradients = joint_of(lambda x: ops.sum(ops.tanh(ops.exp(x))), (3,))
    parts = partition_joint(gradients.graph, graph)
    assert [v.shape for v in parts.saved] == [(3,), (3,)] and parts.inputs == ()
    assert not {node.op.name for node in parts.backward.nodes} & {"tanh", "exp"}


def test_partition_recomputes_what_is_not_kept():
    graph, gradients = joint_of(lambda x: ops.sum(ops.tanh(ops.exp(x))), (3,))
    parts = partition_joint(gradients.graph, graph, kept=())
    assert parts.saved == () and parts.inputs == (0,)
    assert {"tanh", "exp"} <= {node.op.name for node in parts.backward.nodes}


def test_extract_takes_what_is_missing():
    graph = build(lambda x: ops.sin(ops.tanh(ops.exp(x))), (3,))
    middle = graph.nodes[0].outputs[0]
    part = extract(graph, (middle,))
    assert names(part) == ["tanh", "sin"] and part.inputs == (middle,)
    with pytest.raises(InternalError, match="was not kept"):
        extract(graph, ())


def test_cheap_recomputation_keeps_products_only():
    graph = build(lambda x, w: ops.sum(ops.tanh(ops.exp(ops.matmul(x, w)))), (8, 8), (8, 8))
    product, *rest = [v for node in graph.nodes for v in node.outputs][:3]
    saving = Saving(graph, (product, *rest), graph.inputs)
    assert saving.kept("none") is None and saving.kept("cheap") == {product}
    assert saving.kept(10 ** 9) is None


def test_recomputed_nodes_stand_before_their_readers_and_are_marked():
    graph = build(lambda x, g: ops.sin(g) * 2.0 + ops.tanh(x), (3,), (3,))
    x, g = graph.inputs
    late = schedule_late(graph, (g,))
    assert names(late).index("tanh") > names(late).index("sin")
    forward = build(lambda x: ops.tanh(x), (3,))
    node, = forward.nodes
    marked = mark_recomputed(forward, forward)
    assert marked.nodes[0].recomputed and not node.recomputed

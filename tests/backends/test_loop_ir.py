"""Loop nests as data: what shares one, what each sweep does, what is kept and shared; and that all of it is frozen."""
import dataclasses

import numpy as np
import pytest

from dy2static import ops
from dy2static.backends.loops.fuse import fuse
from dy2static.backends.loops.groups import Group
from dy2static.backends.loops.ir import Accumulate, Define, LoopNest, Recall
from dy2static.backends.loops.layout import Places
from dy2static.backends.loops.schedule import BLOCK, schedule
from dy2static.ir.building import Builder, building
from dy2static.ir.types import Tensor

pytestmark = pytest.mark.any_python


def graph(function, *shapes, dtype="float32"):
    """The graph of a function of arrays; inputs are called x, y, z."""
    builder = Builder()
    with building(builder):
        inputs = [builder.input(Tensor(shape, np.dtype(dtype)), name) for shape, name in zip(shapes, "xyz")]
        outputs = function(*inputs)
    return builder.build(outputs if isinstance(outputs, tuple) else (outputs,))


def fused(graph, large=None, vectors=False):
    """The run of all nodes of a graph, and where values are; large, vectors: as of `fuse`."""
    places = Places(lambda: "at")
    read_by = {}
    for node in graph.nodes:
        for value in node.inputs:
            read_by.setdefault(value, set()).add(node)
    for value in graph.outputs:
        read_by.setdefault(value, set()).add(None)
    return fuse(graph.nodes, places, read_by, large, vectors), places


def nests(graph, reorders=False):
    """The loop nests of a graph, and the names of nodes that stand alone; reorders: as of `schedule`."""
    run, places = fused(graph)
    return [schedule(part, places.of, run.needed.__contains__, reorders=reorders) if isinstance(part, Group) else part.op.name
            for part in run.parts if not isinstance(part, Group) or part.nodes]


def only(graph, reorders=False):
    (nest,) = nests(graph, reorders)
    assert isinstance(nest, LoopNest)
    return nest


def softmax(x):
    e = ops.exp(x - ops.max(x, axis=(1,), keepdims=True))
    return e / ops.sum(e, axis=(1,), keepdims=True)


def normalized(x):
    c = x - ops.sum(x, axis=(1,), keepdims=True)
    return c * ops.sum(c * c, axis=(1,), keepdims=True)


def over(axes, keepdims=False):
    return lambda x: ops.sum(ops.exp(x), axis=axes, keepdims=keepdims)


def turned(x, y):
    return ops.transpose(x, axes=(1, 0)) + y


def layer(x, y):
    return ops.tanh(ops.matmul(x, y)) + 1.0


# function, shapes of its inputs, its nest
PRINTED = {
    "elements of one shape run in one loop": (lambda x, y: ops.tanh(x + y) * x, [(3, 4), (3, 4)], """\
nest (3, 4)
sweep 0
    for j0 in 12:
        add = add(x[j0], y[j0])
        tanh = tanh(add)
        mul = mul(tanh, x[j0]) -> mul[j0]
"""),
    "what is repeated keeps its axis apart": (lambda x, y: ops.exp(x + y) * 2.0, [(3, 4), (4,)], """\
nest (3, 4)
sweep 0
    for j0 in 3:
        for j1 in 4:
            add = add(x[j0 * 4 + j1], y[j1])
            exp = exp(add)
            mul = mul(exp, constant) -> mul[j0 * 4 + j1]
"""),
    "a view costs nothing": (turned, [(3, 5), (5, 3)], """\
nest (5, 3)
sweep 0
    for j0 in 5:
        for j1 in 3:
            add = add(x[j0 + j1 * 5], y[j0 * 3 + j1]) -> add[j0 * 3 + j1]
"""),
    "softmax keeps what is dear in a row": (softmax, [(3, 5)], """\
nest (3, 5), rows from axis 1
keep exp: float32
for i0 in 3:
    sweep 0
        for j0 in 5:
            max max= x[i0 * 5 + j0]
    max done
    sweep 1
        for j0 in 5:
            sub = sub(x[i0 * 5 + j0], max)
            exp = exp(sub) -> row[j0]
            sum sum= exp
    sum done
    sweep 2
        for j0 in 5:
            exp = row of exp[j0] (again)
            div = div(exp, sum) -> div[i0 * 5 + j0]
"""),
    "what is cheap is computed again": (normalized, [(3, 5)], """\
nest (3, 5), rows from axis 1
for i0 in 3:
    sweep 0
        for j0 in 5:
            sum sum= x[i0 * 5 + j0]
    sum done
    sweep 1
        for j0 in 5:
            sub = sub(x[i0 * 5 + j0], sum)
            mul = mul(sub, sub)
            sum_1 sum= mul
    sum_1 done
    sweep 2
        for j0 in 5:
            sub = sub(x[i0 * 5 + j0], sum) (again)
            mul_1 = mul(sub, sum_1) -> mul_1[i0 * 5 + j0]
"""),
    "what is made of rows runs once for each": (lambda x: ops.sum(x, axis=(1,), keepdims=False) * 2.0, [(3, 4)], """\
nest (3, 4), rows from axis 1
for i0 in 3:
    sweep 0
        for j0 in 4:
            sum sum= x[i0 * 4 + j0]
    sum done
    mul = mul(sum, constant) -> mul[i0]
"""),
    "long rows are summed in blocks": (lambda x: ops.sum(x, axis=(1,), keepdims=False), [(2, 5000)], """\
nest (2, 5000), rows from axis 1
for i0 in 2:
    sweep 0 in blocks of 4096
        for j0 in 5000:
            sum sum= x[i0 * 5000 + j0]
    sum done -> sum[i0]
"""),
    "sums over the first axis grow in memory": (lambda x: ops.sum(x, axis=(0,), keepdims=False), [(3, 4)], """\
nest (3, 4)
total sum = sum
sweep 0
    for j0 in 3:
        for j1 in 4:
            sum[j1] sum= x[j0 * 4 + j1]
"""),
    "threads that share such sums have their own": (over((0,)), [(2000, 1000)], """\
nest (2000, 1000)
share j0 in 32 parts of 63, each with its sums
total sum = sum
sweep 0
    for j0 in 2000:
        for j1 in 1000:
            exp = exp(x[j0 * 1000 + j1])
            sum[j1] sum= exp
"""),
}


@pytest.mark.parametrize("function, shapes, text", PRINTED.values(), ids=PRINTED)
def test_printed(function, shapes, text):
    assert str(only(graph(function, *shapes))) == text


def test_what_is_no_loop_stands_alone():
    product, nest = nests(graph(layer, (3, 5), (5, 3)))
    assert product == "matmul"
    assert str(nest).splitlines()[3:] == ["        tanh = tanh(matmul[j0])", "        add = add(tanh, constant) -> add[j0]"]


def test_only_what_a_later_part_reads_is_in_memory():
    g = graph(layer, (3, 5), (5, 3))
    run, _ = fused(g)
    assert {value.name for value in run.needed} == {"x", "y", "matmul", "add"}
    assert [value.name for value in run.kept] == ["add"]


def test_groups_have_one_shape():
    """Different shapes do not share a loop, unless one is that of the other's rows."""
    run, _ = fused(graph(lambda x, y: (ops.exp(x), ops.exp(y), ops.sum(x, axis=(1,), keepdims=False) + y), (3, 4), (3,)))
    assert [(part.shape, [node.op.name for node in part.nodes]) for part in run.parts] == [
        ((3,), ["exp"]), ((3, 4), ["exp", "sum", "add"])]


def test_what_follows_short_rows_and_takes_long_is_a_loop_of_its_own():
    def norms(x):
        return ops.exp(-ops.sum(x * x, axis=(1,)))

    def parts(function, *shape):
        return [[node.op.name for node in part.nodes] for part in fused(graph(function, shape), vectors=True)[0].parts]
    assert parts(norms, 100, 5) == [["mul", "sum"], ["neg", "exp"]]
    assert parts(norms, 10, 5) == parts(norms, 100, 2000) == [["mul", "sum", "neg", "exp"]]
    assert parts(lambda x: ops.sqrt(ops.sum(x, axis=(1,))), 100, 5) == [["sum", "sqrt"]]
    assert parts(lambda x: x - ops.log(ops.sum(x, axis=(1,), keepdims=True)), 100, 5) == [["sum", "log", "sub"]]


def test_many_that_have_nothing_in_common_do_not_share_a_loop():
    run, _ = fused(graph(lambda x, y, z: tuple(op(v) for v in (x, y, z) for op in (ops.exp, ops.tanh)), (4,), (4,), (4,)))
    assert sorted(len(part.nodes) for part in run.parts) == [2, 4]


SCHEDULED = [nest for function, shapes, _ in PRINTED.values() for nest in nests(graph(function, *shapes))]


def statements(nest):
    for sweep in nest.sweeps:
        yield from sweep.before
        yield from sweep.body
    yield from nest.after


def test_large_ones_that_have_nothing_in_common_do_not_share_a_loop():
    """Steps that are alike are the same function then; what is joined in the end stays together."""
    def steps(x, y):
        return ops.tanh(x), softmax(y), ops.exp(x)

    made = graph(steps, (4, 5), (4, 5))
    assert [len(part.nodes) for part in fused(made)[0].parts] == [7]
    run, places = fused(made, large=20)
    apart = [schedule(part, places.of, run.needed.__contains__) for part in run.parts]
    assert [len(part.nodes) for part in run.parts] == [5, 2] and [len(nest.sweeps) for nest in apart] == [3, 1]
    assert [part.split for part in run.parts] == [1, None]
    assert [len(part.nodes) for part in fused(made, large=21)[0].parts] == [7]
    joined = graph(lambda x, y: ops.sigmoid(x) * ops.tanh(y), (4, 5), (4, 5))
    assert len(fused(joined, large=1)[0].parts) == 1



@pytest.mark.parametrize("nest", SCHEDULED, ids=range(len(SCHEDULED)))
def test_all_of_it_is_frozen(nest):
    for part in (nest, *nest.outer, *nest.inner, *nest.sweeps, *statements(nest), *nest.totals):
        name = dataclasses.fields(part)[0].name
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(part, name, None)
    hash(nest)


def branches(x, y, apart):
    """Nodes of x and nodes of y, of which later nodes read two each.  apart: a product stands between them."""
    a = ops.exp(x * 2.0)
    b = ops.neg(a * x + 1.0)
    c = ops.tanh(ops.matmul(b, y) if apart else y)
    return b * ops.sqrt(c + 1.0) + a * c


@pytest.mark.parametrize("size, apart, expected", [
    (256, False, ["group"]),
    (256, True, ["group", "matmul", "group"]),
    (8, False, ["group", "group"]),                     # so little memory between them: the steps of a loop, perhaps
])
def test_groups_that_later_nodes_connect_become_one(size, apart, expected):
    run, _ = fused(graph(lambda x, y: branches(x, y, apart), (size, size), (size, size)))
    assert ["group" if isinstance(part, Group) else part.op.name for part in run.parts] == expected


def test_a_few_steps_of_an_unrolled_loop_that_add_up_become_one():
    def total(x):
        products = [ops.matmul(x, x) for _ in range(20)]
        added = x
        for product in products:
            added = added + ops.tanh(ops.exp(product * 2.0) - 1.0) * 0.5
        return added
    run, _ = fused(graph(total, (256, 256)))
    sizes = [len(part.nodes) for part in run.parts if isinstance(part, Group)]
    assert sizes == [30, 30, 30, 30]        # nests of five steps each, which are compiled once


@pytest.mark.parametrize("nest", SCHEDULED, ids=range(len(SCHEDULED)))
def test_loops_cover_each_axis_once(nest):
    covered = [axis for loop in (*nest.outer, *nest.inner) for axis in loop.axes]
    assert covered == [axis for axis, size in enumerate(nest.shape) if size != 1]
    assert np.prod([loop.size for loop in (*nest.outer, *nest.inner)]) == np.prod(nest.shape)


@pytest.mark.parametrize("nest", SCHEDULED, ids=range(len(SCHEDULED)))
def test_addresses_use_loops_of_the_nest_and_stay_inside(nest):
    sizes = {loop.name: loop.size for loop in (*nest.outer, *nest.inner)}
    for statement in statements(nest):
        store = statement.store if isinstance(statement, Define) else None
        if store is not None:
            last = store.offset + sum((sizes[index] - 1) * stride for index, stride in store.terms)
            assert last < statement.value.type.size


@pytest.mark.parametrize("nest", SCHEDULED, ids=range(len(SCHEDULED)))
def test_sweeps_read_what_is_there(nest):
    """Elements are defined once, and later sweeps get them again; rows are read after the sweep that reduces them."""
    made, rows = set(), set()
    for sweep in nest.sweeps:
        here = set()
        for statement in sweep.body:
            if isinstance(statement, Recall):
                assert statement.value in made - here
            if isinstance(statement, Define):
                assert statement.value not in made
                made.add(statement.value)
            if not isinstance(statement, Accumulate):
                here.add(statement.value)
        assert all(reduction.value not in rows for reduction in sweep.reductions)
        rows |= {reduction.value for reduction in sweep.of_rows}
        assert not sweep.block or sweep.block == BLOCK < nest.inner[-1].size

"""The forms that kernels take by the shapes of their arrays: values against NumPy, the same bits in any order of threads."""
import re

import numpy as np
import pytest
from emulated_graphs import array, case, graph_of, results

from dy2static import ops, passes
from dy2static.backends.cuda import picks_first
from dy2static.backends.cuda.emit import REGION
from dy2static.backends.cuda.launches import updates
from dy2static.backends.cuda.launches.region import DeviceRegion
from dy2static.backends.cuda.nests import elements, lines, rows
from dy2static.backends.cuda.text import indices
from dy2static.ir.building import Builder, building
from dy2static.ir.graph import Graph
from dy2static.ir.types import Tensor
from dy2static.native import nvrtc
from dy2static.native.device_kernels import text_of
from dy2static.native.emulated import EmulatedDevice, missing
from dy2static.passes.in_place import Update

pytestmark = [pytest.mark.any_python, pytest.mark.skipif(bool(missing()), reason=missing())]

#: Functions of a matrix and a vector as long as its rows, and whether threads compute several elements of them.
ELEMENTWISE = {
    "contiguous": (lambda x, b: ops.tanh(x) * 2.0 + x, True),
    "offset": (lambda x, b: ops.exp(ops.getitem(x, index=(slice(1, None),))) - 1.0, True),
    "broadcast": (lambda x, b: x * b + b, True),
    "two dtypes": (lambda x, b: ops.where(x > 0.0, x, ops.cast(ops.cast(x * 4.0, dtype="int32"), dtype=x.dtype)), True),
    "one column": (lambda x, b: x * ops.getitem(x, index=(slice(None), slice(2, 3))), True),
    "transposed": (lambda x, b: ops.transpose(x, axes=(1, 0)) + 1.0, False),
    "odd rows": (lambda x, b: ops.getitem(x, index=(slice(None), slice(1, None))) * 0.5, False),
}


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
def test_vector_loads_give_the_same_bits(dtype, monkeypatch):
    arrays = array(7, 16, dtype=dtype), array(16, dtype=dtype, seed=1)
    ones = [case(function, *arrays) for function, _ in ELEMENTWISE.values()]
    monkeypatch.setattr(elements, "VECTORS", 1)
    several = [case(function, *arrays) for function, _ in ELEMENTWISE.values()]
    for one, other, (_, are_vectors) in zip(ones, several, ELEMENTWISE.values()):
        assert "dy_load" not in one.text and ("dy_store" in other.text) == are_vectors
    found = results(ones + several)
    for one, other in zip(found, found[len(ones):]):
        assert [x.tobytes() for x in one] == [x.tobytes() for x in other]


def test_vector_loads_where_addresses_are_not_aligned():
    """The kernel tests the addresses; elements that are left over are computed alone."""
    def function(x):
        return ops.getitem(x, index=(slice(1, None),)) * ops.getitem(x, index=(slice(None, -1),)) + 1.0
    few, many = (case(function, array(elements.VECTORS + more)) for more in (0, 4))
    assert "dy_load" not in few.text and "dy_load" in many.text
    results([many], orders=(0,))


def normalized(x):
    """What is kept for a later sweep: the difference is neither stored nor cheap."""
    y = ops.tanh(x)
    y = y - ops.mean(y, axis=(1,), keepdims=True)
    return y / ops.sqrt(ops.mean(y * y, axis=(1,), keepdims=True)), ops.sum(x, axis=(1,), keepdims=False)


#: Functions of a matrix of few long rows, and how many kernels they are.
LONG_ROWS = {
    "softmax": (lambda x: ops.softmax(x, axis=1), 3),
    "softmax of all": (lambda x: ops.softmax(ops.reshape(x, shape=(x.shape[0] * x.shape[1],)), axis=0), 3),
    "log softmax": (lambda x: ops.log_softmax(x, axis=1), 3),
    "sums": (lambda x: ops.sum(ops.exp(x), axis=(1,), keepdims=False) * 0.5, 2),
    "largest of all": (lambda x: ops.max(x, axis=(0, 1), keepdims=False), 2),
    "normalized": (normalized, 3),
}


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_few_long_rows_are_shared_by_blocks(dtype, monkeypatch):
    monkeypatch.setattr(rows, "SHARED_ROW", 600)
    monkeypatch.setattr(rows, "OWN", 300)
    cases = [case(function, array(3, 1000, dtype=dtype)) for function, _ in LONG_ROWS.values()]
    assert [len(one.region.function.steps) for one in cases] == [steps for _, steps in LONG_ROWS.values()]
    assert all(any(launch.blocks > 3 for launch in one.region.function.launches) for one in cases)
    results(cases)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_the_first_part_of_long_rows_stays_in_registers(dtype, monkeypatch):
    """The bits are those of rows that are read again; a number of loads that do not fill the last turn, and single elements."""
    monkeypatch.setattr(rows, "SHARED_ROW", 600)
    monkeypatch.setattr(rows, "_FEW", 0)
    found = []
    for words in (0, 4):
        monkeypatch.setattr(lines, "_WORDS", words)
        cases = [case(function, array(2, size, dtype=dtype)) for function, _ in LONG_ROWS.values() for size in (5000, 2333)]
        held = [one for one in cases if "[t][" in one.text]
        assert bool(held) == bool(words) and all("for (int k = " in one.text for one in held)
        found.append(results(cases))
    assert all(a.tobytes() == b.tobytes() for one, other in zip(*found) for a, b in zip(one, other))


@pytest.mark.skipif(not nvrtc.available(), reason="there is no NVRTC (python -m pip install nvidia-cuda-nvrtc)")
@pytest.mark.parametrize("architecture", ["sm_75", "sm_90"])
def test_rows_that_are_held_need_no_more_registers_than_there_are(architecture):
    """1024 threads have 64 registers each; those of a warp could have more, but fewer of them would run."""
    graphs = [graph_of(lambda x: ops.softmax(x, axis=1), [np.empty((rows, size), dtype)])
              for rows, size in ((512, 50000), (8192, 1001)) for dtype in (np.float32, np.float64)]
    kernels = [kernel for graph in graphs for kernel in DeviceRegion(graph).function.kernels]
    log = nvrtc.machine_code(text_of(kernels), architecture, ["--ptxas-options=-v"]).log
    assert set(re.findall(r"(\d+) bytes spill stores", log)) == {"0"}
    assert max(map(int, re.findall(r"Used (\d+) registers", log))) <= 64


#: Shapes, the axes that are summed, and how many kernels there are: one where each result is one block's, or one thread's.
SUMS = [((700, 3), (0,), 1), ((9000, 3), (0,), 2), ((5, 200, 40), (1,), 2), ((3000, 40), (0,), 2), ((100, 7, 40), (0, 2), 1),
        ((3000, 2, 40), (0, 2), 2), ((5, 6, 7), (1,), 1), ((4, 3, 2), (0, 2), 1), ((2000, 2, 3, 2), (0, 2), 2)]


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
def test_sums_over_other_loops_than_those_of_rows(dtype):
    """With a second reduction, and elements that are stored on the way."""
    def function(axis):
        return lambda x: (ops.sum(x * x, axis=axis, keepdims=False), ops.max(x, axis=axis, keepdims=True), x + x)
    cases = [case(function(axis), array(*shape, dtype="float32").astype(dtype)) for shape, axis, _ in SUMS]
    assert [len({launch.kernel for launch in one.region.function.launches}) for one in cases] == [
        2 * steps - 1 for _, _, steps in SUMS]
    results(cases)


#: Functions of an array of two or three axes that read it along another axis than the last, and how many arrays are turned.
TURNED = {
    "a matrix": ((40, 70), lambda x: ops.exp(ops.transpose(x, axes=(1, 0))), 1),
    "even": ((64, 32), lambda x: ops.transpose(x, axes=(1, 0)) * 2.0, 1),
    "inside": ((3, 40, 33), lambda x: ops.transpose(x, axes=(0, 2, 1)) + 1.0, 1),
    "first and last": ((17, 3, 40), lambda x: ops.transpose(x, axes=(2, 1, 0)) + 1.0, 1),
    "beside one that is not": ((48, 48), lambda x: ops.transpose(x, axes=(1, 0)) * x, 1),
    "copied": ((40, 70), lambda x: ops.transpose(x, axes=(1, 0)), 1),
    "short": ((5, 70), lambda x: ops.transpose(x, axes=(1, 0)) * 2.0, 0),
}


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_transposed_arrays_are_turned_by_blocks(dtype, monkeypatch):
    monkeypatch.setattr(indices, "FEWEST_IN_TILES", 1)
    cases = [case(function, array(*shape, dtype=dtype)) for shape, function, _ in TURNED.values()]
    assert [one.text.count("DY_SHARED") for one in cases] == [count for _, _, count in TURNED.values()]
    results(cases)


def totals(x):
    """Rows, and sums of columns and of all."""
    y = ops.softmax(x, axis=1)
    y = y - ops.max(y, axis=(1,), keepdims=True)
    return y, ops.sum(y, axis=(0,), keepdims=False), ops.sum(y * x, axis=(0, 1), keepdims=False)


@pytest.mark.parametrize("dtype, most, are_held", [("float32", 32, True), ("float16", 32, True), ("float32", 1, False)])
def test_rows_and_totals_in_registers(dtype, most, are_held, monkeypatch):
    """Rows of one and several turns of a thread, of a number that is no multiple of those of a load, and of warps."""
    monkeypatch.setattr(rows, "_MANY", 6)
    monkeypatch.setattr(lines, "_TURNS", most)
    sizes = [(3, 8), (2, 1028), (2, 515), (7, 300), (6, 1001)]
    cases = [case(function, array(*size, dtype=dtype)) for size in sizes for function in (totals, normalized)]
    assert all(("[t][" in one.text) == are_held for one in cases)
    results(cases)


def gradient_of_rows(x):
    """What the gradient of a normalization is like: sums of rows, and sums of columns before and behind them."""
    y = x - ops.mean(x * x, axis=(1,), keepdims=True)
    z = ops.tanh(y) * ops.sum(y, axis=(1,), keepdims=True)
    return z, *[ops.sum(part, axis=(0,), keepdims=False) for part in (x, y * x, z)]


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
def test_blocks_with_sums_of_columns_go_over_several_rows_at_once(dtype):
    """Teams of one and several warps, with elements to spare; sums of one size are added up by one kernel."""
    sizes = [(40, 33), (100, 8), (9, 512), (70, 250), (26, 1024)]
    cases = [case(gradient_of_rows, array(*size, dtype=dtype)) for size in sizes]
    for one in cases:
        assert "dy_reduce_over_teams" in one.text and one.text.count("which ==") in (0, 4)
    assert sum("which ==" in one.text for one in cases) >= 3
    results(cases)


def test_ranges_are_computed_where_they_are_read():
    def function(x):
        places = ops.arange(start=3, stop=3 + 2 * x.shape[1], step=2, dtype="int32")
        return ops.where(ops.equal(ops.broadcast_to(places, shape=x.shape), 7), x, 0.0), ops.sum(places, axis=(0,), keepdims=False)
    one = case(function, array(5, 6))
    assert len(one.region.function.launches) == 2
    results([one])


def loss_of_labels(x, bias, labels):
    scores = ops.log_softmax(x + ops.broadcast_to(bias, shape=x.shape), axis=1)
    return ops.take_along(scores, labels, axis=1), ops.exp(scores)


def test_few_elements_are_picked_of_what_results_are_made_of(monkeypatch):
    """The kernel of the rows need not store what one element of each row is picked of."""
    arrays = array(7, 40), array(40, seed=1), np.arange(7).reshape(7, 1) * 5
    cases, picked = [], []
    for least in (picks_first._LEAST, 1):
        monkeypatch.setattr(picks_first, "_LEAST", least)
        cases.append(case(loss_of_labels, *arrays))
        graph = passes.run(REGION, cases[-1].graph)
        picked.append([node.inputs[0] in graph.inputs for node in graph.nodes if node.op.name == "take_along"])
    found = results(cases)
    assert picked == [[False], [True]] and [a.tobytes() for a in found[0]] == [a.tobytes() for a in found[1]]


def scaled(x):
    """A number of each row is read by several sweeps, and behind them."""
    scale = ops.getitem(x, index=(slice(None), slice(0, 1)))
    total = ops.sum(x * scale, axis=(1,), keepdims=True)
    rest = ops.sum(ops.tanh(x - total) * scale, axis=(1,), keepdims=True)
    return rest * scale, x * scale * rest


def test_numbers_of_rows_beside_registers():
    results([case(scaled, array(*shape)) for shape in [(5, 7), (5, 8), (1, 7)]])


def test_kernels_for_parts_of_an_array_have_one_text():
    """Where a part begins is an argument: the steps of an unrolled loop are launches of one kernel."""
    rows = np.arange(12).reshape(4, 3)
    one = case(lambda x, rows: tuple([ops.take(x, ops.getitem(rows, index=(k,)), axis=0) for k in range(1, 4)]), array(12, 5), rows)
    assert len(one.kernels) == 1 and [launch.numbers for launch in one.region.function.launches] == [(3,), (6,), (9,)]
    results([one])


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_updates_load_several_elements_at_a_time(dtype, monkeypatch):
    """Of arrays that are aligned and not, in one launch; what is behind them stays."""
    monkeypatch.setattr(updates, "current_stream", lambda: 0)
    inner = Builder("update")
    w, g = [inner.input(Tensor((4,), np.dtype(dtype)), name) for name in "wg"]
    with building(inner):
        new = w - g
    region = updates.UpdateRegion(Update(Graph((w, g), (new,), tuple(inner.nodes), "update"), (0,), (0,)), tuple(range(6)))
    device = EmulatedDevice(order=2)
    call = region.bind(device, device.load([region.kernel])).call
    wholes, operands = [], []
    for size, begin in ((1, 0), (7, 0), (1024, 0), (1027, 3), (2050, 1), (0, 0)):
        wholes.append([array(size + begin + 5, dtype=dtype) for _ in "wg"])
        operands.append([whole[begin:begin + size] for whole in wholes[-1]])
    wanted = [[w.copy() for w, _ in wholes], [w - g for w, g in operands]]
    call(*[operand for pair in operands for operand in pair])
    for (whole, _), (changed, _), before, after in zip(wholes, operands, *wanted):
        assert np.array_equal(changed, after)
        first = (changed.ctypes.data - whole.ctypes.data) // whole.itemsize
        assert np.array_equal(whole[:first], before[:first]) and np.array_equal(whole[first + changed.size:], before[first + changed.size:])
    assert device.launched == 1 and f"e0[{2 if dtype == 'float64' else 4}]" in region.kernel.text


def doubled(x):
    return ops.tanh(x) * 2.0


def joined_again(x, b):
    inner = ops.concat(ops.exp(x), ops.tanh(x), axis=0)
    return ops.sum(ops.concat(inner, doubled(x), axis=0), axis=(1,)), ops.sum(inner, axis=(0,))


#: Functions of two arrays of 4 x 8, whose results are sums over joined arrays, with their steps: those of the same without a join, and
#: those that copy.
JOINED = {
    "in place": (lambda x, b: ops.sum(ops.concat(ops.sum(x, axis=(0,), keepdims=True), doubled(b), axis=0), axis=(1,)), 0),
    "joined twice": (joined_again, 0),
    "twice the same": (lambda x, b: (lambda y: ops.sum(ops.concat(y, y, axis=0), axis=(1,)))(ops.matmul(x, b, transb=True)), 1),
    "inputs": (lambda x, b: ops.sum(ops.concat(x, b, axis=0), axis=(1,)), 1),
    "a result": (lambda x, b: ops.concat(doubled(x), ops.exp(b), axis=0), 1),
    "also a result": (lambda x, b: (lambda y: (y, ops.sum(ops.concat(y, ops.exp(b), axis=0), axis=(1,))))(doubled(x)), 1),
    "side by side": (lambda x, b: ops.sum(ops.concat(doubled(x), ops.exp(b), b, axis=1), axis=(0,)), 1),
    "stacked": (lambda x, b: ops.sum(ops.stack(doubled(x), ops.exp(b), axis=0), axis=(1,)), 0),
    "stacked inside": (lambda x, b: ops.sum(ops.stack(doubled(x), ops.exp(b), x, axis=2), axis=(0,)), 1),
    "all inside": (lambda x, b: ops.sum(ops.stack(doubled(x), ops.exp(b), axis=2), axis=(0,)), 0),
    "in columns": (lambda x, b: ops.sum(ops.concat(doubled(x), ops.exp(b), axis=1), axis=(0,)), 0),
    "in rows": (lambda x, b: ops.sum(ops.concat(ops.softmax(x, axis=1), ops.exp(b), axis=1), axis=(0,)), 0),
    "twice inside": (lambda x, b: (lambda y: ops.sum(ops.stack(y, ops.exp(b), y, axis=2), axis=(0,)))(doubled(x)), 1),
    "of joined": (lambda x, b: ops.sum(ops.concat(ops.stack(doubled(x), ops.exp(b), axis=2), ops.stack(b, ops.tanh(x), axis=2), axis=0)), 1),
    "read again": (lambda x, b: (lambda y: ops.sum(ops.stack(y, ops.exp(b), axis=2) + ops.reshape(y, shape=(4, 8, 1))))(doubled(x)), 1),
    "copied": (lambda x, b: ops.sum(ops.concat(ops.reshape(ops.transpose(ops.reshape(ops.exp(x), shape=(4, 2, 4)), axes=(0, 2, 1)),
                                                           shape=(4, 8)), ops.exp(b), axis=1), axis=(0,)), 0),
    "not aligned": (lambda x, b: ops.sum(ops.concat(ops.sum(x, axis=(1,)), ops.getitem(ops.sum(b, axis=(1,)), index=(slice(1, None),)),
                                                    ops.sum(ops.exp(b), axis=(1,)), axis=0)), None),
    "many": (lambda x, b: ops.sum(ops.concat(*[(x, b)[k % 2] for k in range(11)], axis=0), axis=(1,)), 2),
    "a view": (lambda x, b: ops.sum(ops.concat(ops.reshape(doubled(x), shape=(2, 16)), ops.reshape(b, shape=(2, 16)), axis=0)), 1),
    "turned": (lambda x, b: ops.sum(ops.concat(ops.transpose(x, axes=(1, 0)), ops.transpose(doubled(b), axes=(1, 0)), axis=1),
                                    axis=(0,)), 2),
}


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_operands_of_joins_are_made_in_place(dtype):
    cases = [case(function, array(4, 8, dtype=dtype), array(4, 8, dtype=dtype)) for function, _ in JOINED.values()]
    results(cases)
    for name, one in zip(JOINED, cases):
        copies = JOINED[name][1]
        found = [nodes for nodes in one.region.function.origins if nodes[0].op.name in ("concat", "stack")]
        assert copies is None or len(found) == copies, name


def test_arrays_that_are_joined_need_no_further_memory():
    """What is joined lives as long as the result, and where it stands."""
    one = case(lambda x: ops.sum(ops.concat(*[ops.tanh(x * float(k)) for k in range(1, 6)], axis=0), axis=(1,)), array(64, 64))
    assert one.region.scratch == 5 * 64 * 64 * 4
    results([one])


def gates(x, b):
    """As an LSTM has them: parts of sums, side by side in threes."""
    parts = ops.reshape(ops.tanh(x) + b, shape=(4, 4, 2))
    first, second = [ops.getitem(parts, index=(slice(None), slice(None), k)) for k in range(2)]
    return ops.sigmoid(first) * second, ops.exp(second)


def halves(x, b):
    left, right = ops.split(x * 2.0 + b, sizes=(3, 5), axis=1)
    return ops.exp(left), ops.tanh(right) + 1.0


def each_line(x, b):
    return tuple([ops.exp(row) * float(k) for k, row in enumerate(ops.unstack(x * b, axis=0))])


def twice(x, b):
    y = x * b + 1.0
    return ops.exp(ops.getitem(y, index=(slice(0, 3),))) + ops.tanh(ops.getitem(y, index=(slice(1, 4),)))


def summed(x, b):
    y = x * b + 1.0
    return ops.exp(ops.getitem(y, index=(slice(0, 2),))), ops.sum(ops.getitem(y, index=(slice(2, 4),)), axis=(1,))


def given(x, b):
    y = x * b + 1.0
    return y, ops.exp(ops.getitem(y, index=(slice(0, 2),)))


def kept(x, b):
    """What the sums are made of is needed as a whole, too: views would need memory for it."""
    y = ops.tanh(x)
    return ops.exp(ops.getitem(y + b, index=(slice(0, 2),))), y * 2.0


def turned(x, b):
    y = ops.transpose(x, axes=(1, 0)) * 2.0
    return ops.exp(ops.getitem(ops.reshape(y, shape=(32,)), index=(slice(0, 8),))) + ops.getitem(b, index=(slice(None),))


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_what_is_read_in_parts_is_computed_in_parts(dtype):
    """No array is made that only parts are read of; it is made where parts overlap, or where something else reads it."""
    functions = {gates: False, halves: False, each_line: False, twice: True, summed: True, given: True, kept: True, turned: True}
    cases = [case(function, array(4, 8, dtype=dtype), array(8, dtype=dtype)) for function in functions]
    for one, (function, is_made) in zip(cases, functions.items()):
        pieces = len(one.region.function.pieces)
        assert bool(pieces) == (is_made and function is not given), function.__name__
    results(cases)

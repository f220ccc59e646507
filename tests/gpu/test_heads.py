"""Products of attention heads: read and written where the heads are, through tables of addresses."""
import numpy as np
import pytest
from emulated_graphs import array, case, results

from dy2static import ops
from dy2static.backends.cuda.program.steps import Product, Scattered
from dy2static.check_gpu.samples import kernels_of
from dy2static.native import launcher
from dy2static.native.emulated import EmulatedDevice, missing

pytestmark = [pytest.mark.any_python, pytest.mark.skipif(bool(missing()), reason=missing())]


def split(x, heads):
    """Attention heads: (sequences, length, units) as (sequences, heads, length, units of a head)."""
    n, length, units = x.shape
    return ops.transpose(ops.reshape(x, shape=(n, length, heads, units // heads)), axes=(0, 2, 1, 3))


def merged(x):
    """The other way round."""
    n, heads, length, units = x.shape
    return ops.reshape(ops.transpose(x, axes=(0, 2, 1, 3)), shape=(n, length, heads * units))


def product(a, b, turned=False):
    return ops.matmul(a, b, transa=False, transb=turned)


#: Functions of arrays (2, 6, 12) in three heads, how many tables of addresses they need, and how many copies.
HEADS = {
    "both operands": (lambda q, k: product(split(q, 3), split(k, 3), True), 1, 0),
    "one operand": (lambda q, k: product(ops.reshape(ops.exp(q), shape=(2, 3, 6, 4)), split(k, 3), True), 1, 0),
    "the result": (lambda q, k: ops.exp(merged(product(ops.tanh(product(split(q, 3), split(k, 3), True)), split(k, 3)))), 2, 0),
    "results side by side": (lambda q, k: ops.exp(ops.concat(*[merged(product(ops.tanh(product(
        split(x, 3), split(k, 3), True)), split(k, 3))) for x in (q, k)], axis=2)), 4, 0),
    "the result is also read": (lambda q, k: (lambda y: (merged(y), ops.exp(y)))(
        product(ops.tanh(product(split(q, 3), split(k, 3), True)), split(k, 3))), 2, 1),
    "one sequence": (lambda q, k: product(split(ops.getitem(q, index=((0, 1, 1),)), 3), split(ops.getitem(k, index=((0, 1, 1),)), 3), True),
                     0, 0),
    "not aligned": (lambda q, k: product(split(q, 4), split(k, 4), True), 0, 2),
    "turned": (lambda q, k: product(ops.transpose(split(q, 3), axes=(0, 1, 3, 2)), split(k, 3)), 1, 0),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_heads_are_read_and_written_where_they_are(dtype):
    """No operand is copied to put its matrices equally far apart, nor a result to put heads side by side."""
    cases = [case(function, array(2, 6, 12, dtype=dtype), array(2, 6, 12, dtype=dtype, seed=1)) for function, _, _ in HEADS.values()]
    found = results(cases)
    for name, one in zip(HEADS, cases):
        _, tables, copies = HEADS[name]
        steps = one.region.function.steps
        assert sum(isinstance(step, Scattered) for step in steps) == tables, name
        assert sum(nodes[0].op.name in ("matmul", "reshape") and not isinstance(step, (Product, Scattered))
                   for step, nodes in zip(steps, one.region.function.origins)) == tables + copies, name
    assert len(found) == len(HEADS)


def scores(q, k):
    return ops.exp(product(split(q, 3), split(k, 3), True))


def test_addresses_that_move_are_in_the_table():
    """Launched, replayed as a graph, and set anew: only the kernel that writes the table is given other addresses."""
    one, device = case(scores, array(2, 6, 12), array(2, 6, 12, seed=1)), EmulatedDevice()
    one.region.load(device, device.load(kernels_of([one])))
    places = [np.array(x) for x in one.operands]
    out, scratch = np.zeros((2, 3, 6, 6), np.float32), np.zeros(one.region.scratch, np.uint8)
    for turn in range(5):
        if turn == 3:
            places = [np.array(x[::-1]) for x in places]                # other memory
        out[...] = 77
        one.region.call(*places, out, scratch)
        heads = [x.reshape(2, 6, 3, 4).transpose(0, 2, 1, 3) for x in places]
        np.testing.assert_allclose(out, np.exp(heads[0] @ heads[1].swapaxes(2, 3)), rtol=1e-5)
    counts = one.region.runs[0].region.counts
    assert counts.replayed == 4 and counts.built == 1 and device.state.patches == 1


def test_operands_that_are_not_aligned_are_copied():
    """The emulated cuBLAS loads 16 bytes at a time from addresses in a table."""
    one, device = case(scores, array(2, 6, 12), array(2, 6, 12, seed=1)), EmulatedDevice()
    one.region.load(device, device.load(kernels_of([one])))
    out, wanted = [np.zeros((2, 3, 6, 6), np.float32) for _ in range(2)]
    memory = np.zeros(2 * 6 * 12 + 1, np.float32)
    place = memory[1:].reshape(2, 6, 12)
    place[...] = one.operands[0]
    for given, result in ((one.operands[0], wanted), (place, out)):
        one.region.call(given, one.operands[1], result, np.zeros(one.region.scratch, np.uint8))
    assert place.ctypes.data % 16 and np.array_equal(out, wanted)


def test_without_cublas_products_are_calls(monkeypatch):
    one, device = case(scores, array(2, 6, 12), array(2, 6, 12, seed=1)), EmulatedDevice()
    monkeypatch.setattr(device.launcher(), "kinds", device.launcher().kinds - launcher.OF_CUBLAS)
    assert not one.difference(one.run(device, device.load(kernels_of([one])))) and device.state.products == 0

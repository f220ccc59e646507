"""Kernels for items that go to places by arrays of indices: both forms have the bits of NumPy's sums, in any order of threads."""
import numpy as np
import pytest
from emulated_graphs import array, case, results

from dy2static import ops
from dy2static.backends.cuda.kernels import scatter
from dy2static.ir.template import AT
from dy2static.native.emulated import missing

pytestmark = [pytest.mark.any_python, pytest.mark.skipif(bool(missing()), reason=missing())]


def indices(size, *shape):
    """Indices of an axis, also negative ones; some come often."""
    random = np.random.RandomState(size)
    return np.where(random.rand(*shape) < 0.3, size - 1, random.randint(-size, size, shape)).astype(np.int32)


#: Sums that begin with zeros: of an operand, by indices.
SUMS = {
    "rows": (lambda x, i: ops.scatter_add(x, i, axis=0, shape=(40, 70)), (300, 70), (40, 300)),
    "indices of two axes": (lambda x, i: ops.scatter_add(x, i, axis=1, shape=(3, 8, 6)), (3, 60, 5, 6), (8, 60, 5)),
    "one column": (lambda x, i: ops.scatter_add(x, i, axis=0, shape=(9,)), (600,), (9, 600)),
    "two blocks for an item": (lambda x, i: ops.scatter_add(x, i, axis=0, shape=(5, 1500)), (20, 1500), (5, 20)),
    "last axis": (lambda x, i: ops.scatter_add(x, i, axis=1, shape=(7, 30)), (7, 300), (30, 300)),
    "one place": (lambda x, i: ops.scatter_add(x, i, axis=0, shape=(1, 33)), (200, 33), (1, 200)),
    "a column of indices": (lambda x, i: ops.scatter_add(x, ops.getitem(i, index=(slice(None), 1)), axis=0, shape=(8, 6)),
                            (300, 6), (8, 300, 2)),
    "turned": (lambda x, i: ops.scatter_add(ops.transpose(x, axes=(1, 0)), i, axis=0, shape=(8, 6)), (6, 300), (8, 300)),
    "of lines": (lambda x, i: ops.add_along(x, i, axis=1, size=30), (7, 300), (30, 7, 300)),
}

#: What goes to an array of a shape: items of a shape, by indices.
WRITES = {
    "rows": ((80, 6), (300, 6), [(80, 300)], (AT,)),
    "two axes": ((80, 6), (300,), [(80, 300), (6, 1)], (AT, AT)),
    "broadcast together": ((8, 9, 6), (20, 4, 6), [(8, 20, 1), (9, 4)], (AT, AT)),
    "apart": ((8, 9, 6), (20, 4, 3), [(8, 20, 1), (6, 4)], (AT, slice(7, 1, -2), AT)),
    "behind a slice": ((8, 9, 6), (4, 3, 20, 1, 6), [(9, 3, 20)], (slice(1, 8, 2), AT, None)),
    "beside a number": ((8, 9, 6), (20, 6), [(8, 20)], (AT, 2)),
}


def cases_of(dtype):
    def numbers(*shape):
        return (array(*shape) * 9).astype(dtype)
    found = [case(function, numbers(*shape), indices(*taken)) for function, shape, taken in SUMS.values()]
    for op in (ops.add_at, ops.put):
        found += [case(lambda x, y, *i, op=op, index=index: op(x, y, *i, index=index), numbers(*shape), numbers(*items),
                       *[indices(*one) for one in taken]) for shape, items, taken, index in WRITES.values()]
    return found


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
def test_blocks_for_items_give_the_bits_of_elements_that_look_at_all(dtype, monkeypatch):
    """In float32 these are the bits of NumPy's, which adds one item after the other."""
    monkeypatch.setattr(scatter, "_FEW", 10 ** 6)
    by_elements = cases_of(dtype)
    monkeypatch.setattr(scatter, "_FEW", 0)
    by_items = cases_of(dtype)
    assert not any("dy_is_among" in one.text for one in by_elements) and all("dy_is_among" in one.text for one in by_items)
    found = results(by_elements + by_items)
    for one, elements, items in zip(by_items, found, found[len(by_items):]):
        assert elements[0].tobytes() == items[0].tobytes()
        assert dtype == "float16" or items[0].tobytes() == np.asarray(one.expected[0]).tobytes()


def test_indices_out_of_range_wrap():
    """As CuPy's do."""
    wide = np.arange(-1000, 1000, 7, dtype=np.int64)
    for few in (wide[:20], wide):
        one = case(lambda x, i: ops.scatter_add(x, i, axis=0, shape=(6, 4)), array(len(few), 4), few % 6)
        one.operands = one.operands[0], few
        results([one])


def test_which_form_is_taken():
    """Blocks for items where each element would look at many."""
    few = case(SUMS["rows"][0], array(100, 70), indices(40, 100))
    many = case(lambda x, i: ops.scatter_add(x, i, axis=0, shape=(8000, 512)), array(100, 512), indices(8000, 100))
    assert "dy_is_among" not in few.text and len(few.region.function.steps) == 1
    (_, launch) = many.region.function.steps
    assert "dy_is_among" in many.text and (launch.blocks, launch.threads) == (100, 128)

"""The forms that kernels take by the shapes of their arrays: values against NumPy, the same bits in any order of threads."""
import pytest
from emulated_graphs import array, case, results

from dy2static import ops
from dy2static.backends.cuda import nest_elements
from dy2static.native.emulated import missing

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())

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
    ones = [case(function, *arrays, number=number) for number, (function, _) in enumerate(ELEMENTWISE.values())]
    monkeypatch.setattr(nest_elements, "VECTORS", 1)
    several = [case(function, *arrays, number=number) for number, (function, _) in enumerate(ELEMENTWISE.values(), len(ones))]
    for one, other, (_, are_vectors) in zip(ones, several, ELEMENTWISE.values()):
        assert "dy_load" not in one.text and ("dy_store" in other.text) == are_vectors
    found = results(ones + several)
    for one, other in zip(found, found[len(ones):]):
        assert [x.tobytes() for x in one] == [x.tobytes() for x in other]


def test_vector_loads_where_addresses_are_not_aligned():
    """The kernel tests the addresses; elements that are left over are computed alone."""
    def function(x):
        return ops.getitem(x, index=(slice(1, None),)) * ops.getitem(x, index=(slice(None, -1),)) + 1.0
    few, many = (case(function, array(nest_elements.VECTORS + more)) for more in (0, 4))
    assert "dy_load" not in few.text and "dy_load" in many.text
    results([many], orders=(0,))

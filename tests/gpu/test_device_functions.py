"""The kernels of graphs: sums over many blocks, and the width of indices."""
import numpy as np
import pytest

from dy2static.backends.cuda.emit import write
from dy2static.backends.cuda.program.steps import Launch
from dy2static.ir.building import Builder, building
from dy2static.ir.op import OPS
from dy2static.ir.types import Tensor

pytestmark = pytest.mark.any_python


def test_sums_by_many_blocks_are_added_up_in_their_order():
    builder = Builder("columns")
    x = builder.input(Tensor((15000, 64), np.dtype("float32")), "x")
    with building(builder):
        graph = builder.build(builder.add(OPS["sum"], (x,), {"axis": 0}))
    function = write(graph)
    first, second = function.steps
    assert isinstance(first, Launch) and first.blocks > 100 and second.blocks == 8
    assert "atomic" not in first.kernel + "".join(kernel.text for kernel in function.kernels)


@pytest.mark.parametrize("shape, type", [((1 << 16, 1 << 13), "int"), ((1 << 16, 1 << 14), "int64_t")], ids=str)
@pytest.mark.parametrize("op, attrs", [("exp", {}), ("sum", {"axis": 1}), ("sum", {"axis": 0})], ids=str)
def test_indices_are_wide_where_there_are_many_elements(op, attrs, shape, type):
    builder = Builder("large")
    x = builder.input(Tensor(shape, np.dtype("float32")), "x")
    with building(builder):
        graph = builder.build(builder.add(OPS[op], (x,), attrs))
    assert f"    const {type} " in write(graph).kernels[0].text

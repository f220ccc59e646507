"""Arrays of several sizes by a decision: joined as objects, out of which comes an array whose size only the run knows."""
from __future__ import annotations

from dataclasses import replace
from typing import Any, Callable, List, Sequence, Tuple

from ..ir.building import building, new_extent
from ..ir.dims import Dim
from ..ir.graph import Value
from ..ir.types import Dynamic, Tensor
from ..lowering.host import numpy_call, sized_call
from ..runtime.functions import itself
from ..runtime.host_calls import Call, Hole, as_it_is
from ..symbolic.values import SymbolicArray
from .branches import Branch
from .protocols import Joins


def differ_in_size(a: Any, b: Any) -> bool:
    """Whether these are arrays that have one dtype and one number of dimensions."""
    return all(type(x) is SymbolicArray and not x.is_scalar for x in (a, b)) and a.dtype == b.dtype and a.ndim == b.ndim


def merge_sizes(joins: Joins, a: SymbolicArray, b: SymbolicArray, branches: List[Branch]) -> Callable[[Sequence[Value]], Any]:
    """How to make, from the outputs of the node, the array that is ``a`` or ``b``."""
    known = branches[0].merged.get((id(a), id(b)))
    if known is not None:
        return known
    types = a.type, b.type
    index = joins.output(branches, *[_packed(joins, x, branch) for x, branch in zip((a, b), branches)])
    made: List[SymbolicArray] = []

    def merged(outputs: Sequence[Value]) -> SymbolicArray:
        if not made:
            made.append(_unpacked(joins, outputs[index], *types))
        return made[0]
    branches[0].merged[id(a), id(b)] = merged
    return merged


def _packed(joins: Joins, array: SymbolicArray, branch: Branch) -> Value:
    """The array as an object, at the end of the branch."""
    value = branch.value_of(array)
    builder = joins.capture.builder.region()
    with building(builder):
        found, = builder.add(numpy_call, (value,), {"call": _call(), "types": (Dynamic(),)}, name=value.name)
    branch.nodes += builder.nodes
    return found


def _unpacked(joins: Joins, packed: Value, a: Tensor, b: Tensor) -> SymbolicArray:
    """The array that the object is; each axis along which the two differ gets a symbol."""
    shape: List[Any] = []
    extents: List[Tuple[str, int, int]] = []
    first = new_extent()
    for axis, (n, m) in enumerate(zip(a.shape, b.shape)):
        if n == m:
            shape.append(n)
            continue
        size = Dim(f"{first}" + f"_{len(extents)}" * bool(extents))
        extents.append((str(size), 0, axis))
        shape.append(size)
    attrs = {"call": _call(), "types": (replace(a, shape=tuple(shape)),), "extents": tuple(extents)}
    value, = joins.capture.builder.add(sized_call, (packed,), attrs, name="joined")
    return SymbolicArray(joins.capture, value)


def _call() -> Call:
    return Call(itself, (Hole(0),), {}, as_it_is, "itself", True)

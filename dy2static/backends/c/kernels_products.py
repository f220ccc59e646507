"""Matrix products: operands are read where they are, also turned, or in the views that split heads."""
from __future__ import annotations

import math
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from ...ir.c_forms import c_type
from ...ir.dims import Size, is_known
from ...ir.graph import Node, Value
from ...ir.size_bounds import at_least_one, not_below
from ...native import products
from ..loops.fuse import Run
from ..loops.groups import nodes_of
from ..loops.layout import compact_strides, place_of, strides_in
from ..loops.parallelize import Level, cut
from .emitter import Emitter, Rule

#: Nanoseconds of a multiplication in a product.
MULTIPLICATION = 0.01

#: So many products of one op are shared whole, fewer large ones each for itself.
_MANY = 8


class Matrix(NamedTuple):
    """Matrices that a product reads.

    first: a pointer to the first of them.  turned: whether they are read as they stand in memory, or transposed.  distance: from
one row in memory to the next.  steps: for axes of the stack, how many matrices come behind one index, its size (0: no limit), its
    stride.
    """

    first: str
    turned: int
    distance: Size
    steps: Tuple[Tuple[Size, Size, Size], ...]

    def at(self, index: str, row: str = "", column: str = "") -> str:
        """A pointer to one of them, from this row or this column of the operand on."""
        terms = [self.first]
        for after, size, stride in self.steps:
            place = index if after == 1 else f"{index} / ({after})"
            terms.append(f"({place} % {size}) * {stride}" if size else f"{place} * {stride}")
        if row:
            terms.append(row if self.turned else f"{row} * {self.distance}")
        if column:
            terms.append(f"{column} * {self.distance}" if self.turned else column)
        return " + ".join(terms)


def suffix(value: Value) -> str:
    """The end of the names of functions for a dtype."""
    return "f32" if value.dtype.itemsize == 4 else "f64"


def common_size(node: Node) -> Size:
    """How many multiplications there are for each element."""
    return node.inputs[0].shape[-2 if node.attrs["transa"] else -1]


class Head(NamedTuple):
    """A copy of a product in another order, as attention joins its heads, and where the product writes in place of that."""

    node: Node
    target: Matrix


def head_of(emitter: Emitter, node: Node, fused: Run, following: int) -> Optional[Head]:
    """The part behind a product if that is a copy, and nothing else reads the product.  following: the number of that part."""
    (value,), part = node.outputs, fused.parts[following] if following < len(fused.parts) else None
    if not isinstance(part, Node) or part.op.name != "reshape" or value in fused.kept or emitter.has_memory(value):
        return None
    (copied,), place = part.outputs, emitter.place(part.inputs[0])
    strides = strides_in(place_of(copied), place) if place.base is value else None
    if strides is None or not (strides[-1] == 1 or value.shape[-1] == 1) or not not_below(strides[-2], value.shape[-1]):
        return None
    behind = [emitter.place(v).base for other in fused.parts[following + 1:] for inner in nodes_of(other) for v in inner.inputs]
    return None if value in behind else Head(part, stack_at(emitter, copied, value.shape, strides))


def stack_at(emitter: Emitter, value: Value, shape: Sequence[Size], strides: Sequence[Size]) -> Matrix:
    """Matrices of this shape whose elements are so far apart in the memory of a value, as a product writes them."""
    return Matrix(emitter.name(value), 0, _distance(strides[-2], shape[-1]), steps(shape[:-2], strides[:-2]))


def multiply(emitter: Emitter, node: Node, head: Optional[Head] = None) -> None:
    """Write a product, or a stack of them.  head: what it is made as, if not as itself."""
    (value,) = node.outputs
    left, right = (matrix(emitter, v, node.attrs[turn]) for v, turn in zip(node.inputs, ("transa", "transb")))
    rows, columns = value.shape[-2:]
    inner = common_size(node)
    target = stack_at(emitter, value, value.shape, compact_strides(value.shape)) if head is None else head.target
    batch = math.prod(value.shape[:-2])
    share = None
    if all(map(is_known, (batch, rows, columns, inner))) and (batch >= _MANY or rows * columns * inner < products.SHARED):
        share = cut([Level("m", batch)], batch, batch * rows * columns * inner * MULTIPLICATION)
    begin, end = ("0", batch) if share is None else ("begin", "end")
    lines = [f"    for (int64_t m = {begin}; m < {end}; ++m)"] if batch != 1 else []
    operands = ", ".join([f"{one.at('m')}, {one.distance}" for one in (left, right)])
    emitter.part([*lines, f"    dy_gemm_{suffix(value)}({left.turned}, {right.turned}, {rows}, {columns}, {inner}, 1, "
                 f"{operands}, 0, {target.at('m')}, {target.distance});"], share)


def _stack_product(emitter: Emitter, node: Node) -> None:
    """Both stacks are matrices of as many rows as all their items have."""
    (value,), (a, b) = node.outputs, node.inputs
    left, right = emitter.local(a), emitter.local(b)
    (rows, columns), type = value.shape, c_type(value.dtype)
    count = f"{left}.count * {a.type.elem.shape[0]}"
    emitter.line(f"dy_gemm_{suffix(value)}(1, 0, {rows}, {columns}, {count}, 1, (const {type} *){left}.data, "
                 f"{rows}, (const {type} *){right}.data, {columns}, 0, {emitter.name(value)}, {columns});")


def _pretransposed(emitter: Emitter, node: Node) -> None:
    (value,), (x,) = node.outputs, node.inputs
    rows, columns = x.shape
    source, target = emitter.pointer(x), emitter.name(value)
    emitter.part([f"    dy_turn_{x.dtype.itemsize}({source}, {columns}, {rows}, {columns}, {target}, {rows});"])


def matrix(emitter: Emitter, value: Value, turned: bool) -> Matrix:
    """The operand of a product: a copy where neither its rows nor its columns stand side by side."""
    place = emitter.place(value)
    rows, columns = value.shape[-2:]
    s, t = place.strides[-2:]
    if place.base.ndim:
        follow = steps(value.shape[:-2], place.strides[:-2])
        offset = [str(place.offset)] if place.offset else []
        offset += [f"{name} * {stride}" for name, stride in place.terms if stride]
        first = " + ".join([emitter.name(place.base), *offset])
        if (t == 1 or columns == 1) and (not_below(s, columns) or rows == 1):
            return Matrix(first, int(turned), _distance(s, columns), follow)
        if (s == 1 or rows == 1) and (not_below(t, rows) or columns == 1):
            return Matrix(first, int(not turned), _distance(t, rows), follow)
    count = math.prod(value.shape[:-2])
    return Matrix(emitter.pointer(value), int(turned), at_least_one(columns), ((1, 0, rows * columns),) if count != 1 else ())


def steps(shape: Sequence[Size], strides: Sequence[Size]) -> Tuple[Tuple[Size, Size, Size], ...]:
    """How the matrices of a stack follow each other, those axes in one that go in one stride."""
    axes: List[Tuple[Size, Size]] = []
    for n, stride in zip(shape, strides):
        if n == 1:
            continue
        if axes and axes[-1][1] == stride * n:
            axes[-1] = (axes[-1][0] * n, stride)
        else:
            axes.append((n, stride))
    behind = [math.prod(n for n, _ in axes[k + 1:]) for k in range(len(axes))]
    return tuple((after, n if k else 0, stride) for k, ((n, stride), after) in enumerate(zip(axes, behind)) if stride != 0)


def _distance(stride: Size, length: Size) -> Size:
    """From one row to the next; a single one may have any stride."""
    return at_least_one(stride if not_below(stride, length) else length)


#: Ops by name.
PRODUCTS: Dict[str, Rule] = {"matmul": multiply, "stack_product": _stack_product, "pretransposed": _pretransposed}

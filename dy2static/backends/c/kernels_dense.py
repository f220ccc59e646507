"""Nodes that are no loop over elements: products, gathers, joins; each writes its own lines."""
from __future__ import annotations

import math
from typing import Any, Dict, List

import numpy as np

from ...ir.c_forms import c_constant, c_type
from ...ir.dims import Size, at_least_one, is_known, not_below
from ...ir.graph import Node, Value
from ...ir.template import AT
from ...native import products
from ..loops.layout import Place, compact_strides, indexed, place_of
from ..loops.parallelize import Level, cut
from .draws import write_draw
from .emitter import Emitter, Rule
from .kernels_blocks import BLOCKS
from .kernels_convolution import CONVOLUTIONS
from .kernels_indexing import AXES
from .kernels_picking import PICKS, Part
from .kernels_pooling import WINDOWS
from .kernels_sorting import ORDERS
from .lists import LISTS
from .nests import checked_index, zeros

#: Nanoseconds of a multiplication in a product.
_MULTIPLICATION = 0.01

#: So many products of one op are shared whole, fewer large ones each for itself.
_MANY = 8


def _reshape(emitter: Emitter, node: Node) -> None:
    """A copy in the order of elements, for strides that cannot say it."""
    (value,), (operand,) = node.outputs, node.inputs
    shape = operand.shape
    emitter.copy(Place(value, shape, compact_strides(shape)), emitter.place(operand), emitter.name(value))


def _check_numbers(emitter: Emitter, node: Node, names: List[str], sizes: List[int]) -> None:
    for name, number, size in zip(names, node.inputs[1:], sizes):
        text = emitter.scalar(number)
        emitter.line(f"int64_t {name} = (int64_t){text};")
        emitter.line(f"if ({name} < 0) {name} += {size};")
        emitter.line(f"if ((uint64_t){name} >= (uint64_t){size}) goto bail;")


def _sizes_at(node: Node, shape: Any) -> List[int]:
    """The sizes of the axes that numbers index."""
    sizes, axis = [], 0
    for entry in node.attrs["index"]:
        if entry == AT:
            sizes.append(shape[axis])
        axis += entry is not None
    return sizes


def _getitem_at(emitter: Emitter, node: Node) -> None:
    (value,) = node.outputs
    place = emitter.place(value)
    before = len(emitter.place(node.inputs[0]).terms)
    names = [name for name, _ in place.terms[before:]]
    _check_numbers(emitter, node, names, _sizes_at(node, node.inputs[0].shape))


def _scatter_slice(emitter: Emitter, node: Node) -> None:
    (value,) = node.outputs
    pointer = zeros(emitter, value)
    emitter.copy(indexed(place_of(value), node.attrs["index"]), emitter.place(node.inputs[0]), pointer)


def _scatter_at(emitter: Emitter, node: Node) -> None:
    (value,) = node.outputs
    names = [emitter.variable("at", "const int64_t") for _ in node.inputs[1:]]
    _check_numbers(emitter, node, names, _sizes_at(node, value.shape))
    pointer = zeros(emitter, value)
    emitter.copy(indexed(place_of(value), node.attrs["index"], names), emitter.place(node.inputs[0]), pointer)


def _put(emitter: Emitter, node: Node) -> None:
    (value,), (contents, item, *numbers), index = node.outputs, node.inputs, node.attrs["index"]
    pointer = emitter.name(value)
    emitter.copy(place_of(value), emitter.place(contents), pointer)
    if any(n.ndim for n in numbers):
        source = emitter.pointer(item)
        Part.of(value.shape, numbers, index).write(emitter, lambda here, there: f"{pointer}[{there}] = {source}[{here}];")
        return
    names = [emitter.variable("at", "const int64_t") for _ in numbers]
    for name, number, size in zip(names, numbers, _sizes_at(node, value.shape)):
        checked_index(emitter, name, emitter.scalar(number), size)
    emitter.copy(indexed(place_of(value), index, names), emitter.place(item), pointer)


def _concat(emitter: Emitter, node: Node) -> None:
    (value,), axis, start = node.outputs, node.attrs["axis"], 0
    strides = compact_strides(value.shape)
    pointer = emitter.name(value)
    for operand in node.inputs:
        target = Place(value, operand.shape, strides, start * strides[axis])
        emitter.copy(target, emitter.place(operand), pointer)
        start += operand.shape[axis]


def _stack(emitter: Emitter, node: Node) -> None:
    (value,), axis = node.outputs, node.attrs["axis"]
    strides = compact_strides(value.shape)
    pointer = emitter.name(value)
    for k, operand in enumerate(node.inputs):
        target = Place(value, operand.shape, strides[:axis] + strides[axis + 1:], k * strides[axis])
        emitter.copy(target, emitter.place(operand), pointer)


def _constant(emitter: Emitter, node: Node) -> None:
    """A table; the region has only small ones."""
    (value,) = node.outputs
    items = [c_constant(item, value.dtype) for item in np.ravel(node.attrs["value"])]
    pointer = emitter.name(value)
    for k, item in enumerate(items):
        emitter.line(f"{pointer}[{k}] = {item};")


def _arange(emitter: Emitter, node: Node) -> None:
    (value,) = node.outputs
    pointer, type = emitter.name(value), c_type(value.dtype)
    start, step = node.attrs["start"], node.attrs["step"]
    emitter.line(f"for (int64_t k = 0; k < {value.shape[0]}; ++k) {pointer}[k] = ({type})({start} + k * ({step}));")


def _matmul(emitter: Emitter, node: Node) -> None:
    (value,), (a, b) = node.outputs, node.inputs
    left, right = (_matrix(emitter, v, node.attrs[turn]) for v, turn in ((a, "transa"), (b, "transb")))
    rows, columns = value.shape[-2:]
    inner = a.shape[-2] if node.attrs["transa"] else a.shape[-1]
    pointer, suffix = emitter.name(value), "f32" if value.dtype.itemsize == 4 else "f64"
    batch = math.prod(value.shape[:-2])
    steps = [f" + m * {step}" if batch != 1 else "" for step in (left[3], right[3], rows * columns)]
    share = None
    if all(map(is_known, (batch, rows, columns, inner))) and (batch >= _MANY or rows * columns * inner < products.SHARED):
        share = cut([Level("m", batch)], batch, batch * rows * columns * inner * _MULTIPLICATION)
    begin, end = ("0", batch) if share is None else ("begin", "end")
    lines = [f"    for (int64_t m = {begin}; m < {end}; ++m)"] if batch != 1 else []
    emitter.part([*lines, f"    dy_gemm_{suffix}({left[1]}, {right[1]}, {rows}, {columns}, {inner}, 1, {left[0]}{steps[0]}, "
                 f"{left[2]}, {right[0]}{steps[1]}, {right[2]}, 0, {pointer}{steps[2]}, {at_least_one(columns)});"], share)


def _stack_product(emitter: Emitter, node: Node) -> None:
    """Both stacks are matrices of as many rows as all their items have."""
    (value,), (a, b) = node.outputs, node.inputs
    left, right = emitter.local(a), emitter.local(b)
    (rows, columns), type, suffix = value.shape, c_type(value.dtype), "f32" if value.dtype.itemsize == 4 else "f64"
    count = f"{left}.count * {a.type.elem.shape[0]}"
    emitter.line(f"dy_gemm_{suffix}(1, 0, {rows}, {columns}, {count}, 1, (const {type} *){left}.data, "
                 f"{rows}, (const {type} *){right}.data, {columns}, 0, {emitter.name(value)}, {columns});")


def _pretransposed(emitter: Emitter, node: Node) -> None:
    (value,), (x,) = node.outputs, node.inputs
    rows, columns = x.shape
    source, target = emitter.pointer(x), emitter.name(value)
    emitter.part([f"    dy_turn_{x.dtype.itemsize}({source}, {rows}, {columns}, {target});"])


def _matrix(emitter: Emitter, value: Value, turned: bool) -> tuple:
    """Pointer, whether turned, the distance of rows, and that of matrices: a turned view is read as it is."""
    place = emitter.place(value)
    rows, columns = value.shape[-2:]
    s, t = place.strides[-2:]
    batches = place.strides[:-2] == compact_strides(value.shape[:-2]) or not place.strides[:-2]
    if place.base.ndim and len(value.shape) == 2 and batches:
        offset = [str(place.offset)] if place.offset else []
        offset += [f"{name} * {stride}" for name, stride in place.terms if stride]
        if (t == 1 or columns == 1) and (not_below(s, columns) or rows == 1):
            return " + ".join([emitter.name(place.base), *offset]), int(turned), _distance(s, columns), 0
        if (s == 1 or rows == 1) and (not_below(t, rows) or columns == 1):
            return " + ".join([emitter.name(place.base), *offset]), int(not turned), _distance(t, rows), 0
    return emitter.pointer(value), int(turned), at_least_one(columns), rows * columns


def _distance(stride: Size, length: Size) -> Size:
    """From one row to the next; a single one may have any stride."""
    return at_least_one(stride if not_below(stride, length) else length)


#: Ops by name.
ALONE: Dict[str, Rule] = {
    "reshape": _reshape, "getitem_at": _getitem_at, "scatter_slice": _scatter_slice, "scatter_at": _scatter_at, "put": _put,
    "concat": _concat, "stack": _stack, "constant": _constant, "arange": _arange,
    "matmul": _matmul, "stack_product": _stack_product, "pretransposed": _pretransposed,
    "random_uniform": write_draw, **AXES, **PICKS, **ORDERS, **LISTS, **WINDOWS, **CONVOLUTIONS, **BLOCKS}

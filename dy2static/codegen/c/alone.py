"""Nodes that are no loop over elements: products, gathers, joins; each writes its own lines."""
from __future__ import annotations

import math
from typing import Any, Callable, Dict, List

import numpy as np

from ...ir.c_forms import c_constant, c_type
from ...ir.dims import Size
from ...ir.graph import Node, Value
from ...ir.template import AT
from ...native import products
from .convolutions import CONVOLUTIONS
from .draws import write_draw
from .extents import at_least_one, is_known, not_below
from .lists import LISTS
from .nests import checked_index, loops
from .orders import ORDERS
from .picks import PICKS, write_picked
from .places import Place, compact_strides, indexed, place_of
from .shares import Level, cut
from .windows import WINDOWS

#: Nanoseconds of a multiplication in a product, of a look-up, and of a byte that it copies.
_MULTIPLICATION, _LOOK_UP, _BYTE = 0.01, 2, 0.1

#: So many products of one op are shared whole, fewer large ones each for itself.
_MANY = 8


def _reshape(writer: Any, node: Node) -> None:
    """A copy in the order of elements, for strides that cannot say it."""
    (value,), (operand,) = node.outputs, node.inputs
    shape = operand.shape
    writer.copy(Place(value, shape, compact_strides(shape)), writer.place(operand), writer.name(value))


def _check_numbers(writer: Any, node: Node, names: List[str], sizes: List[int]) -> None:
    for name, number, size in zip(names, node.inputs[1:], sizes):
        text = writer.scalar(number)
        writer.line(f"int64_t {name} = (int64_t){text};")
        writer.line(f"if ({name} < 0) {name} += {size};")
        writer.line(f"if ((uint64_t){name} >= (uint64_t){size}) goto bail;")


def _sizes_at(node: Node, shape: Any) -> List[int]:
    """The sizes of the axes that numbers index."""
    sizes, axis = [], 0
    for entry in node.attrs["index"]:
        if entry == AT:
            sizes.append(shape[axis])
        axis += entry is not None
    return sizes


def _getitem_at(writer: Any, node: Node) -> None:
    (value,) = node.outputs
    place = writer.place(value)
    before = len(writer.place(node.inputs[0]).terms)
    names = [name for name, _ in place.terms[before:]]
    _check_numbers(writer, node, names, _sizes_at(node, node.inputs[0].shape))


def _zero(writer: Any, value: Value) -> str:
    pointer = writer.name(value)
    writer.line(f"memset({pointer}, 0, {math.prod(value.shape) * value.dtype.itemsize});")
    return pointer


def _scatter_slice(writer: Any, node: Node) -> None:
    (value,) = node.outputs
    pointer = _zero(writer, value)
    writer.copy(indexed(place_of(value), node.attrs["index"]), writer.place(node.inputs[0]), pointer)


def _scatter_at(writer: Any, node: Node) -> None:
    (value,) = node.outputs
    names = [writer.at() for _ in node.inputs[1:]]
    _check_numbers(writer, node, names, _sizes_at(node, value.shape))
    pointer = _zero(writer, value)
    writer.copy(indexed(place_of(value), node.attrs["index"], names), writer.place(node.inputs[0]), pointer)


def _put(writer: Any, node: Node) -> None:
    (value,), (contents, item, *numbers), index = node.outputs, node.inputs, node.attrs["index"]
    pointer = writer.name(value)
    writer.copy(place_of(value), writer.place(contents), pointer)
    if any(n.ndim for n in numbers):
        source = writer.pointer(item)
        write_picked(writer, value.shape, numbers, index, lambda here, there: f"{pointer}[{there}] = {source}[{here}];")
        return
    names = [writer.at() for _ in numbers]
    for name, number, size in zip(names, numbers, _sizes_at(node, value.shape)):
        checked_index(writer, name, writer.scalar(number), size)
    writer.copy(indexed(place_of(value), index, names), writer.place(item), pointer)


def _concat(writer: Any, node: Node) -> None:
    (value,), axis, start = node.outputs, node.attrs["axis"], 0
    strides = compact_strides(value.shape)
    pointer = writer.name(value)
    for operand in node.inputs:
        target = Place(value, operand.shape, strides, start * strides[axis])
        writer.copy(target, writer.place(operand), pointer)
        start += operand.shape[axis]


def _stack(writer: Any, node: Node) -> None:
    (value,), axis = node.outputs, node.attrs["axis"]
    strides = compact_strides(value.shape)
    pointer = writer.name(value)
    for k, operand in enumerate(node.inputs):
        target = Place(value, operand.shape, strides[:axis] + strides[axis + 1:], k * strides[axis])
        writer.copy(target, writer.place(operand), pointer)


def _constant(writer: Any, node: Node) -> None:
    """A table; the region has only small ones."""
    (value,) = node.outputs
    items = [c_constant(item, value.dtype) for item in np.ravel(node.attrs["value"])]
    pointer = writer.name(value)
    for k, item in enumerate(items):
        writer.line(f"{pointer}[{k}] = {item};")


def _arange(writer: Any, node: Node) -> None:
    (value,) = node.outputs
    pointer, type = writer.name(value), c_type(value.dtype)
    start, step = node.attrs["start"], node.attrs["step"]
    writer.line(f"for (int64_t k = 0; k < {value.shape[0]}; ++k) {pointer}[k] = ({type})({start} + k * ({step}));")


def _rows(writer: Any, node: Node, axis: int, whole: Any, indices: Value) -> List[str]:
    """Lines that begin loops over outer parts and indices; ``at`` is the checked index."""
    outer, size = math.prod(whole[:axis]), whole[axis]
    pointer = writer.pointer(indices)
    count = math.prod(indices.shape)
    return [f"for (int64_t o = 0; o < {outer}; ++o)", f"for (int64_t k = 0; k < {count}; ++k) {{",
            f"    int64_t at = (int64_t){pointer}[k];" if indices.ndim else f"    int64_t at = (int64_t){writer.scalar(indices)};",
            f"    if (at < 0) at += {size};", f"    if ((uint64_t)at >= (uint64_t){size}) goto bail;"]


def _take(writer: Any, node: Node) -> None:
    (value,), (x, indices), axis = node.outputs, node.inputs, node.attrs["axis"]
    source, target = writer.pointer(x), writer.name(value)
    outer, inner, size = math.prod(x.shape[:axis]), math.prod(x.shape[axis + 1:]), x.shape[axis]
    count, nbytes = math.prod(indices.shape), inner * x.dtype.itemsize
    found = writer.pointer(indices) if indices.ndim else ""
    turn = _LOOK_UP + nbytes * _BYTE if is_known(inner) else 0
    with loops(writer, "a", (count,) if outer == 1 else (outer, count), turn) as names:
        o, k = ("0", *names) if outer == 1 else names
        checked_index(writer, "at", f"{found}[{k}]" if found else writer.scalar(indices), size)
        writer.line(f"memcpy({target} + ({o} * {count} + {k}) * {inner}, {source} + ({o} * {size} + at) * {inner}, {nbytes});")


def _scatter_add(writer: Any, node: Node) -> None:
    (value,), (x, indices), axis = node.outputs, node.inputs, node.attrs["axis"]
    source, target = writer.pointer(x), _zero(writer, value)
    inner, count, size = math.prod(value.shape[axis + 1:]), math.prod(indices.shape), value.shape[axis]
    for line in _rows(writer, node, axis, value.shape, indices):
        writer.line(line)
    writer.line(f"    const int64_t to = (o * {size} + at) * {inner}, from = (o * {count} + k) * {inner};")
    writer.line("    #pragma omp simd")
    writer.line(f"    for (int64_t j = 0; j < {inner}; ++j) {target}[to + j] += {source}[from + j];")
    writer.line("}")


def _matmul(writer: Any, node: Node) -> None:
    (value,), (a, b) = node.outputs, node.inputs
    left, right = (_matrix(writer, v, node.attrs[turn]) for v, turn in ((a, "transa"), (b, "transb")))
    rows, columns = value.shape[-2:]
    inner = a.shape[-2] if node.attrs["transa"] else a.shape[-1]
    pointer, suffix = writer.name(value), "f32" if value.dtype.itemsize == 4 else "f64"
    batch = math.prod(value.shape[:-2])
    steps = [f" + m * {step}" if batch != 1 else "" for step in (left[3], right[3], rows * columns)]
    share = None
    if all(map(is_known, (batch, rows, columns, inner))) and (batch >= _MANY or rows * columns * inner < products.SHARED):
        share = cut([Level("m", batch)], batch, batch * rows * columns * inner * _MULTIPLICATION)
    begin, end = ("0", batch) if share is None else ("begin", "end")
    lines = [f"    for (int64_t m = {begin}; m < {end}; ++m)"] if batch != 1 else []
    writer.part([*lines, f"    dy_gemm_{suffix}({left[1]}, {right[1]}, {rows}, {columns}, {inner}, 1, {left[0]}{steps[0]}, "
                 f"{left[2]}, {right[0]}{steps[1]}, {right[2]}, 0, {pointer}{steps[2]}, {at_least_one(columns)});"], share)


def _stack_product(writer: Any, node: Node) -> None:
    """Both stacks are matrices of as many rows as all their items have."""
    (value,), (a, b) = node.outputs, node.inputs
    left, right = writer.names[a], writer.names[b]
    (rows, columns), type, suffix = value.shape, c_type(value.dtype), "f32" if value.dtype.itemsize == 4 else "f64"
    writer.line(f"dy_gemm_{suffix}(1, 0, {rows}, {columns}, {left}.count * {a.type.elem.shape[0]}, 1, (const {type} *){left}.data, "
                f"{rows}, (const {type} *){right}.data, {columns}, 0, {writer.name(value)}, {columns});")


def _turned(writer: Any, node: Node) -> None:
    (value,), (x,) = node.outputs, node.inputs
    rows, columns = x.shape
    source, target = writer.pointer(x), writer.name(value)
    writer.part([f"    dy_turn_{x.dtype.itemsize}({source}, {rows}, {columns}, {target});"])


def _matrix(writer: Any, value: Value, turned: bool) -> tuple:
    """Pointer, whether turned, the distance of rows, and that of matrices: a turned view is read as it is."""
    place = writer.place(value)
    rows, columns = value.shape[-2:]
    s, t = place.strides[-2:]
    batches = place.strides[:-2] == compact_strides(value.shape[:-2]) or not place.strides[:-2]
    if place.base.ndim and len(value.shape) == 2 and batches:
        offset = [str(place.offset)] if place.offset else []
        offset += [f"{name} * {stride}" for name, stride in place.terms if stride]
        if (t == 1 or columns == 1) and (not_below(s, columns) or rows == 1):
            return " + ".join([writer.name(place.base), *offset]), int(turned), _distance(s, columns), 0
        if (s == 1 or rows == 1) and (not_below(t, rows) or columns == 1):
            return " + ".join([writer.name(place.base), *offset]), int(not turned), _distance(t, rows), 0
    return writer.pointer(value), int(turned), at_least_one(columns), rows * columns


def _distance(stride: Size, length: Size) -> Size:
    """From one row to the next; a single one may have any stride."""
    return at_least_one(stride if not_below(stride, length) else length)


#: Ops by name.
ALONE: Dict[str, Callable[[Any, Node], None]] = {
    "reshape": _reshape, "getitem_at": _getitem_at, "scatter_slice": _scatter_slice, "scatter_at": _scatter_at, "put": _put,
    "concat": _concat, "stack": _stack, "constant": _constant, "arange": _arange, "take": _take,
    "scatter_add": _scatter_add, "matmul": _matmul, "stack_product": _stack_product, "turned": _turned,
    "random_uniform": write_draw, **PICKS, **ORDERS, **LISTS, **WINDOWS, **CONVOLUTIONS}

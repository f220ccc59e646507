"""Nodes that are no loop nest: products, copies, and elements picked by arrays of indices.

An index that is out of range wraps, as in CuPy; eager code raises no error either.
"""
from __future__ import annotations

import math
from typing import Callable, Dict

import numpy as np

from ....ir.dims import Size
from ....ir.graph import Node
from ...loops.layout import Place, compact_strides, indexed, place_of, reshaped
from ..text.dtypes import constant, register_type
from ..text.function import FunctionText
from ..text.indices import split_index
from ..text.operands import axes_of, element, wrapped
from .index_arrays import axes_of_arrays, first_axis_of_arrays, other_axes, shape_together
from .joins import JOINS
from .products import multiplied
from .scans import MANY, MOST_THREADS, SCANS, SHORT, threads_of
from .scatter import SCATTERS
from .windows import WINDOWS
from .writes import WRITES


def _reshape(function: FunctionText, node: Node) -> None:
    """A copy in the order of elements, for strides that cannot say it, unless what is copied is made there."""
    (value,), (operand,) = node.outputs, node.inputs
    place, number = function.places.of(operand), function.pointer(value)
    if place.base in function.joined and function.joined[place.base].whole is value:
        return
    target = reshaped(function.target(value), operand.shape)
    assert target is not None, "it has been looked at before the result was joined"
    function.copy(target, place, number)


def _pretransposed(function: FunctionText, node: Node) -> None:
    (value,), place = node.outputs, function.places.of(node.inputs[0])
    source = Place(place.base, value.shape, place.strides[::-1], place.offset)
    function.copy(place_of(value), source, function.pointer(value))


def _scatter_slice(function: FunctionText, node: Node) -> None:
    (value,), number = node.outputs, function.pointer(node.outputs[0])
    function.clear(value)
    function.copy(indexed(place_of(value), node.attrs["index"]), function.places.of(node.inputs[0]), number)


def _fill(function: FunctionText, node: Node, text: str) -> None:
    (value,) = node.outputs
    count = math.prod(value.shape)
    kernel = function.elements(count)
    kernel.line(f"{kernel.memory(value, True)}[k] = {text};")
    function.launch_elements(kernel, count)


def _constant(function: FunctionText, node: Node) -> None:
    """A table, which stands in the text."""
    (value,) = node.outputs
    items = [constant(item, value.dtype) for item in np.ravel(node.attrs["value"])]
    kernel = function.elements(len(items))
    kernel.line(f"const {register_type(value.dtype)} table[] = {{{', '.join(items)}}};")
    kernel.line(f"{kernel.memory(value, True)}[k] = table[k];")
    function.launch_elements(kernel, len(items))


def _arange(function: FunctionText, node: Node) -> None:
    type = register_type(node.outputs[0].dtype)
    _fill(function, node, f"({type})({node.attrs['start']} + ({type})k * ({node.attrs['step']}))")


def _philox(function: FunctionText, node: Node) -> None:
    """Numbers that something besides loop nests reads."""
    (value,) = node.outputs
    kernel = function.elements(math.prod(value.shape))
    kernel.line(f"{kernel.memory(value, True)}[k] = {kernel.drawn(node, 'k')};")
    function.launch_elements(kernel, math.prod(value.shape))


# Picks ----------------------------------------------------------------------------------------------------------------


def _take(function: FunctionText, node: Node) -> None:
    (value,), (x, indices), axis = node.outputs, node.inputs, node.attrs["axis"]
    count = math.prod(value.shape)
    names = [f"k{a}" for a in range(value.ndim)]
    kernel = function.elements(count, value.shape, names)
    taken = {a: names[axis + a] for a in range(indices.ndim)}
    kernel.line(f"const dy_index at = {wrapped(element(function, kernel, indices, taken), x.shape[axis])};")
    where = {a: names[a] if a < axis else "at" if a == axis else names[a + indices.ndim - 1] for a in range(x.ndim)}
    kernel.line(f"{kernel.memory(value, True)}[k] = {element(function, kernel, x, where)};")
    function.launch_elements(kernel, count)


def _take_along(function: FunctionText, node: Node) -> None:
    (value,), (x, indices), axis = node.outputs, node.inputs, node.attrs["axis"]
    count = math.prod(value.shape)
    names = {a: f"k{a}" for a in range(value.ndim)}
    kernel = function.elements(count, value.shape, list(names.values()))
    kernel.line(f"const dy_index at = {wrapped(element(function, kernel, indices, names), x.shape[axis])};")
    kernel.line(f"{kernel.memory(value, True)}[k] = {element(function, kernel, x, {**names, axis: 'at'})};")
    function.launch_elements(kernel, count)


def _pick(function: FunctionText, node: Node) -> None:
    """Elements by arrays of indices."""
    (value,), (x, *numbers), index = node.outputs, node.inputs, node.attrs["index"]
    together, first, names = shape_together(numbers), first_axis_of_arrays(index), axes_of(value.ndim, "k")
    kernel = function.elements(math.prod(value.shape), value.shape, names)
    common = names[first:first + len(together)]
    where = other_axes(index, x.ndim, names[:first] + names[first + len(together):])
    for axis, array in zip(axes_of_arrays(index), numbers):
        at = {a: name for a, (name, n) in enumerate(zip(common[len(common) - array.ndim:], array.shape)) if n != 1}
        kernel.line(f"const dy_index at{axis} = {wrapped(element(function, kernel, array, at), x.shape[axis])};")
        where[axis] = f"at{axis}"
    kernel.line(f"{kernel.memory(value, True)}[k] = {element(function, kernel, x, where)};")
    function.launch_elements(kernel, math.prod(value.shape))


def _argument(function: FunctionText, node: Node) -> None:
    """The first NaN, else the first of the largest, or smallest, elements: of a line a thread's, or a block's."""
    (value,), (x,), axis = node.outputs, node.inputs, node.attrs["axis"]
    lines, apart = math.prod(value.shape), axis is not None and compact_strides(x.shape)[axis] != 1
    by_threads = function.late(lambda size, lines: size <= SHORT or apart and lines >= MANY,
                               math.prod(x.shape) if axis is None else x.shape[axis], lines)
    function.either(by_threads, lambda: _argument_of_lines(function, node, lines, False),
                    lambda: _argument_of_lines(function, node, lines, True))


def _argument_of_lines(function: FunctionText, node: Node, lines: Size, by_blocks: bool) -> None:
    (value,), (x,), axis, least = node.outputs, node.inputs, node.attrs["axis"], str(node.op.name == "argmin").lower()
    kept = [a for a in range(x.ndim) if axis is not None and a != axis]
    sizes, names = [x.shape[a] for a in kept], [f"k{a}" for a in kept]
    if by_blocks:
        kernel = function.kernel()
        kernel.line("const dy_index k = blockIdx.x;")
        split_index(kernel, "k", sizes, names)
    else:
        kernel = function.elements(lines, sizes, names)
    gone = {a: f"n / {after} % {x.shape[a]}" for a, after in enumerate(compact_strides(x.shape))} if axis is None else {axis: "n"}
    text = element(function, kernel, x, {**dict(zip(kept, names)), **gone})
    size = math.prod(x.shape) if axis is None else x.shape[axis]
    begin, step = ("threadIdx.x", "blockDim.x") if by_blocks else ("0", "1")
    kernel.line("int64_t found = INT64_MAX;")
    kernel.line(f"{register_type(x.dtype)} best = 0;")
    kernel.open(f"for (int64_t n = {begin}; n < {size}; n += {step}) {{")
    kernel.line(f"const {register_type(x.dtype)} here = {text};")
    kernel.line(f"if (dy_is_before<{least}>(here, n, best, found)) {{ best = here; found = n; }}")
    kernel.close()
    if by_blocks:
        kernel.line(f"found = dy_place<{least}>(best, found);")
    kernel.line(f"{'if (threadIdx.x == 0) ' if by_blocks else ''}{kernel.memory(value, True)}[k] = found;")
    if by_blocks:
        kernel.launch(lines, function.late(threads_of, size), MOST_THREADS)
    else:
        function.launch_elements(kernel, lines)


#: Ops by name.
ALONE: Dict[str, Callable[[FunctionText, Node], None]] = {
    "matmul": multiplied, "reshape": _reshape, "pretransposed": _pretransposed, "scatter_slice": _scatter_slice,
    "constant": _constant, "arange": _arange, "philox": _philox, "take": _take, "take_along": _take_along,
    "pick": _pick, "argmax": _argument, "argmin": _argument, **JOINS, **SCANS, **SCATTERS, **WINDOWS, **WRITES}

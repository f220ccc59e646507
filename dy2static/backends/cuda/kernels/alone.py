"""Nodes that are no loop nest: products, copies, and elements picked by arrays of indices.

An index that is out of range wraps, as in CuPy; eager code raises no error either.
"""
from __future__ import annotations

import functools
import math
from typing import Callable, Dict

import numpy as np

from ....ir.dims import Size
from ....ir.graph import Node
from ....ir.shapes import broadcast_shapes
from ....ir.template import AT
from ...loops.layout import Place, compact_strides, indexed, place_of, reshaped
from ..text.dtypes import constant, loaded, register_type
from ..text.function import FunctionText, KernelText
from ..text.indices import address, split_index
from ..text.operands import element, wrapped
from .joins import JOINS
from .products import multiplied
from .scans import MANY, MOST_THREADS, SCANS, SHORT, threads_of
from .windows import WINDOWS
from .writes import WRITES

#: Comparisons up to which each element of a sum of picked rows looks at all indices; else one thread goes down each column.
_COMPARED = 1 << 32


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
    picked = {a: names[axis + a] for a in range(indices.ndim)}
    wrapped(kernel, "at", element(function, kernel, indices, picked), x.shape[axis])
    where = {a: names[a] if a < axis else "at" if a == axis else names[a + indices.ndim - 1] for a in range(x.ndim)}
    kernel.line(f"{kernel.memory(value, True)}[k] = {element(function, kernel, x, where)};")
    function.launch_elements(kernel, count)


def _take_along(function: FunctionText, node: Node) -> None:
    (value,), (x, indices), axis = node.outputs, node.inputs, node.attrs["axis"]
    count = math.prod(value.shape)
    names = {a: f"k{a}" for a in range(value.ndim)}
    kernel = function.elements(count, value.shape, list(names.values()))
    wrapped(kernel, "at", element(function, kernel, indices, names), x.shape[axis])
    kernel.line(f"{kernel.memory(value, True)}[k] = {element(function, kernel, x, {**names, axis: 'at'})};")
    function.launch_elements(kernel, count)


def _add_along(function: FunctionText, node: Node) -> None:
    """Each element looks at all indices of its line, which mostly is one: no two threads add to one place."""
    (value,), (x, indices), axis = node.outputs, node.inputs, node.attrs["axis"]
    count, type = math.prod(value.shape), register_type(value.dtype)
    names = {a: f"k{a}" for a in range(value.ndim)}
    kernel = function.elements(count, value.shape, list(names.values()))
    kernel.line(f"{type} all = 0;")
    kernel.open(f"for (int n = 0; n < {indices.shape[axis]}; ++n) {{")
    there = {**names, axis: "n"}
    wrapped(kernel, "at", element(function, kernel, indices, there), value.shape[axis])
    kernel.line(f"if (at == {names[axis]}) all += {element(function, kernel, x, there)};")
    kernel.close()
    kernel.line(f"{kernel.memory(value, True)}[k] = all;")
    function.launch_elements(kernel, count)


def _scatter_add(function: FunctionText, node: Node) -> None:
    """Rows of equal index add up in the order of the indices: no two threads add to one place."""
    (value,), (_, indices), axis = node.outputs, node.inputs, node.attrs["axis"]
    numbers, size = math.prod(indices.shape), value.shape[axis]
    count = math.prod(value.shape)
    are_few = function.late(lambda count, numbers: count * numbers <= _COMPARED, count, numbers)
    function.either(are_few, lambda: _scatter_each(function, node, count, numbers, size),
                    lambda: _scatter_columns(function, node, count // size, numbers, size))


def _scattered(function: FunctionText, node: Node, kernel: KernelText, names: Dict[int, str]) -> str:
    """Define the row that number ``n`` of the indices names; gives the element of ``x`` that goes there."""
    x, indices = node.inputs
    axis, size = node.attrs["axis"], node.outputs[0].shape[node.attrs["axis"]]
    parts = {a: f"n / {after} % {indices.shape[a]}" for a, after in enumerate(compact_strides(indices.shape))}
    wrapped(kernel, "at", element(function, kernel, indices, parts), size)
    where = {**{a: names[a] for a in range(axis)}, **{axis + a: text for a, text in parts.items()},
             **{a + indices.ndim - 1: names[a] for a in names if a > axis}}
    return element(function, kernel, x, where)


def _scatter_each(function: FunctionText, node: Node, count: Size, numbers: Size, size: Size) -> None:
    """One thread for each element of the result, which looks at all indices."""
    (value,), axis = node.outputs, node.attrs["axis"]
    names = {a: f"k{a}" for a in range(value.ndim)}
    kernel = function.elements(count, value.shape, list(names.values()))
    kernel.line(f"{register_type(value.dtype)} all = 0;")
    kernel.open(f"for (int n = 0; n < {numbers}; ++n) {{")
    picked = _scattered(function, node, kernel, names)
    kernel.line(f"if (at == {names[axis]}) all += {picked};")
    kernel.close()
    kernel.line(f"{kernel.memory(value, True)}[k] = all;")
    function.launch_elements(kernel, count)


def _scatter_columns(function: FunctionText, node: Node, count: Size, numbers: Size, size: Size) -> None:
    """One thread for each column of the result, which goes through the indices."""
    (value,), axis = node.outputs, node.attrs["axis"]
    function.clear(value)
    names = {a: f"k{a}" for a in range(value.ndim) if a != axis}
    kernel = function.elements(count, [value.shape[a] for a in names], list(names.values()))
    kernel.open(f"for (dy_index n = 0; n < {numbers}; ++n) {{")
    picked = _scattered(function, node, kernel, names)
    strides = compact_strides(value.shape)
    to = address(0, [(name, strides[a]) for a, name in names.items()] + [("at", strides[axis])])
    place = f"{kernel.memory(value, True)}[{to}]"
    kernel.line(f"{place} = {loaded(place, value.dtype)} + {picked};")
    kernel.close()
    function.launch_elements(kernel, count)


def _pick(function: FunctionText, node: Node) -> None:
    """Elements by arrays of indices: the axes that these make stand together, in front if they are apart in the index."""
    (value,), (x, *numbers), index = node.outputs, node.inputs, node.attrs["index"]
    together = functools.reduce(broadcast_shapes, [array.shape for array in numbers])
    places = [place for place, entry in enumerate(index) if not (entry is None or isinstance(entry, tuple))]
    before = places[0] if places[-1] - places[0] < len(places) else 0
    names = [f"k{a}" for a in range(value.ndim)]
    kernel = function.elements(math.prod(value.shape), value.shape, names)
    common, others = names[before:before + len(together)], iter(names[:before] + names[before + len(together):])
    where: Dict[int, str] = {}
    arrays, axis = iter(numbers), 0
    for entry in index:
        if entry is None:
            next(others)
            continue
        if isinstance(entry, tuple):
            where[axis] = f"{entry[0]} + {next(others)} * {entry[2]}"
        elif entry == AT:
            array = next(arrays)
            at = {a: name for a, (name, n) in enumerate(zip(common[len(common) - array.ndim:], array.shape)) if n != 1}
            wrapped(kernel, f"at{axis}", element(function, kernel, array, at), x.shape[axis])
            where[axis] = f"at{axis}"
        else:
            where[axis] = str(entry)
        axis += 1
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
    "constant": _constant, "arange": _arange, "philox": _philox, "take": _take, "take_along": _take_along, "add_along": _add_along,
    "scatter_add": _scatter_add, "pick": _pick, "argmax": _argument, "argmin": _argument,
    **JOINS, **WINDOWS, **SCANS, **WRITES}

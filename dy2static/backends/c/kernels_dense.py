"""Nodes that are no loop over elements: copies of views, parts of arrays, joins; each writes its own lines."""
from __future__ import annotations

from typing import Any, Dict, List

import numpy as np

from ...ir.c_forms import c_constant, c_type
from ...ir.graph import Node
from ...ir.template import AT, is_window
from ..loops.layout import Place, compact_strides, indexed, place_of
from .draws import STANDALONE_DRAWS, write_draw
from .emitter import Emitter, Rule
from .kernels_blocks import BLOCKS
from .kernels_convolution import CONVOLUTIONS
from .kernels_indexing import AXES
from .kernels_picking import PICKS, Part
from .kernels_pooling import WINDOWS
from .kernels_products import PRODUCTS
from .kernels_sequences import SEQUENCES
from .kernels_sorting import ORDERS
from .lists import LISTS
from .nests import checked_index, fill_around, zeros

#: Tables above this size are constants of a text without Python.
_SMALL_TABLE = 8
_ITEMS_OF_LINE = 12


def _reshape(emitter: Emitter, node: Node) -> None:
    """A copy in the order of elements, for strides that cannot say it."""
    (value,), (operand,) = node.outputs, node.inputs
    shape = operand.shape
    emitter.copy(Place(value, shape, compact_strides(shape)), emitter.place(operand), emitter.name(value))


def _check_numbers(emitter: Emitter, node: Node, names: List[str], shape: Any) -> None:
    """Write the numbers of an index as C variables, and what leaves the call to NumPy if one is not inside of the array."""
    axes = zip([entry for entry in node.attrs["index"] if entry is not None], shape)
    counted = [(entry, size) for entry, size in axes if entry == AT or is_window(entry)]
    for name, number, (entry, size) in zip(names, node.inputs[1:], counted):
        emitter.line(f"int64_t {name} = (int64_t){emitter.scalar(number)};")
        if is_window(entry):
            emitter.line(f"if ({name} < 0 || {name} + {entry[1]} > {size}) goto bail;")
            continue
        emitter.line(f"if ({name} < 0) {name} += {size};")
        emitter.line(f"if ((uint64_t){name} >= (uint64_t){size}) goto bail;")


def _getitem_at(emitter: Emitter, node: Node) -> None:
    (value,) = node.outputs
    place = emitter.place(value)
    before = len(emitter.place(node.inputs[0]).terms)
    names = [name for name, _ in place.terms[before:]]
    _check_numbers(emitter, node, names, node.inputs[0].shape)


def _scatter_slice(emitter: Emitter, node: Node) -> None:
    (value,), index = node.outputs, node.attrs["index"]
    fill_around(emitter, value, index, 0)
    emitter.copy(indexed(place_of(value), index), emitter.place(node.inputs[0]), emitter.name(value))


def _scatter_at(emitter: Emitter, node: Node) -> None:
    (value,) = node.outputs
    names = [emitter.variable("at", "const int64_t") for _ in node.inputs[1:]]
    _check_numbers(emitter, node, names, value.shape)
    pointer = zeros(emitter, value)
    emitter.copy(indexed(place_of(value), node.attrs["index"], names), emitter.place(node.inputs[0]), pointer)


def _put(emitter: Emitter, node: Node) -> None:
    (value,), (contents, item, *numbers), index = node.outputs, node.inputs, node.attrs["index"]
    pointer = emitter.name(value)
    place = emitter.place(contents)
    if place.base is not contents or emitter.name(contents) != pointer:         # else it has been made there
        emitter.copy(place_of(value), place, pointer)
    if any(n.ndim for n in numbers):
        source = emitter.pointer(item)
        Part.of(value.shape, numbers, index).write(emitter, lambda here, there: f"{pointer}[{there}] = {source}[{here}];")
        return
    names = [emitter.variable("at", "const int64_t") for _ in numbers]
    sizes = [size for entry, size in zip([entry for entry in index if entry is not None], value.shape) if entry == AT]
    for name, number, size in zip(names, numbers, sizes):
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
    """A table; a region has only small ones, which are written element by element."""
    (value,) = node.outputs
    items = [c_constant(item, value.dtype) for item in np.ravel(node.attrs["value"])]
    if emitter.standalone is not None and len(items) > _SMALL_TABLE:
        type = c_type(value.dtype)
        name = emitter.variable(value.name, f"const {type} *")
        emitter.line(f"static const {type} {name}[] = {{")
        for k in range(0, len(items), _ITEMS_OF_LINE):
            emitter.line(f"    {', '.join(items[k:k + _ITEMS_OF_LINE])},")
        emitter.line("};")
        emitter.put_at(value, name)
        return
    pointer = emitter.name(value)
    for k, item in enumerate(items):
        emitter.line(f"{pointer}[{k}] = {item};")


def _arange(emitter: Emitter, node: Node) -> None:
    (value,) = node.outputs
    pointer, type = emitter.name(value), c_type(value.dtype)
    start, step = node.attrs["start"], node.attrs["step"]
    emitter.part([f"    for (int64_t k = 0; k < {value.shape[0]}; ++k)",
                  f"        {pointer}[k] = ({type})({start} + k * ({step}));"])


def _raise(emitter: Emitter, node: Node) -> None:
    emitter.line("goto bail;")


#: Ops by name.
ALONE: Dict[str, Rule] = {
    "raise_": _raise,
    "reshape": _reshape, "getitem_at": _getitem_at, "scatter_slice": _scatter_slice, "scatter_at": _scatter_at, "put": _put,
    "concat": _concat, "stack": _stack, "constant": _constant, "arange": _arange, **dict.fromkeys(STANDALONE_DRAWS, write_draw),
    **PRODUCTS, **AXES, **PICKS, **ORDERS, **SEQUENCES, **LISTS, **WINDOWS, **CONVOLUTIONS, **BLOCKS}

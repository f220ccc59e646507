"""Lists whose length only the run knows: items of one shape side by side in memory that grows (`dy2static_lists.h`).

A list is a C value: where its items are, and how many.  Lists that were made of one another share memory; none is ever
changed, so an append is in place if nobody else has appended there before.  In the gradient of a list, what
the ops call None is zeros.
"""
from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Callable, Dict, List

import numpy as np

from ...ir.c_forms import c_type
from ...ir.graph import Node, Value
from ...ir.types import List as ListType
from ...ir.types import Scalar, Tensor
from .extents import name_of
from .nests import checked_index
from .places import Place, place_of
from .scalars import is_number, scalar_type

#: What stands for the call that frees lists nobody has; which lists there are is known in the end.
SWEEP = "DY_SWEEP"


def is_list(value: Value) -> bool:
    """Whether a value is a list."""
    return isinstance(value.type, ListType)


def has_list(node: Node) -> bool:
    """Whether a node reads or gives lists."""
    return any(map(is_list, (*node.inputs, *node.outputs)))


def has_memory_form(type: ListType) -> bool:
    """Whether the items are numbers, or arrays of one known shape."""
    elem = type.elem
    if isinstance(elem, Tensor):
        return c_type(elem.dtype) is not None and all(isinstance(n, int) and n for n in elem.shape)
    return isinstance(elem, Scalar) and elem.kind != "numpy"


def nbytes(type: ListType) -> int:
    """The size of an item."""
    return math.prod(type.elem.shape) * type.elem.dtype.itemsize


def takes(node: Node) -> bool:
    """Whether there is a rule for a node."""
    return node.op.name in LISTS and all(is_list(v) or isinstance(v.type, (Tensor, Scalar)) for v in node.inputs)


# Between Python and C -----------------------------------------------------------------------------------------------


def as_array(items: List[Any], type: Any) -> np.ndarray:
    """A list of Python's, or a stack that is one, for native code: zeros for what is None."""
    elem = type.elem
    if None not in map(_none, items):
        return np.array(items, elem.dtype).reshape(len(items), *elem.shape)
    result = np.zeros((len(items), *elem.shape), elem.dtype)
    for k, item in enumerate(items):
        if item is not None:
            result[k] = item
    return result


def _none(item: Any) -> Any:
    return None if item is None else 0


def as_items(data: Any, type: ListType) -> List[Any]:
    """A list of native code for Python."""
    items = np.frombuffer(data, type.elem.dtype).reshape(-1, *type.elem.shape)
    return items.tolist() if isinstance(type.elem, Scalar) else [item.copy() for item in items]


def grown(data: Any, dtype: np.dtype, shape: Any) -> np.ndarray:
    """An array whose size native code found out."""
    return np.frombuffer(data, dtype).reshape(shape)


# Text ---------------------------------------------------------------------------------------------------------------


def _call(writer: Any, node: Node, text: str) -> None:
    """The result is what a function of the header gives; without memory it has none."""
    name = writer.local(node.outputs[0])
    writer.line(f"{name} = {text};")
    writer.line(f"if ({name}.count < 0) goto bail;")


def _address(writer: Any, item: Value) -> str:
    """The item in memory: a pointer."""
    if is_number(item):
        name = writer.variable("item")
        writer.line(f"const {scalar_type(item.type)} {name} = {writer.scalar(item)};")
        return f"&{name}"
    return writer.pointer(item)


def _take(writer: Any, value: Value, source: str) -> None:
    """Define an item by what is there; a null pointer: zeros."""
    if is_number(value):
        type = scalar_type(value.type)
        name = writer.variable("from")
        writer.line(f"const {type} *const {name} = {source};")
        writer.line(f"const {type} {writer.local(value)} = {name} ? *{name} : 0;")
        if writer.stored(value):
            writer.line(f"{writer.name(value)}[0] = {writer.local(value)};")
    else:
        size = math.prod(value.shape) * value.dtype.itemsize
        writer.line(f"dy_item({writer.name(value)}, {source}, {size});")


def _appended(writer: Any, name: str, items: str, source: str, size: int) -> None:
    writer.line(f"{name} = dy_list_append(&{writer.storages}, {items}, {source}, {size});")
    writer.line(f"if ({name}.count < 0) goto bail;")


def _new(writer: Any, node: Node) -> None:
    (value,) = node.outputs
    name = writer.local(value)
    writer.line(f"{name} = (dy_list){{0}};")
    for item in node.inputs:
        _appended(writer, name, name, _address(writer, item), nbytes(value.type))


def _append(writer: Any, node: Node) -> None:
    (value,), (items, item) = node.outputs, node.inputs
    source = _address(writer, item)
    _appended(writer, writer.local(value), writer.local(items), source, nbytes(value.type))


def _get(writer: Any, node: Node) -> None:
    (value,), (items, index) = node.outputs, node.inputs
    name, at = writer.local(items), writer.variable("at")
    checked_index(writer, at, writer.scalar(index), f"{name}.count")
    _take(writer, value, f"(const void *)({name}.data + {at} * {nbytes(items.type)})")


def _length(writer: Any, node: Node) -> None:
    writer.line(f"const int64_t {writer.local(node.outputs[0])} = {writer.local(node.inputs[0])}.count;")


def _pop(writer: Any, node: Node) -> None:
    name, items = writer.local(node.outputs[0]), writer.local(node.inputs[0])
    writer.line(f"if (!{items}.count) goto bail;")
    writer.line(f"{name} = {items};")
    writer.line(f"--{name}.count;")


def _rest(writer: Any, node: Node) -> None:
    name, items = writer.local(node.outputs[0]), writer.local(node.inputs[0])
    writer.line(f"{name} = {items};")
    writer.line(f"{name}.count -= {name}.count > 0;")


def _zeros(writer: Any, node: Node) -> None:
    writer.line(f"{writer.local(node.outputs[0])} = (dy_list){{0}};")


def _last(writer: Any, node: Node) -> None:
    items = writer.local(node.inputs[0])
    size = nbytes(node.inputs[0].type)
    _take(writer, node.outputs[0], f"{items}.count ? (const void *)({items}.data + ({items}.count - 1) * {size}) : 0")


def _part(writer: Any, node: Node) -> None:
    items, size = writer.local(node.inputs[0]), nbytes(node.inputs[0].type)
    _take(writer, node.outputs[0], f"{items}.count ? (const void *)({items}.data + {node.attrs['index'] * size}) : 0")


def _taken(writer: Any, node: Node) -> None:
    items, index = node.inputs[0], node.inputs[2]
    name, at = writer.local(items), writer.variable("at")
    writer.line(f"int64_t {at} = {writer.scalar(index)};")
    writer.line(f"if ({at} < 0) {at} += {name}.count;")
    writer.line(f"if ({name}.count && (uint64_t){at} >= (uint64_t){name}.count) goto bail;")
    _take(writer, node.outputs[0], f"{name}.count ? (const void *)({name}.data + {at} * {nbytes(items.type)}) : 0")


def _of_zeros(writer: Any, node: Node, count: str, at: str) -> None:
    """A list of zeros but for one item; none where there are none."""
    (value,), item = node.outputs, node.inputs[0]
    source = _address(writer, item)
    _call(writer, node, f"dy_list_single(&{writer.storages}, {count}, {at}, {source}, {nbytes(value.type)})")


def _alone(writer: Any, node: Node) -> None:
    _of_zeros(writer, node, str(node.attrs["count"]), str(node.attrs["index"]))


def _as_last(writer: Any, node: Node) -> None:
    items = writer.local(node.inputs[1])
    _of_zeros(writer, node, f"{items}.count", f"{items}.count - 1")


def _put(writer: Any, node: Node) -> None:
    items, at = writer.local(node.inputs[1]), writer.variable("at")
    writer.line(f"int64_t {at} = {writer.scalar(node.inputs[2])};")
    writer.line(f"if ({at} < 0) {at} += {items}.count;")
    writer.line(f"if ({items}.count && (uint64_t){at} >= (uint64_t){items}.count) goto bail;")
    _of_zeros(writer, node, f"{items}.count", at)


def _one_more(writer: Any, node: Node) -> None:
    name, items = writer.local(node.outputs[0]), writer.local(node.inputs[0])
    writer.line(f"{name} = {items};")
    writer.line(f"if ({items}.count) {{")
    writer.depth += 1
    _appended(writer, name, items, "0", nbytes(node.inputs[0].type))
    writer.depth -= 1
    writer.line("}")


def _add(writer: Any, node: Node) -> None:
    (value,), (a, b) = node.outputs, map(writer.local, node.inputs)
    type = c_type(value.type.elem.dtype)
    name, size = writer.local(value), nbytes(value.type)
    count = math.prod(value.type.elem.shape)
    writer.line(f"{name} = {a}.count ? {a} : {b};")
    writer.line(f"if ({a}.count && {b}.count) {{")
    writer.line(f"    if ({a}.count != {b}.count) goto bail;")
    writer.line(f"    {name} = dy_list_of(&{writer.storages}, {a}.count, {size});")
    writer.line(f"    if ({name}.count < 0) goto bail;")
    writer.line(f"    for (int64_t k = 0; k < {a}.count * {count}; ++k)")
    writer.line(f"        (({type} *){name}.data)[k] = ((const {type} *){a}.data)[k] + ((const {type} *){b}.data)[k];")
    writer.line("}")


def _items_pointer(writer: Any, items: Value) -> str:
    """The items of a list as an array, under a name that functions of loops are given."""
    type = c_type(items.type.elem.dtype)
    name = writer.variable("items")
    writer.types[name] = f"{type} *"
    writer.line(f"{type} *const {name} = ({type} *){writer.local(items)}.data;")
    return name


def _in_order(place: Place, axis: int) -> Place:
    """The elements of an array of all items in the order of the list."""
    shape, strides = ((x[axis], *x[:axis], *x[axis + 1:]) for x in (place.shape, place.strides))
    return replace(place, shape=shape, strides=strides)


def _from_items(writer: Any, value: Value, items: Value, axis: int) -> None:
    target = _in_order(place_of(value), axis)
    source = Value(Tensor(target.shape, value.dtype), "items")
    writer.pointers[source] = _items_pointer(writer, items)
    writer.copy(target, place_of(source), writer.name(value))


def _stack(writer: Any, node: Node) -> None:
    (value,), (items,) = node.outputs, node.inputs
    (extent,) = node.attrs["extent"].symbols
    symbol = name_of(extent)
    writer.line(f"{symbol} = {writer.local(items)}.count;")
    writer.line(f"if (!{symbol}) goto bail;")
    writer.size_is_known(extent)
    _from_items(writer, value, items, node.attrs["axis"])


def _unstack(writer: Any, node: Node) -> None:
    (value,), (x,), axis = node.outputs, node.inputs, node.attrs["axis"]
    name = writer.local(value)
    _call(writer, node, f"dy_list_of(&{writer.storages}, {x.shape[axis]}, {nbytes(value.type)})")
    source = _in_order(writer.place(x), axis)
    target = Value(Tensor(source.shape, x.dtype), name)
    pointer = writer.pointers[target] = _items_pointer(writer, value)
    writer.copy(place_of(target), source, pointer)


def _join(writer: Any, node: Node) -> None:
    (value,), (items, _), axis = node.outputs, node.inputs, node.attrs["axis"]
    size = value.type.size * value.dtype.itemsize
    writer.line(f"if ({writer.local(items)}.count && {writer.local(items)}.count != {value.shape[axis]}) goto bail;")
    pointer = writer.name(value)
    writer.line(f"if (!{writer.local(items)}.count) memset({pointer}, 0, {size});")
    writer.line("else {")
    writer.depth += 1
    _from_items(writer, value, items, axis)
    writer.depth -= 1
    writer.line("}")


#: Ops by name.
LISTS: Dict[str, Callable[[Any, Node], None]] = {
    "list_new": _new, "list_append": _append, "list_get": _get, "list_len": _length, "list_pop": _pop, "list_zeros": _zeros,
    "list_part": _part, "list_alone": _alone, "list_rest": _rest, "list_last": _last, "list_as_last": _as_last,
    "list_grown": _one_more, "list_put": _put, "list_taken": _taken, "list_add": _add, "list_stack": _stack,
    "list_unstack": _unstack, "list_join": _join}


def headers(text: str) -> str:
    """The lines of C in front of a text with lists."""
    return '#include "dy2static_lists.h"\n' if "dy_list " in text else ""

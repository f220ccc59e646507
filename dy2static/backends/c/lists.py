"""Lists whose length only the run knows: items of one shape side by side in memory that grows (`dy2static_lists.h`).

A list is a C value: where its items are, and how many.  Lists that were made of one another share memory; none is ever
changed, so an append is in place if nothing else has been appended there before.  In the gradient of a list, what
the ops call None is zeros, with a mark.
"""
from __future__ import annotations

import math
from dataclasses import replace
from typing import Collection, Dict

from ...ir.c_forms import c_type
from ...ir.graph import Node, Value
from ...ir.types import List as ListType
from ...ir.types import Scalar, Tensor, python_scalar
from ..flatten import Block
from ..loops.layout import Place, place_of
from ..run_sizes import name_of
from .emitter import Emitter, FlowEmitter, Rule
from .nests import block, checked_index
from .scalars import is_number, scalar_type

_BOOL = python_scalar("py_bool")


def is_list(value: Value) -> bool:
    """Whether a value is a list."""
    return isinstance(value.type, ListType)


def has_list(node: Node) -> bool:
    """Whether a node reads or gives lists."""
    return any(map(is_list, (*node.inputs, *node.outputs)))


def has_memory_form(type: ListType, any_items: bool = False) -> bool:
    """Whether the items are numbers, or arrays of one known shape.  any_items: or of one that only the run knows."""
    elem = type.elem
    if isinstance(elem, Tensor):
        return c_type(elem.dtype) is not None and all(n if isinstance(n, int) else any_items for n in elem.shape)
    return isinstance(elem, Scalar) and (elem.kind != "numpy" or c_type(elem.dtype) is not None)


def nbytes(type: ListType) -> int:
    """The size of an item."""
    return math.prod(type.elem.shape) * type.elem.dtype.itemsize


def takes(node: Node, standalone: bool) -> bool:
    """Whether there is a rule for a node.  standalone: in a function that no Python stands behind."""
    has_rule = node.op.name in LISTS and (standalone or node.op.name not in _STANDALONE)
    return has_rule and all(is_list(v) or isinstance(v.type, (Tensor, Scalar)) for v in node.inputs)


# Text ---------------------------------------------------------------------------------------------------------------


def _call(emitter: Emitter, node: Node, text: str) -> None:
    """The result is what a function of the header gives; without memory it has none."""
    name = emitter.local(node.outputs[0])
    emitter.line(f"{name} = {text};")
    emitter.line(f"if ({name}.count < 0) goto bail;")


def _address(emitter: Emitter, item: Value) -> str:
    """The item in memory: a pointer."""
    if is_number(item):
        name = emitter.variable("item")
        emitter.line(f"const {scalar_type(item.type)} {name} = {emitter.scalar(item)};")
        return f"&{name}"
    return emitter.pointer(item)


def _take(emitter: Emitter, value: Value, source: str) -> None:
    """Define an item by what is there; a null pointer: zeros."""
    if is_number(value):
        type = scalar_type(value.type)
        name = emitter.variable("from")
        emitter.line(f"const {type} *const {name} = {source};")
        emitter.line(f"const {type} {emitter.local(value)} = {name} ? *{name} : 0;")
        if emitter.stored(value):
            emitter.line(f"{emitter.name(value)}[0] = {emitter.local(value)};")
    else:
        size = math.prod(value.shape) * value.dtype.itemsize
        emitter.line(f"dy_item({emitter.name(value)}, {source}, {size});")


def _appended(emitter: Emitter, name: str, items: str, source: str, size: int) -> None:
    emitter.line(f"{name} = dy_list_append(&{emitter.storages}, {items}, {source}, {size});")
    emitter.line(f"if ({name}.count < 0) goto bail;")


def _new(emitter: Emitter, node: Node) -> None:
    (value,) = node.outputs
    name = emitter.local(value)
    emitter.line(f"{name} = (dy_list){{0}};")
    for item in node.inputs:
        _appended(emitter, name, name, _address(emitter, item), nbytes(value.type))


def _append(emitter: Emitter, node: Node) -> None:
    (value,), (items, item) = node.outputs, node.inputs
    source = _address(emitter, item)
    _appended(emitter, emitter.local(value), emitter.local(items), source, nbytes(value.type))


def make_items_in_place(emitter: FlowEmitter, block: Block, carried: Collection[Value], made: Collection[Value]) -> None:
    """Let an array that an iteration makes and appends to a list that the loop carries be made there.

    made: the arrays of the block with memory of their own.  Nothing else may be done with lists before the append.
    """
    for step in block.steps:
        if not (step.blocks or has_list(step.node)):
            continue
        if step.node.op.name == "list_append":
            items, item = step.node.inputs
            if items in carried and item in made and not is_number(item) and not emitter.has_memory(item):
                _make_behind(emitter, items, item)
        return


def _make_behind(emitter: FlowEmitter, items: Value, item: Value) -> None:
    name, type, size = emitter.local(items), c_type(item.dtype), nbytes(items.type)
    emitter.line(f"{name} = dy_list_with_room(&{emitter.storages}, {name}, {size});")
    emitter.line(f"if ({name}.count < 0) goto bail;")
    pointer = emitter.variable("item", f"{type} *")
    emitter.line(f"{type} *const {pointer} = ({type} *)({name}.data + {name}.count * {size});")
    emitter.put_at(item, pointer)


def _get(emitter: Emitter, node: Node) -> None:
    (value,), (items, index) = node.outputs, node.inputs
    name, at = emitter.local(items), emitter.variable("at")
    checked_index(emitter, at, emitter.scalar(index), f"{name}.count")
    _take(emitter, value, f"(const void *)({name}.data + {at} * {nbytes(items.type)})")


def _length(emitter: Emitter, node: Node) -> None:
    emitter.line(f"const int64_t {emitter.local(node.outputs[0])} = {emitter.local(node.inputs[0])}.count;")


def _pop(emitter: Emitter, node: Node) -> None:
    name, items = emitter.local(node.outputs[0]), emitter.local(node.inputs[0])
    emitter.line(f"if (!{items}.count) goto bail;")
    emitter.line(f"{name} = {items};")
    emitter.line(f"--{name}.count;")


def _rest(emitter: Emitter, node: Node) -> None:
    name, items = emitter.local(node.outputs[0]), emitter.local(node.inputs[0])
    emitter.line(f"{name} = {items};")
    emitter.line(f"{name}.count -= {name}.count > 0;")


def _slice(emitter: Emitter, node: Node) -> None:
    items, start, stop = node.inputs
    ends = f"{emitter.scalar(start)}, {emitter.scalar(stop)}, {node.attrs['step']}"
    _call(emitter, node, f"dy_list_slice(&{emitter.storages}, {emitter.local(items)}, {ends}, {nbytes(items.type)})")


def _extend(emitter: Emitter, node: Node) -> None:
    a, b = map(emitter.local, node.inputs)
    _call(emitter, node, f"dy_list_extend(&{emitter.storages}, {a}, {b}, {nbytes(node.inputs[0].type)})")


def _zeros(emitter: Emitter, node: Node) -> None:
    emitter.line(f"{emitter.local(node.outputs[0])} = (dy_list){{0}};")


def _last(emitter: Emitter, node: Node) -> None:
    items = emitter.local(node.inputs[0])
    size = nbytes(node.inputs[0].type)
    _take(emitter, node.outputs[0], f"{items}.count ? (const void *)({items}.data + ({items}.count - 1) * {size}) : 0")


def _part(emitter: Emitter, node: Node) -> None:
    items, size = emitter.local(node.inputs[0]), nbytes(node.inputs[0].type)
    _take(emitter, node.outputs[0], f"{items}.count ? (const void *)({items}.data + {node.attrs['index'] * size}) : 0")


def _taken(emitter: Emitter, node: Node) -> None:
    items, index = node.inputs[0], node.inputs[2]
    name, at = emitter.local(items), emitter.variable("at")
    emitter.line(f"int64_t {at} = {emitter.scalar(index)};")
    emitter.line(f"if ({at} < 0) {at} += {name}.count;")
    emitter.line(f"if ({name}.count && (uint64_t){at} >= (uint64_t){name}.count) goto bail;")
    _take(emitter, node.outputs[0], f"{name}.count ? (const void *)({name}.data + {at} * {nbytes(items.type)}) : 0")


def _if_there(emitter: Emitter, node: Node, source: str) -> str:
    """A pointer to a gradient, or null where the last operand says that it is not there."""
    there = [v for v in node.inputs if v.type == _BOOL]
    return f"({emitter.scalar(there[0])} ? {source} : 0)" if there else source


def _has(emitter: Emitter, node: Node) -> None:
    items, at = emitter.local(node.inputs[0]), emitter.variable("at")
    emitter.line(f"int64_t {at} = {emitter.scalar(node.inputs[1])};")
    emitter.line(f"if ({at} < 0) {at} += {items}.count;")
    emitter.line(f"if ({items}.count && (uint64_t){at} >= (uint64_t){items}.count) goto bail;")
    _truth(emitter, node.outputs[0], f"dy_list_has({items}, {at})")


def _has_any(emitter: Emitter, node: Node) -> None:
    _truth(emitter, node.outputs[0], f"dy_list_has_any({emitter.local(node.inputs[0])})")


def _truth(emitter: Emitter, value: Value, text: str) -> None:
    emitter.line(f"const {scalar_type(value.type)} {emitter.local(value)} = {text};")
    if emitter.stored(value):
        emitter.line(f"{emitter.name(value)}[0] = {emitter.local(value)};")


def _of_zeros(emitter: Emitter, node: Node, count: str, at: str) -> None:
    """A list of zeros but for one item; none where there are none."""
    (value,), item = node.outputs, node.inputs[0]
    source = _if_there(emitter, node, _address(emitter, item))
    _call(emitter, node, f"dy_list_single(&{emitter.storages}, {count}, {at}, {source}, {nbytes(value.type)})")


def _alone(emitter: Emitter, node: Node) -> None:
    _of_zeros(emitter, node, str(node.attrs["count"]), str(node.attrs["index"]))


def _as_last(emitter: Emitter, node: Node) -> None:
    items = emitter.local(node.inputs[1])
    _of_zeros(emitter, node, f"{items}.count", f"{items}.count - 1")


def _put(emitter: Emitter, node: Node) -> None:
    items, at = emitter.local(node.inputs[1]), emitter.variable("at")
    emitter.line(f"int64_t {at} = {emitter.scalar(node.inputs[2])};")
    emitter.line(f"if ({at} < 0) {at} += {items}.count;")
    emitter.line(f"if ({items}.count && (uint64_t){at} >= (uint64_t){items}.count) goto bail;")
    _of_zeros(emitter, node, f"{items}.count", at)


def _one_more(emitter: Emitter, node: Node) -> None:
    name, items = emitter.local(node.outputs[0]), emitter.local(node.inputs[0])
    emitter.line(f"{name} = {items};")
    with block(emitter, f"if ({items}.count) {{"):
        _appended(emitter, name, items, "0", nbytes(node.inputs[0].type))


def _add(emitter: Emitter, node: Node) -> None:
    (value,), (a, b) = node.outputs, map(emitter.local, node.inputs)
    type = c_type(value.type.elem.dtype)
    name, size = emitter.local(value), nbytes(value.type)
    count = math.prod(value.type.elem.shape)
    emitter.line(f"{name} = {a}.count ? {a} : {b};")
    emitter.line(f"if ({a}.count && {b}.count) {{")
    emitter.line(f"    {name} = dy_list_either(&{emitter.storages}, {a}, {b}, {size});")
    emitter.line(f"    if ({name}.count < 0) goto bail;")
    emitter.line(f"    for (int64_t k = 0; k < {a}.count * {count}; ++k)")
    emitter.line(f"        (({type} *){name}.data)[k] = ((const {type} *){a}.data)[k] + ((const {type} *){b}.data)[k];")
    emitter.line("}")


def _items_pointer(emitter: Emitter, items: Value) -> str:
    """The items of a list as an array, under a name that functions of loops are given."""
    type = c_type(items.type.elem.dtype)
    name = emitter.variable("items", f"{type} *")
    emitter.line(f"{type} *const {name} = ({type} *){emitter.local(items)}.data;")
    return name


def _in_order(place: Place, axis: int) -> Place:
    """The elements of an array of all items in the order of the list."""
    shape, strides = ((x[axis], *x[:axis], *x[axis + 1:]) for x in (place.shape, place.strides))
    return replace(place, shape=shape, strides=strides)


def _from_items(emitter: Emitter, value: Value, items: Value, axis: int) -> None:
    target = _in_order(place_of(value), axis)
    source = Value(Tensor(target.shape, value.dtype), "items")
    emitter.put_at(source, _items_pointer(emitter, items))
    emitter.copy(target, place_of(source), emitter.name(value))


def _stack(emitter: Emitter, node: Node) -> None:
    (value,), (items,), axis = node.outputs, node.inputs, node.attrs.get("axis", 0)
    (extent,) = node.attrs["extent"].symbols
    symbol = name_of(extent)
    emitter.line(f"{symbol} = {emitter.local(items)}.count;")
    emitter.line(f"if (!{symbol}) goto bail;")
    emitter.size_is_known(extent)
    if node.attrs.get("size") is not None:
        emitter.line(f"if ({symbol} != {value.shape[axis]}) goto bail;")
    if axis == 0 and not emitter.has_memory(value):
        emitter.put_at(value, _items_pointer(emitter, items))   # nothing changes items, which stay as long as the list is named
    else:
        _from_items(emitter, value, items, axis)


def _unstack(emitter: Emitter, node: Node) -> None:
    (value,), (x, *there), axis = node.outputs, node.inputs, node.attrs.get("axis", 0)
    name = emitter.local(value)
    _call(emitter, node, f"dy_list_of(&{emitter.storages}, {x.shape[axis]}, {nbytes(value.type)})")
    source = _in_order(emitter.place(x), axis)
    target = Value(Tensor(source.shape, x.dtype), name)
    pointer = _items_pointer(emitter, value)
    emitter.copy(place_of(target), source, pointer)
    for value in there:
        emitter.line(f"if (!{emitter.scalar(value)}) {name}.count = 0;")


def _join(emitter: Emitter, node: Node) -> None:
    (value,), (items, _), axis = node.outputs, node.inputs, node.attrs["axis"]
    size = value.type.size * value.dtype.itemsize
    emitter.line(f"if ({emitter.local(items)}.count && {emitter.local(items)}.count != {value.shape[axis]}) goto bail;")
    pointer = emitter.name(value)
    emitter.line(f"if (!{emitter.local(items)}.count) memset({pointer}, 0, {size});")
    with block(emitter, "else {"):
        _from_items(emitter, value, items, axis)


#: Ops by name.
LISTS: Dict[str, Rule] = {
    "list_new": _new, "list_append": _append, "list_get": _get, "list_len": _length, "list_pop": _pop, "list_zeros": _zeros,
    "list_part": _part, "list_alone": _alone, "list_rest": _rest, "list_last": _last, "list_as_last": _as_last,
    "list_grown": _one_more, "list_put": _put, "list_taken": _taken, "list_add": _add, "list_stack": _stack,
    "list_array": _stack, "list_slice": _slice, "list_extend": _extend,
    "list_unstack": _unstack, "list_numbers": _unstack, "list_join": _join, "list_has": _has, "list_has_any": _has_any}

#: Those that NumPy computes where Python stands behind: their gradients are not written in C.
_STANDALONE = ("list_slice", "list_extend")


def headers(text: str) -> str:
    """The lines of C in front of a text with lists."""
    return '#include "dy2static_lists.h"\n' if "dy_list " in text else ""

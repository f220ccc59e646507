"""Elements by index along an axis, on diagonals, beside others: each op writes its own loops."""
from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Callable, Dict, Optional, Sequence, Tuple

import numpy as np

from ...ir.c_forms import c_type
from ...ir.dims import is_known
from ...ir.graph import Node, Value
from ..loops.layout import Place, broadcast, compact_strides, indexed, place_of
from .emitter import Emitter, Rule
from .nests import along, checked_index, loops, zeros

#: Nanoseconds of a step that waits for the one before it.
_STEP = 1


def _around(shape: Sequence[int], axis: int) -> Tuple[int, int, int]:
    """How many elements are before an axis, along it, and behind it."""
    return math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1:])


# Along an axis ------------------------------------------------------------------------------------------------------


def _take_along(emitter: Emitter, node: Node) -> None:
    (value,), (x, indices), axis = node.outputs, node.inputs, node.attrs["axis"]
    source, chosen, target = emitter.pointer(x), emitter.pointer(indices), emitter.name(value)
    outer, count, inner = _around(indices.shape, axis)
    with emitter.alone(), loops(emitter, "a", (outer, count, inner)) as names:
        here = along(names, (outer, count, inner))
        checked_index(emitter, "to", f"{chosen}[{here}]", x.shape[axis])
        emitter.line(f"{target}[{here}] = {source}[{along((names[0], 'to', names[2]), (outer, x.shape[axis], inner))}];")


def _add_along(emitter: Emitter, node: Node) -> None:
    (value,), (x, indices), axis = node.outputs, node.inputs, node.attrs["axis"]
    source, chosen, target = emitter.pointer(x), emitter.pointer(indices), zeros(emitter, value)
    outer, count, inner = _around(indices.shape, axis)
    with emitter.alone(), loops(emitter, "a", (outer, count, inner)) as names:
        here = along(names, (outer, count, inner))
        checked_index(emitter, "to", f"{chosen}[{here}]", value.shape[axis])
        there = along((names[0], "to", names[2]), (outer, value.shape[axis], inner))
        emitter.line(f"{target}[{there}] {'=' if count == 1 else '+='} {source}[{here}];")


def _argument(emitter: Emitter, node: Node) -> None:
    """The first extremum; the first NaN is one."""
    (value,), (x,), axis = node.outputs, node.inputs, node.attrs["axis"]
    shape = (x.type.size,) if axis is None else x.shape
    outer, count, inner = _around(shape, axis or 0)
    source = emitter.pointer(x)
    target = emitter.name(value) if value.ndim else None
    if target is None:
        emitter.line(f"int64_t {emitter.local(value)} = 0;")
    if inner == 1 and is_known(count) and 0 < count < 2 ** 31:
        _argument_of_rows(emitter, node, source, target)
        return
    sign, opposite = (">", "islessequal") if node.op.name == "argmax" else ("<", "isgreaterequal")
    with loops(emitter, "a", (outer, inner)) as (o, j):
        emitter.line(f"{c_type(x.dtype)} best = {source}[{along((o, '0', j), (outer, count, inner))}];")
        emitter.line("int64_t found = 0;")
        emitter.line(f"for (int64_t c = 1; c < {count}; ++c) {{")
        emitter.line(f"    const {c_type(x.dtype)} item = {source}[{along((o, 'c', j), (outer, count, inner))}];")
        better = f"best == best && !{opposite}(item, best)" if x.dtype.kind == "f" else f"item {sign} best"
        emitter.line(f"    if ({better}) {{ best = item; found = c; }}")
        emitter.line("}")
        emitter.line(f"{target}[{along((o, j), (outer, inner))}] = found;" if target else f"{emitter.local(value)} = found;")
    if target is None and emitter.stored(value):
        emitter.line(f"{emitter.name(value)}[0] = {emitter.local(value)};")


def _argument_of_rows(emitter: Emitter, node: Node, source: str, target: Optional[str]) -> None:
    """The same along memory, in loops of vectors: the extremum as an int in the order of the elements, then its first place."""
    (value,), (x,) = node.outputs, node.inputs
    axis, most = node.attrs["axis"], "max" if node.op.name == "argmax" else "min"
    count = x.type.size if axis is None else x.shape[axis]
    better = ">" if most == "max" else "<"
    size = x.dtype.itemsize * 8
    type = f"int{size}_t" if x.dtype.kind == "f" else "uint8_t" if x.dtype.kind == "b" else c_type(x.dtype)

    def item(index: str) -> str:
        element = f"{source}[{row}{index}]"
        return f"d2s_order_f{size}({element}, INT{size}_{most.upper()})" if x.dtype.kind == "f" else f"({type}){element}"
    with loops(emitter, "a", (x.type.size // count,), count * 0.5 if target else 0) as (o,):
        row = f"{o} * {count} + " if o != "0" else ""
        emitter.line(f"{type} best = {item('0')};")
        emitter.line(f"#pragma omp simd reduction({most}:best)")
        emitter.line(f"for (int32_t c = 1; c < {count}; ++c) {{")
        emitter.line(f"    const {type} item = {item('c')};")
        emitter.line(f"    best = item {better} best ? item : best;")
        emitter.line("}")
        emitter.line(f"int32_t found = {count};")
        emitter.line("#pragma omp simd reduction(min:found)")
        emitter.line(f"for (int32_t c = 0; c < {count}; ++c) {{")
        emitter.line(f"    const int32_t place = {item('c')} == best ? c : {count};")
        emitter.line("    found = place < found ? place : found;")
        emitter.line("}")
        emitter.line(f"{target}[{o}] = found;" if target else f"{emitter.local(value)} = found;")
    if target is None and emitter.stored(value):
        emitter.line(f"{emitter.name(value)}[0] = {emitter.local(value)};")


def _running(combine: Callable[..., str]) -> Rule:
    """A rule for results along an axis, each from the one before and the elements at its place."""
    def rule(emitter: Emitter, node: Node) -> None:
        (value,) = node.outputs
        sources, target = [emitter.pointer(x) for x in node.inputs], emitter.name(value)
        sizes = outer, count, inner = _around(value.shape, node.attrs["axis"])
        if not value.type.size:
            return
        type, turn = c_type(value.dtype), count * inner * _STEP
        if inner == 1:
            with loops(emitter, "a", (outer,), turn) as (o,):
                emitter.line(f"{type} last = {sources[-1]}[{o} * {count}];")
                emitter.line(f"{target}[{o} * {count}] = last;")
                emitter.line(f"for (int64_t c = 1; c < {count}; ++c) {{")
                here = f"{o} * {count} + c"
                emitter.line(f"    last = {combine('last', *(f'{s}[{here}]' for s in sources))};")
                emitter.line(f"    {target}[{here}] = last;")
                emitter.line("}")
            return
        with loops(emitter, "a", (outer,), turn) as (o,):
            emitter.line(f"memcpy({target} + {o} * {count * inner}, {sources[-1]} + {o} * {count * inner}, "
                        f"{inner * value.dtype.itemsize});")
            emitter.line(f"for (int64_t c = 1; c < {count}; ++c)")
            emitter.line(f"    for (int64_t e = 0; e < {inner}; ++e)")
            here = along((o, "c", "e"), sizes)
            item = combine(f"{target}[{here} - {inner}]", *(f"{s}[{here}]" for s in sources))
            emitter.line(f"        {target}[{here}] = {item};")
    return rule


def _part(place: Place, axis: int, start: int, count: int) -> Place:
    shape = place.shape[:axis] + (count,) + place.shape[axis + 1:]
    return replace(place, shape=shape, offset=place.offset + start * place.strides[axis])


def _filled(emitter: Emitter, value: Value, place: Place, number: Any) -> None:
    """Write one number to a part of a value."""
    one = emitter.constant(number, value.dtype)
    emitter.copy(place, broadcast(place_of(one), place.shape), emitter.name(value))


def _shift(emitter: Emitter, node: Node) -> None:
    (value,), (x,), axis, by = node.outputs, node.inputs, node.attrs["axis"], node.attrs["by"]
    count = value.shape[axis]
    if not count:
        return
    here, there, target = place_of(value), emitter.place(x), emitter.name(value)
    back = by > 0
    emitter.copy(_part(here, axis, int(back), count - 1), _part(there, axis, int(not back), count - 1), target)
    _filled(emitter, value, _part(here, axis, 0 if back else count - 1, 1), node.attrs["fill"])


def _pad(emitter: Emitter, node: Node) -> None:
    (value,), (x,) = node.outputs, node.inputs
    number = dict(node.attrs["keywords"]).get("constant_values", 0)
    _filled(emitter, value, place_of(value), number)
    index = tuple((before, before + n, 1) for n, (before, _) in zip(x.shape, node.attrs["width"]))
    emitter.copy(indexed(place_of(value), index), emitter.place(x), emitter.name(value))


# Diagonals ----------------------------------------------------------------------------------------------------------


def _put_diagonal(emitter: Emitter, node: Node) -> None:
    (value,), (x,) = node.outputs, node.inputs
    (row, column), shift = node.attrs["axes"], node.attrs["offset"]
    pointer, strides = zeros(emitter, value), compact_strides(value.shape)
    kept = [a for a in range(value.ndim) if a not in (row, column)]
    offset = shift * strides[column] if shift > 0 else -shift * strides[row]
    place = Place(value, x.shape, (*(strides[a] for a in kept), strides[row] + strides[column]), offset)
    emitter.copy(place, emitter.place(x), pointer)


def _put_diagonals(emitter: Emitter, node: Node) -> None:
    (value,), (x,) = node.outputs, node.inputs
    pointer = zeros(emitter, value)
    steps: Dict[str, int] = {}
    for letter, stride in zip(node.attrs["letters"], compact_strides(value.shape)):
        steps[letter] = steps.get(letter, 0) + stride
    emitter.copy(Place(value, x.shape, tuple(steps.values())), emitter.place(x), pointer)


# Tables -------------------------------------------------------------------------------------------------------------


def _bincount(emitter: Emitter, node: Node) -> None:
    (value,), (x,) = node.outputs, node.inputs
    source, target = emitter.pointer(x), zeros(emitter, value)
    with loops(emitter, "a", x.shape) as (i,):
        emitter.line(f"if ({source}[{i}] < 0) goto bail;")
        emitter.line(f"if ({source}[{i}] < {value.shape[0]}) ++{target}[{source}[{i}]];")


def _weighted(emitter: Emitter, node: Node, size: int, statement: Callable[[str, str, str], str], simd: bool) -> None:
    """For each row, all places of a table of indices; statement: from the place in the row, the index, and the weight."""
    x, indices, weights = node.inputs
    chosen, shares = emitter.pointer(indices), emitter.pointer(weights)
    rows, columns = indices.shape
    checked = emitter.scratch(rows * columns, np.dtype("int32"))
    with loops(emitter, "a", (rows * columns,)) as (place,):
        checked_index(emitter, "to", f"{chosen}[{place}]", size)
        emitter.line(f"{checked}[{place}] = (int32_t)to;")
    with loops(emitter, "c", (x.shape[0], rows), columns) as (i, j):
        if simd:
            emitter.line("#pragma omp simd")
        there = f"{j} * {columns} + k"
        emitter.line(f"for (int64_t k = 0; k < {columns}; ++k) {statement(i, f'{checked}[{there}]', f'{shares}[{there}]')}")


def _weighted_take(emitter: Emitter, node: Node) -> None:
    (value,), x = node.outputs, node.inputs[0]
    source, target = emitter.pointer(x), zeros(emitter, value)
    _weighted(emitter, node, x.shape[1], lambda i, to, share: (
        f"{target}[{i} * {value.shape[1]} + k] += {source}[{i} * {x.shape[1]} + {to}] * {share};"), True)


def _weighted_add(emitter: Emitter, node: Node) -> None:
    (value,), x = node.outputs, node.inputs[0]
    source, target = emitter.pointer(x), zeros(emitter, value)
    _weighted(emitter, node, value.shape[1], lambda i, to, share: (
        f"{target}[{i} * {value.shape[1]} + {to}] += {source}[{i} * {x.shape[1]} + k] * {share};"), False)


#: Ops by name.
AXES: Dict[str, Rule] = {
    "take_along": _take_along, "add_along": _add_along, "argmax": _argument, "argmin": _argument,
    "cumsum": _running(lambda last, x: f"{last} + {x}"), "cumprod": _running(lambda last, x: f"{last} * {x}"),
    "linear_recurrence": _running(lambda last, factor, term: f"{last} * {factor} + {term}"), "shift": _shift, "pad": _pad,
    "put_diagonal": _put_diagonal, "put_diagonals": _put_diagonals, "bincount": _bincount,
    "weighted_take": _weighted_take, "weighted_add": _weighted_add}


def takes(node: Node) -> bool:
    """Whether the rule of a node fits it: some are for numbers only, or for one way to fill."""
    name, value = node.op.name, node.outputs[0]
    if name == "pad":
        number = dict(node.attrs["keywords"]).get("constant_values", 0)
        return node.attrs["mode"] == "constant" and isinstance(number, (int, float)) and (
            value.dtype.kind == "f" or number == 0) and set(dict(node.attrs["keywords"])) <= {"constant_values"}
    return name in ("take_along", "argmax", "argmin", "put_diagonal", "put_diagonals") or value.dtype.kind in "fiu"

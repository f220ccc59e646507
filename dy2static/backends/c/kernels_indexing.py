"""Elements by index along an axis, on diagonals, beside others: each op writes its own loops."""
from __future__ import annotations

import math
from typing import Callable, Dict, Sequence, Tuple

import numpy as np

from ...ir.c_forms import c_type
from ...ir.dims import Size, is_known
from ...ir.graph import Node
from ..loops.layout import Place, compact_strides, indexed, place_of
from .emitter import Emitter, Rule
from .nests import along, block, checked_index, fill, fill_around, loops, part_of, zeros

#: Nanoseconds of a step that waits for the one before it.
_STEP = 1

#: Columns whose extrema are looked for together.
_COLUMNS = 64

#: How functions are called that find extrema of rows; those of numbers are there with AVX2.
_OF_ROWS = {"float32": "f32", "float64": "f64", "int32": "i32", "int64": "i64", "bool": "b8"}


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
    if not is_known(count):
        emitter.line(f"if ({count} < 1) goto bail;")
    if value.ndim and inner != 1:
        _argument_of_columns(emitter, node, (outer, count, inner))
    else:
        _argument_of_rows(emitter, node, outer, count)


def _in_order(node: Node) -> Tuple[str, Callable[[str], str]]:
    """The type of ints in the order of the elements of which a node finds the extremum, and the text of one of them."""
    (x,) = node.inputs
    size, first = x.dtype.itemsize * 8, "MAX" if node.op.name == "argmax" else "MIN"
    if x.dtype.kind == "f":
        return f"int{size}_t", lambda element: f"d2s_order_f{size}({element}, INT{size}_{first})"
    type = "uint8_t" if x.dtype.kind == "b" else c_type(x.dtype)
    return type, lambda element: f"({type}){element}"


def headers(text: str) -> str:
    """The header that a text needs which finds extrema of rows."""
    return '#include "dy2static_arguments.h"\n' if "dy_argmax_" in text or "dy_argmin_" in text else ""


def _argument_of_rows(emitter: Emitter, node: Node, outer: Size, count: Size) -> None:
    """The same along memory, by functions for types that vectors of the CPU compare."""
    (value,), (x,) = node.outputs, node.inputs
    source, target = emitter.pointer(x), emitter.name(value) if value.ndim else None
    called = _OF_ROWS.get(x.dtype.name)
    if target is None:
        emitter.line(f"int64_t {emitter.local(value)} = 0;")
    with loops(emitter, "a", (outer,), count * 0.3 if target and isinstance(count, int) else 0) as (o,):
        row, reached = f"{o} * ({count}) + " if o != "0" else "", f"{target}[{o}]" if target else emitter.local(value)
        call = f"{reached} = dy_{node.op.name}_{called}({source} + {row}0, {count});"
        if called == "b8":
            emitter.line(call)
        else:
            if called is not None:
                for line in ("#ifdef __AVX2__", call, "#else"):
                    emitter.line(line)
            _argument_of_row(emitter, node, count, f"{source}[{row}", reached)
            if called is not None:
                emitter.line("#endif")
    if target is None and emitter.stored(value):
        emitter.line(f"{emitter.name(value)}[0] = {emitter.local(value)};")


def _argument_of_row(emitter: Emitter, node: Node, count: Size, row: str, target: str) -> None:
    """Along one row: the extremum of each of some columns, then the first place of the best one, and what is left over."""
    (type, order), (most, better, place) = _in_order(node), _sought(node, count)
    if isinstance(count, int):
        width = next((n for n in (_COLUMNS, 32, 16) if count % n == 0), 16 if count > 16 else 1)
        many, whole = str(width), str(count // width * width)
    else:
        many, whole = f"{count} < 16 ? 1 : 16", f"{count} < 16 ? {count} : ({count}) / 16 * 16"
    emitter.line(f"const int64_t many = {many}, size = {whole};")
    _best_of_columns(emitter, node, count, "size", "many", lambda c: f"{row}{c} + j]")
    emitter.line(f"{type} most = best[0];")
    emitter.line(f"#pragma omp simd reduction({most}:most)")
    emitter.line(f"for (int j = 0; j < many; ++j) most = best[j] {better} most ? best[j] : most;")
    emitter.line(f"{place} reached = {count};")
    emitter.line("#pragma omp simd reduction(min:reached)")
    with block(emitter, "for (int j = 0; j < many; ++j) {"):
        emitter.line(f"const {place} here = best[j] == most ? found[j] + j : {count};")
        emitter.line("reached = here < reached ? here : reached;")
    with block(emitter, f"for ({place} c = size; c < {count}; ++c) {{"):
        emitter.line(f"const {type} item = {order(f'{row}c]')};")
        emitter.line(f"if (item {better} most) {{ most = item; reached = c; }}")
    emitter.line(f"{target} = reached;")


def _argument_of_columns(emitter: Emitter, node: Node, sizes: Tuple[Size, Size, Size]) -> None:
    """The same across memory: rows of some columns are compared with the best so far."""
    (value,), (x,), (outer, count, inner) = node.outputs, node.inputs, sizes
    source, target = emitter.pointer(x), emitter.name(value)
    with loops(emitter, "a", (outer,), count * inner * 0.3 if isinstance(count, int) and isinstance(inner, int) else 0) as (o,):
        with block(emitter, f"for (int64_t first = 0; first < {inner}; first += {_COLUMNS}) {{"):
            emitter.line(f"const int64_t many = {inner} - first < {_COLUMNS} ? {inner} - first : {_COLUMNS};")
            _best_of_columns(emitter, node, count, str(count), "1", lambda c: f"{source}[{along((o, c, 'first'), sizes)} + j]")
            emitter.line("#pragma omp simd")
            emitter.line(f"for (int64_t j = 0; j < many; ++j) {target}[{along((o, 'first'), (outer, inner))} + j] = found[j];")


def _sought(node: Node, count: Size) -> Tuple[str, str, str]:
    """What is sought, how one that is better compares, and the type of its place, as wide as the elements if it fits into these."""
    most, better = ("max", ">") if node.op.name == "argmax" else ("min", "<")
    is_short = isinstance(count, int) and count < 2 ** 31 and node.inputs[0].dtype.itemsize < 8
    return most, better, "int32_t" if is_short else "int64_t"


def _best_of_columns(emitter: Emitter, node: Node, count: Size, end: str, step: str, element: Callable[[str], str]) -> None:
    """Write loops of vectors over ``many`` columns that leave the extremum of each in ``best``, and its first place in ``found``.

    count: how many places there are.  end, step: where those of columns end, and how far they are apart.  element: the text of
    element ``j`` at a place.
    """
    (type, order), (_, better, place) = _in_order(node), _sought(node, count)
    emitter.line(f"{type} best[{_COLUMNS}]; {place} found[{_COLUMNS}];")
    head = "for (int64_t j = 0; j < many; ++j) {"
    emitter.line("#pragma omp simd")
    emitter.line(f"{head} best[j] = {order(element('0'))}; found[j] = 0; }}")
    with block(emitter, f"for ({place} c = {step}; c < {end}; c += {step}) {{"):
        emitter.line("#pragma omp simd")
        with block(emitter, head):
            emitter.line(f"const {type} item = {order(element('c'))};")
            emitter.line(f"const bool better = item {better} best[j];")
            emitter.line("best[j] = better ? item : best[j];")
            emitter.line("found[j] = better ? c : found[j];")


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


def _shift(emitter: Emitter, node: Node) -> None:
    (value,), (x,), axis, by = node.outputs, node.inputs, node.attrs["axis"], node.attrs["by"]
    count = value.shape[axis]
    if not count:
        return
    here, there, target = place_of(value), emitter.place(x), emitter.name(value)
    back = by > 0
    emitter.copy(part_of(here, axis, int(back), count - 1), part_of(there, axis, int(not back), count - 1), target)
    fill(emitter, value, part_of(here, axis, 0 if back else count - 1, 1), node.attrs["fill"])


def _pad(emitter: Emitter, node: Node) -> None:
    (value,), (x,) = node.outputs, node.inputs
    index = tuple((before, before + n, 1) for n, (before, _) in zip(x.shape, node.attrs["width"]))
    fill_around(emitter, value, index, dict(node.attrs["keywords"]).get("constant_values", 0))
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

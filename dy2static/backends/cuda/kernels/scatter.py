"""Items that go to places of an array which indices name: each is written, or added to what is there.

There are two forms:

- Each element of the result looks at all items, if these are few.
- Else each item has a block, which ends if an earlier item is for the same place (a later one, if items are written). The threads
  of the other blocks look for the items of their place together, and add them in their order, each thread in its own columns.
  Zeros, or the elements of another array, are written to the result before.

No two threads write to one place, and sums have one order, which is that of NumPy. A sum of float16 is rounded once.
"""
from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Callable, Dict, Mapping, Sequence, Union

from ....ir.dims import Size
from ....ir.graph import Node, Value
from ...loops.layout import compact_strides
from ..program.sizes import Late, ceiling, product
from ..text.dtypes import loaded, register_type
from ..text.function import FunctionText, KernelText
from ..text.indices import address, split_index
from ..text.operands import axes_of, element, numbered_element, parts_of, wrapped

#: Each element looks at so many items at most, and all together at so many: this takes less than the start of one more kernel.
_FEW, _COMPARED = 256, 1 << 22

#: An item of several columns that a thread adds, and threads of a block.
_COLUMNS, _THREADS, _WARP = 4, 256, 32

#: Bytes of items that a thread loads before it adds them: registers bound this.
_LOADED = 64


def are_few(function: FunctionText, count: Size, items: Size) -> Union[bool, Late]:
    """Whether each of so many elements looks at all items."""
    found: Union[bool, Late] = function.late(lambda count, items: items <= _FEW and count * items <= _COMPARED, count, items)
    return found


def _threads(width: int) -> int:
    return max(_WARP, min(_THREADS, ceiling(ceiling(width, _COLUMNS), _WARP) * _WARP))


def _blocks(width: int) -> int:
    """How many blocks share the columns of an item."""
    return ceiling(width, _COLUMNS * _threads(width))


def _columns(width: Size) -> int:
    """How many columns each thread has."""
    return ceiling(width, _threads(width) * _blocks(width)) if isinstance(width, int) else _COLUMNS


@dataclass(frozen=True)
class Items:
    """The items, of which each line has its own; most often there is one line.

    count: the items of a line.  lines, columns: the axes along which there are several of them, by the names of their indices.
    places: the index of item ``n`` of a line along each axis of the result that an array of indices is for.  others: the indices
    along the other axes.  text: a column of an item.
    """

    count: Size
    lines: Mapping[str, Size]
    columns: Mapping[str, Size]
    places: Mapping[int, str]
    others: Mapping[int, str]
    text: str


def write_items(function: FunctionText, kernel: KernelText, value: Value, items: Items, adds: bool) -> None:
    """Launch a kernel with blocks for items, which are written to an array that is filled before, or added to its elements."""
    width = math.prod(items.columns.values())
    threads, blocks, columns = function.late(_threads, width), function.late(_blocks, width), _columns(width)
    kernel.line(f"const dy_index block = (dy_index)blockIdx.x / {blocks};")
    kernel.line(f"const dy_index column = (dy_index)blockIdx.x % {blocks} * {columns} * {threads} + threadIdx.x;")
    split_index(kernel, "block", [*items.lines.values(), items.count], [*items.lines, "mine"])
    for axis, text in items.places.items():
        kernel.line(f"const auto at{axis} = [&](const dy_index n) {{ return {text}; }};")
        kernel.line(f"const dy_index to{axis} = at{axis}(mine);")
    tests = " && ".join([f"at{axis}(n) == to{axis}" for axis in items.places])
    kernel.line(f"const auto is_there = [&](const dy_index n) {{ return {tests}; }};")
    others = "0, mine" if adds else f"mine + 1, {items.count}"
    kernel.line(f"if (dy_is_among<dy_index>({others}, is_there)) return;")
    kernel.open(f"const auto item = [&](const dy_index n, const dy_index c) -> {register_type(value.dtype)} {{")
    split_index(kernel, "c", list(items.columns.values()), list(items.columns))
    kernel.line(f"return {items.text};")
    kernel.close(";")
    to = {**{axis: f"to{axis}" for axis in items.places}, **items.others}
    steps = [(f"({to[axis]})", step) for axis, step in enumerate(compact_strides(value.shape))]
    place = f"{kernel.memory(value, True)}[{address(0, steps)}]"

    def each_column(text: str) -> None:
        kernel.line("#pragma unroll")
        kernel.open(f"for (int j = 0; j < {columns}; ++j) {{")
        kernel.line(f"const dy_index c = column + j * {threads};")
        kernel.line(f"if (c >= {width}) continue;")
        split_index(kernel, "c", list(items.columns.values()), list(items.columns))
        kernel.line(text)
        kernel.close()
    if adds:
        kernel.line(f"{register_type(value.dtype)} sums[{columns}] = {{}};")
        each_column(f"sums[j] = {loaded(place, value.dtype)};")
        loads = min(8, _LOADED // (columns * max(4, value.dtype.itemsize)))
        kernel.line(f"dy_add_items<{loads}, {columns}, dy_index>("
                    f"sums, mine, {items.count}, column, {width}, is_there, item);")
    each_column(f"{place} = {'sums[j]' if adds else 'item(mine, c)'};")
    kernel.launch(function.late(product, blocks, items.count, *items.lines.values()), threads, _THREADS)


def _sum(function: FunctionText, node: Node, looks_at_all: Union[bool, Late],
         items_of: Callable[[FunctionText, Node, KernelText, Sequence[str]], Items]) -> None:
    """Sums that begin with zeros.  looks_at_all: whether each element looks at all items.  items_of: names are those of indices."""
    (value,), names = node.outputs, axes_of(node.outputs[0].ndim, "k")

    def by_elements() -> None:
        kernel = function.elements(math.prod(value.shape), value.shape, names)
        items = items_of(function, node, kernel, names)
        ((axis, place),) = items.places.items()
        kernel.line(f"{register_type(value.dtype)} all = 0;")
        kernel.open(f"for (dy_index n = 0; n < {items.count}; ++n) {{")
        kernel.line(f"if ({place} == {names[axis]}) all += {items.text};")
        kernel.close()
        kernel.line(f"{kernel.memory(value, True)}[k] = all;")
        function.launch_elements(kernel, math.prod(value.shape))

    def by_items() -> None:
        function.clear(value)
        kernel = function.kernel()
        write_items(function, kernel, value, items_of(function, node, kernel, names), True)
    function.either(looks_at_all, by_elements, by_items)


def _scatter_add(function: FunctionText, node: Node) -> None:
    (value,), (_, indices) = node.outputs, node.inputs
    _sum(function, node, are_few(function, math.prod(value.shape), math.prod(indices.shape)), _rows)


def _rows(function: FunctionText, node: Node, kernel: KernelText, names: Sequence[str]) -> Items:
    """Rows of an operand, which indices along one axis of the result take."""
    (value,), (x, indices), axis = node.outputs, node.inputs, node.attrs["axis"]
    others = {a: name for a, name in enumerate(names) if a != axis}
    index = wrapped(numbered_element(function, kernel, indices, "n", indices.shape), value.shape[axis])
    here = [*names[:axis], *parts_of("n", indices.shape), *names[axis + 1:]]
    return Items(math.prod(indices.shape), {}, {name: value.shape[a] for a, name in others.items()}, {axis: index}, others,
                 element(function, kernel, x, dict(enumerate(here))))


def _add_along(function: FunctionText, node: Node) -> None:
    """A line mostly has one item.  An element looks at all items of its line, but where these are many and stand side by side."""
    (value,), (_, indices), axis = node.outputs, node.inputs, node.attrs["axis"]
    are_apart = axis < value.ndim - 1
    _sum(function, node, function.late(lambda items: are_apart or items <= _FEW, indices.shape[axis]), _elements_of_lines)


def _elements_of_lines(function: FunctionText, node: Node, kernel: KernelText, names: Sequence[str]) -> Items:
    """Elements of lines along an axis, which indices of their own line take."""
    (value,), (x, indices), axis = node.outputs, node.inputs, node.attrs["axis"]
    others = {a: name for a, name in enumerate(names) if a != axis}
    index, text = [element(function, kernel, operand, {**others, axis: "n"}) for operand in (indices, x)]
    return Items(indices.shape[axis], {name: value.shape[a] for a, name in others.items()}, {},
                 {axis: wrapped(index, value.shape[axis])}, others, text)


#: Ops by name.
SCATTERS: Dict[str, Callable[[FunctionText, Node], None]] = {"scatter_add": _scatter_add, "add_along": _add_along}

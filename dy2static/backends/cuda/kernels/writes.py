"""Copies of arrays in which some elements are others: at an index, or around them."""
from __future__ import annotations

import math
from typing import Callable, Dict, Iterator, List, Sequence, Tuple

from ....ir.dims import Size
from ....ir.graph import Node
from ....ir.template import AT
from ...loops.layout import place_of
from ..text.dtypes import constant, register_type
from ..text.function import FunctionText, KernelText
from ..text.operands import axes_of, element, numbered_element, parts_of, wrapped
from .index_arrays import axes_of_arrays, first_axis_of_arrays, other_axes, shape_together
from .scatter import Items, are_few, write_items

#: Comparisons of indices with each other up to which kernels do it.
_COMPARED = 1 << 32


def is_taken(node: Node) -> bool:
    """Whether kernels compute such a node."""
    if node.op.name == "pad":
        is_float = node.outputs[0].dtype.kind == "f"
        return bool(node.attrs["mode"] == "constant") and all(
            name == "constant_values" and isinstance(value, (bool, int, float)) and (is_float or value in (0, 1))
            for name, value in node.attrs["keywords"])
    items, shape = math.prod(shape_together(node.inputs[2:])), node.outputs[0].shape
    return bool(items * min(items, math.prod([shape[axis] for axis in axes_of_arrays(node.attrs["index"])])) <= _COMPARED)


def _at_index(function: FunctionText, node: Node) -> None:
    """``put``: of several items for one place the last, as NumPy has it; ``add_at``: their sum."""
    items = math.prod(shape_together(node.inputs[2:]))
    function.either(AT not in node.attrs["index"] or are_few(function, math.prod(node.outputs[0].shape), items),
                    lambda: _by_elements(function, node), lambda: _by_items(function, node))


def _by_elements(function: FunctionText, node: Node) -> None:
    """Each element of the result looks at all items."""
    (value,), (a, b), index = node.outputs, node.inputs[:2], node.attrs["index"]
    names, together = [f"k{axis}" for axis in range(value.ndim)], shape_together(node.inputs[2:])
    kernel = function.elements(math.prod(value.shape), value.shape, names)
    kernel.line(f"{register_type(value.dtype)} all = {element(function, kernel, a, dict(enumerate(names)))};")
    tests, item = _item(kernel, node, names, together)
    if tests:
        kernel.open(f"if ({' && '.join(tests)}) {{")
    if AT in index:
        kernel.open(f"for (dy_index n = 0; n < {math.prod(together)}; ++n) {{")
        places = _places(function, kernel, node, together)
        kernel.open(f"if ({' && '.join([f'{text} == {names[axis]}' for axis, text in places.items()])}) {{")
    kernel.line(f"all {'+=' if node.op.name == 'add_at' else '='} {element(function, kernel, b, item)};")
    for _ in range(2 * (AT in index) + bool(tests)):
        kernel.close()
    kernel.line(f"{kernel.memory(value, True)}[k] = all;")
    function.launch_elements(kernel, math.prod(value.shape))


def _by_items(function: FunctionText, node: Node) -> None:
    """Items go to the places that they have in a copy of the array."""
    (value,), (a, b), index, together = node.outputs, node.inputs[:2], node.attrs["index"], shape_together(node.inputs[2:])
    function.copy(place_of(value), function.places.of(a), function.pointer(value))
    kernel, first, names = function.kernel(), first_axis_of_arrays(index), axes_of(b.ndim, "k")
    columns = {name: size for axis, (name, size) in enumerate(zip(names, b.shape)) if not first <= axis < first + len(together)}
    at = [*names[:first], *parts_of("n", together), *names[first + len(together):]]
    items = Items(math.prod(together), {}, columns, _places(function, kernel, node, together),
                  other_axes(index, value.ndim, list(columns)), element(function, kernel, b, dict(enumerate(at))))
    write_items(function, kernel, value, items, node.op.name == "add_at")


def _places(function: FunctionText, kernel: KernelText, node: Node, together: Sequence[Size]) -> Dict[int, str]:
    """For each axis that an array of indices is for, the index of item ``n`` along it."""
    return {axis: wrapped(numbered_element(function, kernel, array, "n", together), node.outputs[0].shape[axis])
            for axis, array in zip(axes_of_arrays(node.attrs["index"]), node.inputs[2:])}


def _item(kernel: KernelText, node: Node, names: Sequence[str], together: Sequence[Size]) -> Tuple[List[str], Dict[int, str]]:
    """The tests whether the slices and ints of the index hold an element, and the index of its item along each axis."""
    b, index = node.inputs[1], node.attrs["index"]
    arrays = AT in index
    before = first_axis_of_arrays(index) if arrays else len(index)
    others: Iterator[int] = iter([axis for axis in range(b.ndim) if not arrays or not before <= axis < before + len(together)])
    tests: List[str] = []
    item = {before + axis: part for axis, part in enumerate(parts_of("n", together))} if arrays else {}
    axes = iter(range(len(names)))
    for entry in index:
        if entry is None:
            item[next(others)] = "0"
            continue
        axis = next(axes)
        if isinstance(entry, tuple):
            start, _, step = entry
            along = next(others)
            kernel.line(f"const dy_index q{axis} = {names[axis]} - {start};" if step > 0 else
                        f"const dy_index q{axis} = {start} - {names[axis]};")
            tests.append(f"q{axis} >= 0 && q{axis} % {abs(step)} == 0 && q{axis} / {abs(step)} < {b.shape[along]}")
            item[along] = f"q{axis} / {abs(step)}"
        elif entry != AT:
            tests.append(f"{names[axis]} == {entry}")
    for axis in axes:
        item[next(others)] = names[axis]
    return tests, item


def _pad(function: FunctionText, node: Node) -> None:
    """A constant around an array."""
    (value,), (x,) = node.outputs, node.inputs
    names = [f"k{axis}" for axis in range(value.ndim)]
    kernel = function.elements(math.prod(value.shape), value.shape, names)
    at = {axis: f"{names[axis]} - {before}" for axis, (before, _) in enumerate(node.attrs["width"])}
    tests = [f"{text} >= 0 && {text} < {x.shape[axis]}" for axis, text in at.items()]
    number = constant(dict(node.attrs["keywords"]).get("constant_values", 0), value.dtype)
    inside = " && ".join(tests) or "true"
    kernel.line(f"{kernel.memory(value, True)}[k] = {inside} ? {element(function, kernel, x, at)} : {number};")
    function.launch_elements(kernel, math.prod(value.shape))


#: Ops by name.
WRITES: Dict[str, Callable[[FunctionText, Node], None]] = {"put": _at_index, "add_at": _at_index, "pad": _pad}

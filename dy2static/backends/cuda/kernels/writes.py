"""Copies of arrays in which some elements are others: at an index, or around them.

Each element of a result looks at all indices: no two threads write to one place, and sums have one order.
"""
from __future__ import annotations

import functools
import math
from typing import Any, Callable, Dict, Iterator, List, Sequence, Tuple

from ....ir.graph import Node
from ....ir.shapes import broadcast_shapes
from ....ir.template import AT
from ...loops.layout import compact_strides
from ..text.dtypes import constant, register_type
from ..text.function import FunctionText, KernelText
from ..text.operands import element, wrapped

#: Comparisons of places with indices up to which kernels do it.
_COMPARED = 1 << 32


def is_taken(node: Node) -> bool:
    """Whether kernels compute such a node."""
    if node.op.name == "pad":
        is_float = node.outputs[0].dtype.kind == "f"
        return bool(node.attrs["mode"] == "constant") and all(
            name == "constant_values" and isinstance(value, (bool, int, float)) and (is_float or value in (0, 1))
            for name, value in node.attrs["keywords"])
    numbers = _together(node)
    return bool(math.prod(node.outputs[0].shape) * math.prod(numbers) <= _COMPARED)


def _together(node: Node) -> Tuple[Any, ...]:
    """The shape of the arrays of indices together."""
    return functools.reduce(broadcast_shapes, [array.shape for array in node.inputs[2:]], ())


def _at_index(function: FunctionText, node: Node) -> None:
    """``put``: of several items for one place the last, as NumPy has it; ``add_at``: their sum."""
    (value,), (a, b), index = node.outputs, node.inputs[:2], node.attrs["index"]
    names, together = [f"k{axis}" for axis in range(value.ndim)], _together(node)
    kernel = function.elements(math.prod(value.shape), value.shape, names)
    kernel.line(f"{register_type(value.dtype)} all = {element(function, kernel, a, dict(enumerate(names)))};")
    tests, item = _item(kernel, node, names, together)
    if tests:
        kernel.open(f"if ({' && '.join(tests)}) {{")
    if AT in index:
        kernel.open(f"for (dy_index n = 0; n < {math.prod(together)}; ++n) {{")
        kernel.open(f"if ({' && '.join(_matches(function, kernel, node, names, together))}) {{")
    kernel.line(f"all {'+=' if node.op.name == 'add_at' else '='} {element(function, kernel, b, item)};")
    for _ in range(2 * (AT in index) + bool(tests)):
        kernel.close()
    kernel.line(f"{kernel.memory(value, True)}[k] = all;")
    function.launch_elements(kernel, math.prod(value.shape))


def _item(kernel: KernelText, node: Node, names: Sequence[str], together: Sequence[int]) -> Tuple[List[str], Dict[int, str]]:
    """The tests whether the slices and ints of the index hold an element, and the index of its item along each axis."""
    b, index = node.inputs[1], node.attrs["index"]
    places = [place for place, entry in enumerate(index) if not (entry is None or isinstance(entry, tuple))]
    arrays = AT in index
    before = (places[0] if places[-1] - places[0] < len(places) else 0) if arrays else len(index)
    others: Iterator[int] = iter([axis for axis in range(b.ndim) if not arrays or not before <= axis < before + len(together)])
    tests: List[str] = []
    item = {before + axis: f"n / {after} % {n}" for axis, (after, n) in enumerate(zip(compact_strides(together), together))} \
        if arrays else {}
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


def _matches(function: FunctionText, kernel: KernelText, node: Node, names: Sequence[str], together: Sequence[int]) -> List[str]:
    """The tests whether number ``n`` of the indices is the place of an element."""
    arrays, tests, axis = iter(node.inputs[2:]), [], 0
    parts = [f"n / {after} % {size}" for after, size in zip(compact_strides(together), together)]
    for entry in node.attrs["index"]:
        if entry == AT:
            array = next(arrays)
            at = {a: part for a, (part, size) in enumerate(zip(parts[len(parts) - array.ndim:], array.shape)) if size != 1}
            wrapped(kernel, f"at{axis}", element(function, kernel, array, at), node.outputs[0].shape[axis])
            tests.append(f"at{axis} == {names[axis]}")
        axis += entry is not None
    return tests


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

"""Sums and products along an axis that keep each step, and neighbours along an axis."""
from __future__ import annotations

import math
from typing import Callable, Dict, List

from ....ir.dims import Size
from ....ir.graph import Node
from ...loops.layout import compact_strides
from ..text.dtypes import constant, register_type
from ..text.function import FunctionText
from ..text.indices import address, split_index
from ..text.operands import element

#: Lines of so few elements are one thread's, and longer ones whose elements are apart, where there are so many lines.
SHORT, MANY = 32, 4096

#: Most threads for a line.
MOST_THREADS = 256


def _scan(function: FunctionText, node: Node) -> None:
    """A thread goes along a line, or a block does, in tiles that its threads scan in one fixed tree."""
    (value,), axis = node.outputs, node.attrs["axis"]
    lines = math.prod(value.shape) // value.shape[axis]
    apart = compact_strides(value.shape)[axis] != 1
    by_threads = function.late(lambda size, lines: size <= SHORT or apart and lines >= MANY, value.shape[axis], lines)
    function.either(by_threads, lambda: _by_threads(function, node, lines), lambda: _by_blocks(function, node, lines))


def threads_of(size: int) -> int:
    """How many threads go along a line: a power of two."""
    threads = 32
    while threads < min(size, MOST_THREADS):
        threads *= 2
    return threads


def _op(node: Node) -> str:
    return {"cumsum": "sum", "cumprod": "prod"}[node.op.name]


def _others(node: Node) -> Dict[int, str]:
    """The names of the indices along the axes that say which line it is."""
    return {a: f"k{a}" for a in range(node.outputs[0].ndim) if a != node.attrs["axis"]}


def _to(node: Node) -> str:
    """Where element ``n`` of a line goes."""
    (value,), axis = node.outputs, node.attrs["axis"]
    strides = compact_strides(value.shape)
    return address(0, [*[(name, strides[a]) for a, name in _others(node).items()], ("n", strides[axis])])


def _by_threads(function: FunctionText, node: Node, lines: Size) -> None:
    (value,), (x,), axis, names = node.outputs, node.inputs, node.attrs["axis"], _others(node)
    kernel = function.elements(lines, [value.shape[a] for a in names], list(names.values()))
    kernel.line(f"{register_type(value.dtype)} all = {int(_op(node) == 'prod')};")
    kernel.open(f"for (dy_index n = 0; n < {value.shape[axis]}; ++n) {{")
    kernel.line(f"all = dy_combined<dy_{_op(node)}>(all, {element(function, kernel, x, {**names, axis: 'n'})});")
    kernel.line(f"{kernel.memory(value, True)}[{_to(node)}] = all;")
    kernel.close()
    function.launch_elements(kernel, lines)


def _by_blocks(function: FunctionText, node: Node, lines: Size) -> None:
    (value,), (x,), axis, names = node.outputs, node.inputs, node.attrs["axis"], _others(node)
    kernel, size, op = function.kernel(), value.shape[axis], _op(node)
    start, type = int(op == "prod"), register_type(value.dtype)
    kernel.line("const dy_index line = blockIdx.x;")
    split_index(kernel, "line", [value.shape[a] for a in names], list(names.values()))
    kernel.line(f"{type} before = {start};")
    kernel.open(f"for (dy_index first = 0; first < {size}; first += blockDim.x) {{")
    kernel.line("const dy_index n = first + threadIdx.x;")
    kernel.line(f"{type} all, here = n < {size} ? {element(function, kernel, x, {**names, axis: 'n'})} : ({type}){start};")
    kernel.line(f"here = dy_scanned<dy_{op}>(here, ({type}){start}, all);")
    kernel.line(f"if (n < {size}) {kernel.memory(value, True)}[{_to(node)}] = dy_combined<dy_{op}>(before, here);")
    kernel.line(f"before = dy_combined<dy_{op}>(before, all);")
    kernel.close()
    kernel.launch(lines, function.late(threads_of, size), MOST_THREADS)


def _shift(function: FunctionText, node: Node) -> None:
    (value,), (x,), axis, by = node.outputs, node.inputs, node.attrs["axis"], node.attrs["by"]
    by = 1 if by > 0 else -1
    names: List[str] = [f"k{a}" for a in range(value.ndim)]
    kernel = function.elements(math.prod(value.shape), value.shape, names)
    at = f"{names[axis]} - {by}"
    there = element(function, kernel, x, {**dict(enumerate(names)), axis: at})
    kernel.line(f"{kernel.memory(value, True)}[k] = {at} >= 0 && {at} < {value.shape[axis]} ? {there} : "
                f"{constant(node.attrs['fill'], value.dtype)};")
    function.launch_elements(kernel, math.prod(value.shape))


#: Ops by name.
SCANS: Dict[str, Callable[[FunctionText, Node], None]] = {"cumsum": _scan, "cumprod": _scan, "shift": _shift}

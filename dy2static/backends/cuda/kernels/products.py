"""Products of matrices: where cuBLAS reads the operands, and where it writes the results.

The matrices of a stack are mostly equally far apart.  Those of attention heads are not (one axis is for sequences, another one for
heads): cuBLAS then finds them through a table of their addresses, and nothing is copied.
"""
from __future__ import annotations

import math
from dataclasses import replace
from typing import Callable, List, Optional, Tuple

import numpy as np

from ....ir.dims import Size
from ....ir.graph import Node, Value
from ...loops.layout import merged_axes, strides_in
from ..program.products import ALIGNMENT, is_expressible, is_scattered
from ..program.sizes import settled
from ..program.steps import Matrices, Product, Scattered
from ..text.dtypes import memory_type
from ..text.function import FunctionText, Joined
from ..text.indices import address
from .joins import Made


def multiplied(function: FunctionText, node: Node) -> None:
    """One product, or a stack of them; turned operands are read as they are."""
    (value,), turns = node.outputs, (node.attrs["transa"], node.attrs["transb"])
    out = Matrices(function.pointer(value), 0, value.shape, function.target(value).strides, value.dtype)
    there = [_where(function, operand) for operand in node.inputs]

    def operands(is_readable: Callable[[Matrices], bool]) -> List[Matrices]:
        found = [one if one is not None and is_readable(one) else _copied(function, operand)
                 for one, operand in zip(there, node.inputs)]
        return [_turned(one) if turn else one for one, turn in zip(found, turns)]
    is_apart = value in function.joined and not is_expressible(out.shape, out.strides)
    if is_apart or _is_for_table(there, out):
        left, right = operands(is_scattered)
        product = Product(left, right, out)
        function.add(Scattered(product, _table(function, product)))
        return
    left, right = operands(lambda one: is_expressible(one.shape, one.strides))
    function.add(Product(left, right, out))


def _where(function: FunctionText, value: Value) -> Optional[Matrices]:
    """An operand where it is; None if it has no memory."""
    place = function.places.of(value)
    if not place.base.ndim:
        return None
    return Matrices(function.pointer(place.base), place.offset, place.shape, place.strides, value.dtype)


def _copied(function: FunctionText, value: Value) -> Matrices:
    """A copy of an operand in the order of memory."""
    place = function.compact(value)
    return Matrices(function.pointer(place.base), place.offset, place.shape, place.strides, value.dtype)


def _turned(found: Matrices) -> Matrices:
    shape, strides = found.shape, found.strides
    return replace(found, shape=(*shape[:-2], shape[-1], shape[-2]), strides=(*strides[:-2], strides[-1], strides[-2]))


def _is_for_table(there: List[Optional[Matrices]], out: Matrices) -> bool:
    """Whether a table spares copies: no operand has to be copied then."""
    are_even = all(one is not None and is_expressible(one.shape, one.strides) for one in there)
    return not are_even and all(one is not None and is_scattered(one) for one in (*there, out))


def _table(function: FunctionText, product: Product) -> int:
    """A table of the addresses of all matrices, which a kernel writes; gives the number of the pointer to it."""
    stacks = (product.right, product.left, product.out)
    shape = [settled(n) for n in product.out.shape[:-2]]
    count = math.prod(shape)
    table = function.piece(len(stacks) * count, np.dtype(np.uint64))
    axes = merged_axes(shape, stacks)
    names = [f"k{n}" for n in range(len(axes))]
    kernel = function.elements(count, [math.prod([shape[a] for a in part]) for part in axes], names)
    texts = []
    for number, one in enumerate(stacks):
        last = [(settled(n) - 1) * settled(stride) for n, stride in zip(one.shape, one.strides)]
        kernel.reaches(settled(one.offset) + sum(last) + 1)
        at = address(settled(one.offset), [(name, one.strides[part[-1]]) for name, part in zip(names, axes)])
        texts.append(f"[{number * count} + k] = (uint64_t)({kernel.pointer(one.pointer, memory_type(one.dtype) or '')} + {at});")
    for text in texts:
        kernel.line(f"{kernel.pointer(table, 'uint64_t', True)}{text}")
    function.launch_elements(kernel, count)
    return table


def multiply_in_place(function: FunctionText, node: Node, made: Made) -> None:
    """Let a product that only a copy to another order reads be made where the copy would be."""
    (value,), (operand,) = node.outputs, node.inputs
    place = function.places.of(operand)
    base, maker = place.base, made.makers.get(place.base)
    if not isinstance(maker, Node) or maker.op.name != "matmul" or made.readers.get(base, 0) != 1:
        return
    if function.is_open or function.has_memory(base) or function.has_memory(value) or base in function.joined:
        return
    strides = strides_in(function.target(value), place)
    if strides is None or not _is_writable(function, value, base, strides) or not all(
            math.prod(one.shape[-2:]) * one.dtype.itemsize % ALIGNMENT == 0 for one in maker.inputs):   # also if it is copied
        return
    function.joined[base] = Joined(value, 0, strides)


def _is_writable(function: FunctionText, value: Value, base: Value, strides: Tuple[Size, ...]) -> bool:
    """Whether cuBLAS can write a product with such strides into a value: row by row."""
    begin = function.joined[value].begin if value in function.joined else 0
    out = Matrices(0, 0, base.shape, strides, base.dtype)
    is_by_rows = strides[-1] == 1 or base.shape[-1] == 1
    return is_by_rows and begin % ALIGNMENT == 0 and (is_expressible(out.shape, out.strides) or is_scattered(out))

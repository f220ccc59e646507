"""Elements of operands as expressions in kernels."""
from __future__ import annotations

from typing import List, Mapping, Sequence, Tuple

from ....ir.dims import Size
from ....ir.graph import Value
from ...loops.layout import compact_strides, place_of
from .function import FunctionText, KernelText
from .indices import address


def element(function: FunctionText, kernel: KernelText, value: Value, names: Mapping[int, str]) -> str:
    """An element of an operand, which may be a view.  names: the index along each of its axes."""
    place = function.places.of(value)
    if not place.base.ndim:
        return kernel.number(place.base)
    return kernel.read(place.base, address(place.offset, [(f"({name})", place.strides[axis]) for axis, name in names.items()]))


def numbered_element(function: FunctionText, kernel: KernelText, value: Value, number: str, shape: Sequence[Size]) -> str:
    """An element of an operand, broadcast to a shape.  number: of the element in the order of memory there."""
    place = function.places.of(value)
    if place.base.ndim and place.compact and value.shape == tuple(shape):
        return kernel.read(place.base, address(place.offset, [(number, 1)]))
    parts = parts_of(number, shape)[len(shape) - value.ndim:]
    return element(function, kernel, value, {axis: parts[axis] for axis, size in enumerate(value.shape) if size != 1})


def parts_of(number: str, shape: Sequence[Size]) -> List[str]:
    """The index along each axis of a shape.  number: of the element in the order of memory."""
    parts = [number if after == 1 else f"{number} / {after}" for after in compact_strides(shape)]
    return [part if axis == 0 else f"{part} % {size}" for axis, (part, size) in enumerate(zip(parts, shape))]


def wrapped(text: str, size: Size) -> str:
    """An index that wraps."""
    return f"dy_wrapped<dy_index>({text}, {size})"


def axes_of(count: int, letter: str) -> Tuple[str, ...]:
    """Names of the indices along so many axes."""
    return tuple([f"{letter}{axis}" for axis in range(count)])


def whole(function: FunctionText, value: Value) -> int:
    """The pointer to all elements of a value in the order of memory."""
    place = function.places.of(value)
    if place.whole:
        return function.pointer(place.base)
    own = Value(value.type, value.name)
    function.copy(place_of(own), place, function.pointer(own))
    return function.pointer(own)

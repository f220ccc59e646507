"""Elements of operands as expressions in kernels."""
from __future__ import annotations

from typing import Mapping, Tuple

from ....ir.dims import Size
from ....ir.graph import Value
from ...loops.layout import place_of
from .function import FunctionText, KernelText
from .indices import address


def element(function: FunctionText, kernel: KernelText, value: Value, names: Mapping[int, str]) -> str:
    """An element of an operand, which may be a view.  names: the index along each of its axes."""
    place = function.places.of(value)
    if not place.base.ndim:
        return kernel.number(place.base)
    return kernel.read(place.base, address(place.offset, [(f"({name})", place.strides[axis]) for axis, name in names.items()]))


def wrapped(kernel: KernelText, name: str, text: str, size: Size) -> None:
    """Define an index that wraps."""
    kernel.line(f"int64_t {name} = (int64_t){text} % {size};")
    kernel.line(f"if ({name} < 0) {name} += {size};")


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

"""Arrays that are joined: operands are made where they stand in the result, if that is possible; kernels copy the others."""
from __future__ import annotations

import math
from typing import AbstractSet, Callable, Dict, List, NamedTuple

from ....ir.graph import Node, Value
from ...loops.layout import Place, compact_strides
from ..text.function import FunctionText
from ..text.operands import axes_of, element

#: Operands that one kernel copies, and bytes from which an array is worth a copy of its own.
_TOGETHER, _LARGE = 8, 1 << 20

#: Where parts of an array begin, in bytes: threads load as many at a time, and so do libraries.
_ALIGNMENT = 16


class _Part(NamedTuple):
    """An operand, and where it stands in the result: along the axis from `begin` to `end`."""

    operand: Value
    target: Place
    begin: int
    end: int

    def is_made_in_place(self, function: FunctionText) -> bool:
        """Whether the operand is made where it stands."""
        base = function.places.of(self.operand).base
        return base in function.joined and function.joined[base] == (self.target.base, self._bytes_before())

    def can_be_made_in_place(self, function: FunctionText, made: AbstractSet[Value]) -> bool:
        """Whether the operand can be made where it stands.  made: what the nodes of the function make."""
        place = function.places.of(self.operand)
        base, before = place.base, self._bytes_before()
        is_own = place.whole and base.ndim > 0 and base in made and base.dtype == self.target.base.dtype
        is_free = not (base in function.places.constants or base in function.draws or base in function.joined
                       or function.has_memory(base))
        return is_own and is_free and self.target.compact and before % _ALIGNMENT == 0

    def make_in_place(self, function: FunctionText) -> None:
        """Let the operand be made where it stands."""
        function.joined[function.places.of(self.operand).base] = self.target.base, self._bytes_before()

    def is_copied_with_others(self, function: FunctionText) -> bool:
        """Whether a kernel copies the operand that also copies its neighbours."""
        size = math.prod(self.operand.shape) * self.operand.dtype.itemsize
        return function.places.of(self.operand).compact and not (self.target.compact and size >= _LARGE)

    def _bytes_before(self) -> int:
        return int(self.target.offset * self.target.base.dtype.itemsize)


def _parts(node: Node) -> List[_Part]:
    (value,), axis, found = node.outputs, node.attrs["axis"], []
    strides, begin = compact_strides(value.shape), 0
    for operand in node.inputs:
        is_stacked = node.op.name == "stack"
        end = begin + (1 if is_stacked else operand.shape[axis])
        own = strides[:axis] + strides[axis + 1:] if is_stacked else strides
        found.append(_Part(operand, Place(value, operand.shape, own, begin * strides[axis]), begin, end))
        begin = end
    return found


def join_in_place(function: FunctionText, node: Node, made: AbstractSet[Value]) -> None:
    """Let operands of a join be made where they stand in its result.  made: what the nodes of the function make."""
    if not function.is_open and not function.has_memory(node.outputs[0]):
        for part in _parts(node):
            if part.can_be_made_in_place(function, made):
                part.make_in_place(function)


def _join(function: FunctionText, node: Node) -> None:
    """Copy the operands that are not made in place.  One kernel copies several neighbours."""
    together: List[_Part] = []
    for part in _parts(node):
        is_there = part.is_made_in_place(function)
        if not is_there and not function.is_open and part.is_copied_with_others(function):
            together.append(part)
            if len(together) == _TOGETHER:
                _copy_together(function, node, together)
            continue
        _copy_together(function, node, together)
        if not is_there:
            _copy(function, part)
    _copy_together(function, node, together)
    function.pointer(node.outputs[0])                                   # in use until now, whoever has written it


def _copy(function: FunctionText, part: _Part) -> None:
    function.copy(part.target, function.places.of(part.operand), function.pointer(part.target.base))


def _copy_together(function: FunctionText, node: Node, parts: List[_Part]) -> None:
    """Empty a list of neighbours by one kernel that copies them: a thread for each element."""
    if len(parts) < 2:
        for part in parts:
            _copy(function, part)
        parts.clear()
        return
    (value,), axis = node.outputs, node.attrs["axis"]
    first, end, names = parts[0].begin, parts[-1].end, axes_of(value.ndim, "n")
    shape = (*value.shape[:axis], end - first, *value.shape[axis + 1:])
    kernel = function.elements(math.prod(shape), shape, names)
    texts = []
    for part in parts:
        along = names[axis] if part.begin == first else f"{names[axis]} - {part.begin - first}"
        own = names[:axis] + names[axis + 1:] if node.op.name == "stack" else (*names[:axis], along, *names[axis + 1:])
        texts.append(element(function, kernel, part.operand, dict(enumerate(own))))
    text = texts[-1]
    for part, before in zip(parts[-2::-1], texts[-2::-1]):
        text = f"{names[axis]} < {part.end - first} ? {before} : {text}"
    strides = compact_strides(value.shape)
    at = " + ".join([str(first * strides[axis]), *[f"{name} * {stride}" for name, stride in zip(names, strides)]])
    kernel.line(f"{kernel.memory(value, True)}[{at}] = {text};")
    function.launch_elements(kernel, math.prod(shape))
    parts.clear()


#: Ops by name.
JOINS: Dict[str, Callable[[FunctionText, Node], None]] = {"concat": _join, "stack": _join}

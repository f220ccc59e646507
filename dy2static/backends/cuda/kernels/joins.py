"""Arrays that are joined: operands are made where they stand in the result, if that is possible; kernels copy the others."""
from __future__ import annotations

import math
from collections import Counter
from typing import Callable, Dict, List, Mapping, NamedTuple, Union

from ....ir.graph import Node, Value
from ...loops.fuse import Run
from ...loops.groups import Group, nodes_of
from ...loops.layout import Place, compact_strides, reshaped
from ..text.function import FunctionText, Joined
from ..text.indices import address
from ..text.operands import axes_of, element

#: Operands that one kernel copies, and bytes from which an array is worth a copy of its own.
_TOGETHER, _LARGE = 8, 1 << 20

#: Where parts of an array begin, in bytes: threads load as many at a time, and so do libraries.
_ALIGNMENT = 16


class Made(NamedTuple):
    """What makes each value of a function, a node or a group that makes all its elements, and how often each is read."""

    makers: Mapping[Value, Union[Node, Group]]
    readers: Mapping[Value, int]


def made_by(function: FunctionText, fused: Run) -> Made:
    """What the parts of a function make."""
    makers = {value: part if isinstance(part, Group) and value in part.elements else node
              for part in fused.parts for node in nodes_of(part) for value in node.outputs}
    read = [value for part in fused.parts for node in nodes_of(part) for value in node.inputs] + list(function.graph.outputs)
    return Made(makers, Counter([function.places.of(value).base for value in read]))


class _Part(NamedTuple):
    """An operand, and where it stands in the result: along the axis from `begin` to `end`."""

    operand: Value
    target: Place
    begin: int
    end: int

    def is_made_in_place(self, function: FunctionText) -> bool:
        """Whether the operand is made where it stands."""
        base = function.places.of(self.operand).base
        return base in function.joined and function.joined[base][:2] == (self.target.base, self._bytes_before())

    def can_be_made_in_place(self, function: FunctionText, made: Made) -> bool:
        """Whether the operand can be made where it stands; if its elements are apart there, only by loop nests and copies."""
        place = function.places.of(self.operand)
        base = place.base
        is_own = place.whole and base.ndim > 0 and base in made.makers and base.dtype == self.target.base.dtype
        is_free = not (base in function.places.constants or base in function.inline or base in function.joined
                       or function.has_memory(base))
        if not is_own or not is_free:
            return False
        if self.target.compact:
            return self._bytes_before() % _ALIGNMENT == 0
        maker = made.makers[base]
        if base.shape != self.operand.shape or made.readers.get(base, 0) != 1:
            return False
        if isinstance(maker, Group):
            return self.target.strides[-1] == 1 or not maker.rows and not maker.totals
        return maker.op.name == "reshape" and reshaped(self.target, maker.inputs[0].shape) is not None

    def make_in_place(self, function: FunctionText) -> None:
        """Let the operand be made where it stands."""
        place = function.places.of(self.operand)
        strides = compact_strides(place.base.shape) if self.target.compact else self.target.strides
        function.joined[place.base] = Joined(self.target.base, self._bytes_before(), strides)

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


def join_in_place(function: FunctionText, node: Node, made: Made) -> None:
    """Let operands of a join be made where they stand in its result.

    If elements are apart there, the others have to be neighbours: one kernel would copy all of them.
    """
    if function.is_open or function.has_memory(node.outputs[0]):
        return
    parts = _parts(node)
    if not parts[0].target.compact:
        copied = [k for k, part in enumerate(parts) if not part.can_be_made_in_place(function, made)]
        if copied and copied[-1] - copied[0] + 1 > len(copied):
            return
    for part in parts:
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
    at = address(first * strides[axis], zip(names, strides))
    kernel.line(f"{kernel.memory(value, True)}[{at}] = {text};")
    function.launch_elements(kernel, math.prod(shape))
    parts.clear()


#: Ops by name.
JOINS: Dict[str, Callable[[FunctionText, Node], None]] = {"concat": _join, "stack": _join}

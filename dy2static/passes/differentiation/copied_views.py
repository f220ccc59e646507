"""Which views NumPy cannot give, so that it copies: their values do not follow the array that they are made of."""
from __future__ import annotations

from typing import Callable, List, Mapping, Optional, Sequence, Tuple

from ...ir.graph import Node, Value

#: The memory that an array takes: for each axis, its size and how many elements lie between two places.
Layout = Tuple[Tuple[int, int], ...]


def is_copied(node: Node, producers: Mapping[Value, Node]) -> bool:
    """Whether NumPy copies where this view is made: it reshapes axes that do not lie one behind another.

    Inputs and results of other nodes are taken to be in C order.  False where sizes or layouts are not known.
    """
    layout = _layout(node.inputs[0], producers) if node.op.name == "reshape" else None
    return layout is not None and _reshaped(layout, node.outputs[0].shape) is None


def _layout(value: Value, producers: Mapping[Value, Node]) -> Optional[Layout]:
    """The layout of a value; None if it is not known."""
    shape, node = value.shape, producers.get(value)
    if not all(isinstance(n, int) for n in shape) or 0 in shape:
        return None
    if node is None or not node.op.view:
        return _in_order(shape)
    rule = _RULES.get(node.op.name)
    layout = None if rule is None else _layout(node.inputs[0], producers)
    return None if rule is None or layout is None else rule(layout, node)


def _in_order(shape: Sequence[int]) -> Layout:
    axes: List[Tuple[int, int]] = []
    step = 1
    for n in reversed(shape):
        axes.append((n, step))
        step *= n
    return tuple(reversed(axes))


def _reshaped(layout: Layout, shape: Sequence[int]) -> Optional[Layout]:
    """The layout after a reshape; None if it needs a copy."""
    pieces: List[Tuple[int, int]] = []                  # axes that lie one behind another are one
    for n, step in layout:
        if pieces and pieces[-1][1] == n * step:
            pieces[-1] = pieces[-1][0] * n, step
        elif n != 1:
            pieces.append((n, step))
    axes: List[Tuple[int, int]] = []
    left, step = 1, 1
    for n in reversed(shape):
        if n != 1 and left == 1:
            left, step = pieces.pop()
        if left % n:
            return None
        axes.append((n, step))
        left, step = left // n, step * n
    return tuple(reversed(axes))


_RULES: Mapping[str, Callable[[Layout, Node], Layout]] = {
    "reshape": lambda layout, node: _reshaped(layout, node.outputs[0].shape) or _in_order(node.outputs[0].shape),
    "transpose": lambda layout, node: tuple([layout[axis] for axis in node.attrs["axes"]])}

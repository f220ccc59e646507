"""Which views NumPy cannot give, so that it copies: their values do not follow the array that they are made of."""
from __future__ import annotations

from typing import Callable, List, Mapping, Optional, Sequence, Tuple

from ...ir.graph import Node, Value
from ...ir.template import is_window

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
    return None if rule is None or layout is None else rule(layout, node, value)


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


def _indexed(layout: Layout, node: Node, value: Value) -> Layout:
    axes, sizes, source = [], iter(value.shape), iter(layout)
    for entry in node.attrs["index"]:
        if entry is None:
            axes.append((next(sizes), 0))
        else:
            _, step = next(source)
            if isinstance(entry, tuple):                # a slice; a number takes its axis away
                axes.append((next(sizes), step if is_window(entry) else step * entry[2]))
    return tuple(axes)


def _broadcast(layout: Layout, node: Node, value: Value) -> Layout:
    first = len(value.shape) - len(layout)
    return tuple([(n, 0) for n in value.shape[:first]]
                 + [(n, step if n == had else 0) for n, (had, step) in zip(value.shape[first:], layout)])


def _of_same_steps(layout: Layout, node: Node, value: Value) -> Layout:
    return tuple([(n, step) for n, (_, step) in zip(value.shape, layout)])


_RULES: Mapping[str, Callable[[Layout, Node, Value], Layout]] = {
    "broadcast_to": _broadcast,
    "getitem": _indexed,
    "reshape": lambda layout, node, value: _reshaped(layout, value.shape) or _in_order(value.shape),
    "split": _of_same_steps,
    "transpose": lambda layout, node, value: tuple([layout[axis] for axis in node.attrs["axes"]]),
    "unstack": lambda layout, node, value: layout[:node.attrs["axis"]] + layout[node.attrs["axis"] + 1:],
    **dict.fromkeys(("attached", "by_rule", "gradient_of", "identity", "stop_gradient"), _of_same_steps)}

"""Whole numbers of the graph that can be one of a few: where Python needs them, each is a way through the function."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional

from ..ir.graph import Node, Value
from ..ir.types import Tensor
from ..runtime.host_calls import Hole
from ..symbolic.values import SymbolicArray

if TYPE_CHECKING:
    from .protocols import Capture

#: So many ways are tried, as a function may have ends.
MOST_VALUES = 8

#: What gives its operand, or one of its elements, as another type.
_SAME = frozenset(("py_int", "cast", "int", "item", "getitem", "astype", "stop_gradient", "identity", "reshape", "index"))


#: The ops that call functions of NumPy.
_OF_NUMPY = ("numpy_call", "checked_call", "sized_call")


def value_of(capture: Capture, number: Any) -> Optional[int]:
    """The number, decided as this way through the function needs it; None where it may be one of many."""
    count = bound_of(capture, number)
    if count is None or not 0 < count <= MOST_VALUES:
        return None
    return next((k for k in range(count - 1) if bool(number == k)), count - 1)


def bound_of(capture: Capture, number: Any) -> Optional[int]:
    """What a whole number is certain to be below, and not negative; None where that is not known."""
    value = number.now() if type(number) is SymbolicArray else number.value
    found, bounds = _bound(capture, value), capture.number_bounds.of_whole(value, counted=False)     # a loop is not cut up
    return bounds[1] + 1 if found is None and bounds is not None and bounds[0] >= 0 else found


def _bound(capture: Capture, value: Value, depth: int = 8) -> Optional[int]:
    node = producer(capture.builder, value)
    if node is None or depth == 0:
        return None
    if node.op.name in ("argmax", "argmin"):
        return _extent(node.inputs[0].type, node.attrs.get("axis"))
    call, name = node.attrs.get("call"), computes(node)
    if name in ("argmax", "argmin") and len(node.inputs) == 1:
        return _extent(node.inputs[0].type, call.kwargs.get("axis", call.args[1] if len(call.args) > 1 else None))
    if name == "mod" and call is not None and type(call.args[0]) is Hole and type(call.args[1]) is int:
        return call.args[1] if call.args[1] > 0 and node.outputs[0].type.dtype.kind == "i" else None
    if name not in _SAME or not node.inputs:
        return None
    operand = node.inputs[0].type
    return 2 if getattr(operand, "dtype", None) is not None and operand.dtype.kind == "b" else \
        _bound(capture, node.inputs[0], depth - 1)


def _extent(operand: Any, axis: Any) -> Optional[int]:
    if not isinstance(operand, Tensor) or not all(type(n) is int for n in operand.shape):
        return None
    size = operand.size if axis is None else operand.shape[axis] if type(axis) is int else None
    return size if type(size) is int else None


def computes(node: Optional[Node]) -> str:
    """The name of what a node computes: that of its op, or of NumPy's function; empty for calls of others, of any names."""
    call = None if node is None else node.attrs.get("call")
    if call is None:
        return "" if node is None else node.op.name
    return call.name if node.op.name in _OF_NUMPY else ""      # type: ignore[union-attr, no-any-return]


def producer(builder: Any, value: Value) -> Optional[Node]:
    """The node that made a value, in this builder or one around it; None for inputs."""
    while builder is not None:
        node = builder.producer(value)
        if node is not None:
            return node     # type: ignore[no-any-return]
        builder = builder.outer
    return None

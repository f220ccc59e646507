"""What functions make of a list of unknown length: its length, and its items as one array."""
from __future__ import annotations

from typing import Any, Callable, Dict

import chainer
import chainer.functions as F

from ..capture_context import Calls
from ..heap.shadows import ShadowList
from ..ir.dims import Dim
from ..ir.graph import Value
from ..ir.op import OPS
from ..ir.types import Tensor
from ..runtime.host_calls import EmptyCall
from .known_texts import SymbolicText
from .lists import Items, symbolic_items
from .sequences import PARTING, Parts, Rows
from .values import SymbolicArray, SymbolicVariable


def length(calls: Calls, function: Callable, value: Any) -> Any:
    """``len``."""
    items = symbolic_items(value)
    if items is not None:
        return items.length
    if isinstance(value, Parts):
        return value.array.shape[value.axis] if type(value) is Rows else calls.capture.numpy.call(max, (value.length, 0), {})
    if isinstance(value, (SymbolicVariable, SymbolicArray)) and value.shape and isinstance(value.shape[0], Dim):
        return value.shape[0]
    if type(value) is SymbolicText:
        return calls.capture.texts.call(function, (value,))
    return value.length() if type(value) is ShadowList else function(value)


def stack(calls: Calls, function: Callable, xs: Any, axis: int = 0) -> Any:
    """``F.stack``."""
    items = symbolic_items(xs)
    return calls.native(function)(xs, axis) if items is None else _joined(items, axis, function, False)


def concat(calls: Calls, function: Callable, xs: Any, axis: int = 1) -> Any:
    """``F.concat``."""
    items = symbolic_items(xs)
    return calls.native(function)(xs, axis=axis) if items is None else _joined(items, axis, function, True)


def _joined(items: Items, axis: Any, function: Callable, along: bool) -> Any:
    """The items along a new axis, or along one that they have."""
    capture = items.capture
    elem = items.elem
    ndim = elem.ndim if isinstance(elem, Tensor) and items.kind in ("variable", "array") else -1
    if type(axis) is not int or not -ndim - (not along) <= axis < ndim + (not along) or items.uncertain:
        capture.abort(f"{function.__name__} of a list whose length depends on array values", because=items)
    axis %= ndim + (not along)
    value = stacked(items, axis, function)
    if along:
        shape = list(elem.shape)
        shape[axis] = value.shape[axis] * elem.shape[axis]
        value = OPS["reshape"](value, shape=tuple(shape))
    connected = items.requires_grad and bool(chainer.config.enable_backprop)
    return capture.chainer.result(value, [], items.requires_grad, connected)


def stacked(items: Items, axis: int, function: Callable) -> Value:
    """All items as one array; what the symbol in its shape means is known from there on."""
    capture = items.capture
    if capture.staging.in_loop:
        capture.abort("a list whose length depends on array values is made an array inside a loop on array values")
    capture.effects.store_writes()
    extent = _extent(capture.builder, items.value)
    capture.event("staged", function.__name__)
    value, = capture.builder.add(OPS["list_stack"], (items.value,), {
        "axis": axis, "extent": extent, "refuse": EmptyCall(function)}, name="stacked")
    return value


def _extent(builder: Any, items: Value) -> Dim:
    """The symbol for the length of a list: that of an earlier array of it, or the next; the same in every capture."""
    count = 0
    while builder is not None:
        for node in builder.nodes:
            if node.op.name == "list_stack" and node.inputs[0] is items:
                return node.attrs["extent"]
            count += sum(inner.op.name == "list_stack" for inner in node.walk())
        builder = builder.outer
    return Dim(f"length_{count}")


#: What is called in place of functions that get a list: ``handler(calls, function, *args)``.
FUNCTIONS: Dict[Any, Callable] = {F.stack: stack, F.concat: concat, **PARTING}

"""Batches of sequences whose lengths only the run knows: padded, and taken apart where the sums of the lengths say."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Sequence

import chainer.functions as F
import numpy as np
from chainer.dataset import convert

from ..ir.dims import Dim, equal
from ..ir.graph import Value
from ..runtime.host_calls import Hole
from ..symbolic.sequences import Rows, has_rows
from ..symbolic.sizes import Size
from ..symbolic.values import SymbolicArray, SymbolicVariable
from .value_enumeration import computes, producer

if TYPE_CHECKING:
    from .protocols import Calls, Capture

#: Calls of NumPy of which sizes are known if those are that they get, and what they make of them.
_OF_SIZES: Dict[str, Callable[[Sequence[Any]], List[Any]]] = {
    "array": list, "asarray": list, "cumsum": lambda sizes: [sum(sizes[:i + 1]) for i in range(len(sizes))]}

#: What `F.split_axis` gets.
_SPLIT = ("x", "indices_or_sections", "axis", "force_tuple")


def sizes_in(capture: Capture, value: Value) -> Optional[List[Any]]:
    """The sizes that an array of one dimension holds, of which only the run knows the numbers; None for any other array."""
    node = producer(capture.builder, value)
    if node is None or len(value.type.shape) != 1:
        return None
    if node.op.name == "getitem":
        entry, *others = node.attrs["index"]
        inner = sizes_in(capture, node.inputs[0]) if type(entry) is tuple and not others else None
        return None if inner is None else inner[slice(*entry)]
    call = node.attrs.get("call")
    made = None if call is None or call.kwargs or len(call.args) != 1 else _OF_SIZES.get(computes(node))
    if made is None:
        return None
    given, = call.args
    items = [_size(capture, item, node.inputs) for item in given] if type(given) in (list, tuple) else \
        sizes_in(capture, node.inputs[given.index]) if type(given) is Hole else None
    return None if items is None or None in items else made(items)


def _size(capture: Capture, item: Any, operands: Sequence[Value]) -> Any:
    return capture.dimensions.get(operands[item.index]) if type(item) is Hole else item if type(item) is int else None


def _split(calls: Calls, function: Callable, *args: Any, **kwargs: Any) -> Any:
    """``F.split_axis`` at places that are sums of lengths, or into parts of one element."""
    given = {**dict(zip(_SPLIT, args)), **kwargs}
    x, axis, count = given.get("x"), given.get("axis"), calls.capture.expressions.with_sizes(given.get("indices_or_sections"))
    if type(axis) is int and type(count) is Size and isinstance(x, SymbolicVariable) and has_rows(x, axis) and \
            equal(count.plain, x.shape[axis].plain) is True:
        return Rows(calls.capture, x, axis % len(x.shape), True)
    return calls.native(function)(*[_as_sizes(calls.capture, item) for item in args],
                                  **{name: _as_sizes(calls.capture, item) for name, item in kwargs.items()})


def _as_sizes(capture: Capture, item: Any) -> Any:
    """The sizes in an array that holds nothing else, as a list; anything else as it is."""
    found = sizes_in(capture, item.now()) if type(item) is SymbolicArray and item.dtype.kind in "iu" else None
    if found is None or not any(isinstance(size, Dim) for size in found):
        return item
    return [Size(capture, size) if isinstance(size, Dim) else size for size in found]


def _padded(calls: Calls, function: Callable, arrays: Sequence[Any], padding: Any) -> Any:
    """What Chainer's converters make of sequences: rows of one array, filled up with the padding."""
    if _are_sequences(arrays) and _is_of(arrays[0].dtype, padding):
        made = calls.callee(F.pad_sequence)(list(arrays), padding=padding).array
        calls.capture.array_writes.filled(made)
        return made
    return calls.capture.functions.staged(function)(arrays, padding)


def _are_sequences(arrays: Sequence[Any]) -> bool:
    """Whether these are arrays that may differ in the length of their first axis alone, of which only the run knows some."""
    if not all(type(x) is SymbolicArray and x.shape and not x.is_scalar for x in arrays):
        return False
    first = arrays[0]
    return any(isinstance(x.shape[0], Dim) for x in arrays) and all(
        (x.dtype, x.shape[1:]) == (first.dtype, first.shape[1:]) and all(type(n) is int for n in x.shape[1:]) for x in arrays)


def _is_of(dtype: np.dtype, number: Any) -> bool:
    """Whether a number stays what it is in an array of this dtype."""
    if dtype.kind == "f":
        return type(number) in (int, float) and (number != number or abs(number) in (0, np.inf) or
                                                 np.finfo(dtype).tiny <= abs(number) <= np.finfo(dtype).max)
    return dtype.kind in "iu" and type(number) is int and np.iinfo(dtype).min <= number <= np.iinfo(dtype).max


#: What is called for these functions: ``handler(calls, function, *args)``.
OF_SEQUENCES = {F.split_axis: _split, convert._concat_arrays_with_padding: _padded}

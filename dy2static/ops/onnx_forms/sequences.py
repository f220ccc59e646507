"""How the tables of joined sequences are written in ONNX."""
from __future__ import annotations

from typing import Any, Callable, Sequence, Tuple

from ...ir.onnx_forms import Name, NotInOnnx, OnnxWriter
from ...ir.types import Type
from .movement import axes


def places(find: Callable[[Sequence[int]], Tuple[Any, ...]]) -> Callable[..., Tuple[Name, ...]]:
    """The tables of ``sequence_places``: constants where the lengths are known.  find: the function that makes them."""
    def rule(o: OnnxWriter, types: Sequence[Type], results: Sequence[Type], *, sizes: Sequence[Any]) -> Tuple[Name, ...]:
        if all(isinstance(n, int) for n in sizes):
            return tuple(o.constant(table) for table in find(sizes))
        one, lengths, starts, moments, sequences, rows = _described(o, sizes)
        last = o.node("Sub", lengths, one)
        onwards = o.node("Add", starts, o.node("Min", moments, last))
        left = o.node("Sub", last, moments)
        backwards = o.node("Add", starts, o.node("Max", left, o.node("Sub", one, one)))
        runs = o.node("Unsqueeze", o.node("Less", moments, lengths), axes(o, 2))
        place = o.node("Sub", rows, o.node("Gather", starts, sequences))
        back = o.node("Sub", o.node("Gather", last, sequences), place)
        count = o.constant(len(sizes), "int64")
        return (onwards, backwards, runs, *(o.node("Add", o.node("Mul", each, count), sequences) for each in (place, back)))
    return rule


def order(find: Callable[[Sequence[int]], Tuple[Any, ...]]) -> Callable[..., Tuple[Name, ...]]:
    """The tables of ``sequence_order``, in the same way."""
    def rule(o: OnnxWriter, types: Sequence[Type], results: Sequence[Type], *, sizes: Sequence[Any]) -> Tuple[Name, ...]:
        if all(isinstance(n, int) for n in sizes):
            return tuple(o.constant(table) for table in find(sizes))
        if len(sizes) > _SORTED_STABLY:
            raise NotInOnnx("the order of many sequences of equal lengths is that of NumPy's sort")
        _, lengths, starts, _, sequences, rows = _described(o, sizes)
        count = o.constant(len(sizes), "int64")
        rank = _sorted(o, _sorted(o, lengths, count, largest=1), count)
        moment = o.node("Sub", rows, o.node("Gather", starts, sequences))
        key = o.node("Add", o.node("Mul", moment, count), o.node("Gather", rank, sequences))
        ordered = _sorted(o, key, o.reduce("ReduceSum", lengths, (0,)))
        return ordered, _sorted(o, ordered, o.reduce("ReduceSum", lengths, (0,)))
    return rule


#: NumPy sorts so few numbers by insertion, which leaves equal ones in their order, as ONNX's TopK does.
_SORTED_STABLY = 16


def _sorted(o: OnnxWriter, keys: Name, count: Name, largest: int = 0) -> Name:
    """The places of the smallest, or the largest, key, of the next one, and so on."""
    return o.nodes("TopK", (keys, o.node("Unsqueeze", count, axes(o, 0))), ("int64", "int64"), largest=largest)[1]


def _described(o: OnnxWriter, sizes: Sequence[Any]) -> Tuple[Name, ...]:
    """The number one, the lengths, where sequences start, all moments as a column, the sequence of each row, and the rows."""
    zero, one = o.constant(0, "int64"), o.constant(1, "int64")
    lengths = o.shape(sizes)
    ends = o.node("CumSum", lengths, zero)
    moments = o.node("Unsqueeze", o.node("Range", zero, o.reduce("ReduceMax", lengths, (0,)), one), axes(o, 1))
    rows = o.node("Range", zero, o.reduce("ReduceSum", lengths, (0,)), one)
    passed = o.node("GreaterOrEqual", o.node("Unsqueeze", rows, axes(o, 1)), ends)
    sequences = o.reduce("ReduceSum", o.cast(passed, "int64"), (1,))
    return one, lengths, o.node("Sub", ends, lengths), moments, sequences, rows

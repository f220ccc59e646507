"""Operators on bits as nodes of ONNX, which has those of two operands from opset 18 on, and shifts of unsigned ints."""
from __future__ import annotations

from typing import Any, Sequence

import numpy as np

from ...ir.onnx_forms import Name, NewerOpset, OnnxWriter
from ...ir.types import Type
from .arithmetic import Rule, where

#: The first opset with operators on the bits of two operands.
FIRST = 18


def of_two(operator: str) -> Rule:
    """``And``, ``Or`` or ``Xor`` of bits; of bools, of truths."""
    def rule(o: OnnxWriter, types: Sequence[Type], results: Sequence[Any], a: Name, b: Name) -> Name:
        if o.dtype(a).kind == "b":
            return o.node(operator, a, b)
        if o.opset < FIRST:
            raise NewerOpset(FIRST)
        return o.node(f"Bitwise{operator}", a, b)
    return rule


def bitwise_not(o: OnnxWriter, types: Sequence[Type], results: Sequence[Any], x: Name) -> Name:
    """All bits turned: ``-1 - x``."""
    return o.node("Not", x) if o.dtype(x).kind == "b" else o.node("Sub", o.like(-1, x), x)


def left_shift(o: OnnxWriter, types: Sequence[Type], results: Sequence[Any], a: Name, b: Name) -> Name:
    """``a << b``: zero for more bits than there are, and for fewer than none."""
    dtype, (count, is_inside) = results[0].dtype, _count(o, results[0].dtype, b)
    shifted = o.node("BitShift", o.cast(o.cast(a, np.int64), np.uint64), count, direction="LEFT")
    return where(o, is_inside, o.cast(shifted, dtype), o.constant(0, dtype))


def right_shift(o: OnnxWriter, types: Sequence[Type], results: Sequence[Any], a: Name, b: Name) -> Name:
    """``a >> b``: all bits as the sign for more bits than there are, and for fewer than none."""
    dtype, (count, is_inside) = results[0].dtype, _count(o, results[0].dtype, b)
    if dtype.kind == "u":
        shifted = o.cast(o.node("BitShift", o.cast(a, np.uint64), count, direction="RIGHT"), dtype)
        return where(o, is_inside, shifted, o.constant(0, dtype))
    wide, ones = o.cast(a, np.int64), o.constant(-1, np.int64)
    is_negative = o.node("Less", wide, o.constant(0, np.int64))
    # of a number below zero, the bits that are zero are shifted
    bits = o.cast(where(o, is_negative, o.node("Sub", ones, wide), wide), np.uint64)
    shifted = o.cast(o.node("BitShift", bits, count, direction="RIGHT"), np.int64)
    shifted = where(o, is_inside, shifted, o.constant(0, np.int64))
    return o.cast(where(o, is_negative, o.node("Sub", ones, shifted), shifted), dtype)


def _count(o: OnnxWriter, dtype: np.dtype, b: Name) -> Any:
    """By how many bits to shift, as an operand of the operator, and where that is less than there are."""
    bits = o.constant(8 * dtype.itemsize, np.int64)
    wide = o.cast(b, np.int64)
    is_inside = o.node("And", o.node("Less", wide, bits), o.node("Not", o.node("Less", wide, o.constant(0, np.int64))))
    return o.cast(where(o, is_inside, wide, o.constant(0, np.int64)), np.uint64), is_inside

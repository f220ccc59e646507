"""Columns that a mask drops from the softmax between two products: where their weights are zero, none of them is computed.

Causal attention drops half of all columns, and padding drops those behind the end of a sequence.
"""
from __future__ import annotations

from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from ...ir.dims import Size
from ...ir.graph import Node, Value
from ..loops.groups import Group
from ..loops.layout import Place
from .emitter import Emitter
from .kernels_products import Matrix, steps

HEADER = '#include "dy2static_masks.h"\n'

#: What is put in place of dropped scores is at most this: softmax makes zeros of it unless scores are of its size.
_FILL = -1e4

#: Factors of scores are at most this, or divisors at least its inverse: so no score overflows (`dy_moderate_f32`).
_FACTOR = 1e3

#: Rows of a multiple of so many columns consist of whole vectors of bytes.
_WHOLE = 64

_SCORE, _ALIKE = "score", "alike"


class Mask(NamedTuple):
    """What decides which columns a row keeps.

    place: where it is in memory.  keeps: what it has where a score is kept.
    """

    place: Place
    keeps: bool

    def matrix(self, emitter: Emitter) -> Matrix:
        """The mask as matrices of bytes, one for each product of the stack."""
        place = self.place
        terms = [str(place.offset)] if place.offset else []
        terms += [f"{name} * {stride}" for name, stride in place.terms if stride]
        first = " + ".join([f"(const uint8_t *){emitter.name(place.base)}", *terms])
        return Matrix(first, 0, place.strides[-2], steps(place.shape[:-2], place.strides[:-2]))


class Span(NamedTuple):
    """The columns that a block of rows computes.

    row: how many there are in all.  columns: the variable that says which; "" for all of them.  moderate: the variable of whether
    operands are such that it may be fewer; -1: they have not been looked at.
    """

    row: int
    columns: str = ""
    moderate: str = ""

    @property
    def left(self) -> str:
        """The first column; "" for that of the row."""
        return self.columns and f"{self.columns}.left"

    @property
    def right(self) -> str:
        """The one behind the last column."""
        return f"{self.columns}.right" if self.columns else str(self.row)

    @property
    def width(self) -> str:
        """How many columns there are."""
        return f"{self.right} - {self.left}" if self.columns else self.right

    @property
    def is_whole(self) -> bool:
        """Whether the columns are whole vectors, however many there are."""
        return not self.columns or self.row % _WHOLE == 0

    @property
    def loop(self) -> Tuple[str, str]:
        """Where a loop over them begins and ends: in whole vectors, as the compiler is told."""
        if not self.columns:
            return "0", self.right
        whole = " & -DY_KEPT_TOGETHER"
        return f"({self.left}{whole})", f"({self.right}{whole})" if self.is_whole else self.right

    def of(self, row: str) -> str:
        """A pointer to the first column in a row."""
        return f"{row} + {self.left}" if self.columns else row


def mask_of(emitter: Emitter, group: Group, scores: Value, weights: Value) -> Optional[Mask]:
    """The mask of a loop nest from scores to weights, if all columns that it drops are alike in each row.

    Then one of them tells what the others come to: the largest number of a row needs one of them, and if its weight is zero, none
    of them adds anything to the sum of the row, by which the weights are divided.
    """
    return _Columns(emitter, group, scores).mask(weights)


class _Columns:
    """What the values of a group are in the columns that a mask drops: made of scores, or alike within a row."""

    def __init__(self, emitter: Emitter, group: Group, scores: Value):
        self.emitter, self.group = emitter, group
        self.kinds: Dict[Value, str] = {scores: _SCORE}
        self.sums: Dict[Value, Value] = {}                  # sums of rows, and what they add up
        self.found: Optional[Mask] = None

    def mask(self, weights: Value) -> Optional[Mask]:
        """The mask, or None where a value is anything else, or another one than the weights has memory."""
        for node in self.group.nodes:
            (value,) = node.outputs
            kind = self._kind(node)
            if kind is None or value in self.group.elements and value is not weights and self.emitter.stored(value):
                return None
            self.kinds[value] = kind
            if node.op.name == "sum":
                self.sums[value] = self.emitter.place(node.inputs[0]).base
        quotient = next(node for node in self.group.nodes if node.outputs[0] is weights)
        bases = [self.emitter.place(v).base for v in quotient.inputs]
        is_share = quotient.op.name == "div" and self.sums == {bases[1]: bases[0]}
        return self.found if is_share else None

    def _kind(self, node: Node) -> Optional[str]:
        kinds = [self._kind_of_operand(v) for v in node.inputs]
        if node.op.name in ("sum", "max"):
            return _ALIKE if kinds == [_ALIKE] else None
        if node.op.kind != "elementwise":
            return None
        if node.op.name == "where" and _SCORE in kinds[1:]:
            return self._masked(node, kinds)
        if _SCORE not in kinds:
            return None if None in kinds else _ALIKE
        return _SCORE if self._is_scaled(node, kinds) else None

    def _kind_of_operand(self, value: Value) -> Optional[str]:
        place = self.emitter.place(value)
        known = self.kinds.get(place.base)
        if known is not None or place.base.ndim == 0:
            return known or _ALIKE
        is_one = not place.strides or not place.strides[-1]          # for all columns
        return _ALIKE if is_one and not self.group.makes(place.base) else None

    def _masked(self, node: Node, kinds: Sequence[Optional[str]]) -> Optional[str]:
        """A choice by a mask in memory between scores and a number far below them."""
        place = self.emitter.place(node.inputs[0])
        scores = kinds.index(_SCORE)
        number = self._number(node.inputs[3 - scores])
        if number is None or not number <= _FILL or self.group.makes(place.base) or place.shape != self.group.shape \
                or place.strides[-1] != 1:
            return None
        mask = Mask(place, scores == 1)
        if self.found not in (None, mask):
            return None
        self.found = mask
        return _ALIKE

    def _is_scaled(self, node: Node, kinds: Sequence[Optional[str]]) -> bool:
        """Whether scores are multiplied with a number that does not make them infinite."""
        scores = kinds.index(_SCORE)
        number = self._number(node.inputs[1 - scores]) if len(kinds) == 2 else None
        if number is None or node.op.name == "mul":
            return number is not None and abs(number) <= _FACTOR
        return node.op.name == "div" and not scores and abs(number) * _FACTOR >= 1

    def _number(self, value: Value) -> Optional[float]:
        number = self.emitter.number(self.emitter.place(value).base)
        return None if number is None else float(number)


def is_moderate(operand: Matrix, shape: Tuple[Size, Size], m: str, end: str) -> str:
    """The test whether an operand has only numbers whose products are finite; shape: its own, before it is turned."""
    rows, columns = shape[::-1] if operand.turned else shape
    return f"dy_moderate_{end}({operand.at(m)}, {rows}, {columns}, {operand.distance})"


def kept_columns(lines: Sequence[str], span: Span, mask: Mask, kept: str, rows: str, moderate: str, weights: str,
                 end: str) -> List[str]:
    """The lines that compute the weights of a block, run on the columns that its rows keep.

    They run again on all columns if the weight of a dropped one is not zero.
    kept, weights: pointers to the mask and the weights of its first row.  rows: the variable of how many it has.  moderate: the
    test of its matrix's operands.
    """
    columns, row = span.columns, span.row
    return [
        f"dy_columns {columns} = dy_kept_columns({kept}, {mask.place.strides[-2]}, {rows}, {row}, {int(mask.keeps)});",
        f"if ({columns}.dropped >= 0 && {span.moderate} < 0)",
        f"    {span.moderate} = {moderate};",
        f"if (!{span.moderate}) {columns} = (dy_columns){{0, {row}, -1}};",
        "for (;;) {",
        *("    " + line for line in lines),
        f"    if ({columns}.dropped < 0 || dy_zeros_{end}({weights} + {columns}.dropped, {rows}, {row})) break;",
        f"    {columns} = (dy_columns){{0, {row}, -1}};",
        "}",
    ]


def zeros_beside(span: Span, rows: str, weights: str, type: str) -> List[str]:
    """Lines that write the weights of the columns that were not computed, where something else reads them."""
    return [
        f"for (int64_t i = 0; i < {rows}; ++i) {{",
        f"    memset({weights} + i * {span.row}, 0, {span.left} * sizeof({type}));",
        f"    memset({weights} + i * {span.row} + {span.right}, 0, ({span.row} - {span.right}) * sizeof({type}));",
        "}",
    ]

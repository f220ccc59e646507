"""Loops over neighbouring elements, vector by vector: where they reduce, each lane has an accumulator of its own.

What is left of a row, fewer elements than a vector, is one vector more: element by element it would take as long as several ones.
"""
from __future__ import annotations

from dataclasses import replace
from typing import List, NamedTuple, Optional, Sequence, Union

from ...ir.dims import is_known
from ...ir.graph import Value
from ...native.cpus import has_masked_loads
from ..loops.ir import Accumulate, Address, Apply, Axis, Define, Expression, Kept, Load, Recall, Reduction, Statement
from ..loops.schedule import is_dear
from .accumulators import SUFFIXES
from .addresses import loops_of
from .distribution import types_of

#: Rows of a multiple of so many elements consist of whole vectors, on every CPU.
_WHOLE = 16

#: Rows of fewer elements are not worth a vector.
_LEAST = 5

#: Statements of elements that take as long as it takes to put a vector together.
_LONG = 3

Read = Union[Load, Kept]


class VectorSpan(NamedTuple):
    """Where a loop begins and ends; place: another variable that counts its turns; is_whole: it consists of whole vectors."""

    loop: str
    place: str
    begin: str
    end: str
    is_whole: bool

    def elsewhere(self, address: Address, place: str) -> Address:
        """The address at this place of the loop."""
        return replace(address, terms=tuple((place if index in (self.loop, self.place) else index, stride)
                                            for index, stride in address.terms))

    def goes_by(self, address: Address) -> bool:
        """Whether the address is another one in each turn."""
        return self.loop in loops_of(address) or self.place in loops_of(address)

    def are_neighbours(self, address: Address) -> bool:
        """Whether the elements of neighbouring turns stand side by side."""
        strides = [stride if index in (self.loop, self.place) else None
                   for index, stride in address.terms if self.goes_by(Address(0, ((index, stride),)))]
        return strides == [1]


def lanes_of(body: Sequence[Statement], reductions: Sequence[Reduction], axis: Axis, span: VectorSpan, is_here: bool) -> str:
    """What the lanes of a loop are called; "" where it is not to run in lanes: its elements are of several types, or apart.

    is_here: whether the code is for this machine; others may have no loads of some elements of a vector.
    """
    types = types_of(body)
    if len(types) != 1 or not reductions and (span.is_whole or not _is_long(body)):
        return ""
    if not span.is_whole and (not (is_here and has_masked_loads()) or is_known(axis.size) and axis.size < _LEAST
                              or reads_of_tail(body, span) is None):
        return ""
    return SUFFIXES.get(types.pop().name, "")


def _is_long(body: Sequence[Statement]) -> bool:
    """Whether an element takes so long that a vector more takes less than the elements that are left."""
    return len(body) >= _LONG or any(isinstance(s, (Define, Recall)) and is_dear(s.expression) for s in body)


def in_vectors(axis: Axis) -> bool:
    """Whether a loop as a whole consists of vectors."""
    return is_known(axis.size) and axis.size % _WHOLE == 0


def reads_of_tail(body: Sequence[Statement], span: VectorSpan) -> Optional[List[Read]]:
    """What statements read that is another element in each turn; None if neighbours do not stand side by side."""
    found: List[Read] = []
    for statement in body:
        _collect(statement.operand if isinstance(statement, Accumulate) else statement.expression, span, found)
    stored = [place for statement in body if isinstance(statement, Define) for place in (statement.store, statement.keep) if place]
    if not all(span.are_neighbours(address) for address in [*(read.address for read in found), *stored]):
        return None
    return list(dict.fromkeys(found))


def is_kept(statement: Statement) -> bool:
    """Whether what this makes is needed when the loop is over: it is stored, or reduced."""
    return isinstance(statement, Accumulate) or isinstance(statement, Define) and (statement.store or statement.keep) is not None


def value_of(made: Union[Read, Statement]) -> Value:
    """The value whose elements are read or made."""
    if isinstance(made, Load):
        return made.array
    return made.reduction.value if isinstance(made, Accumulate) else made.value


def _collect(expression: Expression, span: VectorSpan, found: List[Read]) -> None:
    if isinstance(expression, Apply):
        for operand in expression.operands:
            _collect(operand, span, found)
    elif isinstance(expression, (Load, Kept)) and span.goes_by(expression.address):
        found.append(expression)

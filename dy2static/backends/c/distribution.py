"""Loop distribution: a loop over elements in stages, so that no stage has two long functions one after the other, and none that
reduces reads bytes.

A function such as ``tanh`` is a chain of some 20 dependent instructions.  Where a second one reads its result, the chain of one
vector is so long that a processor's window of instructions holds little more than this vector, and most of its units wait.
So the loop runs over strips of elements: the first stage leaves what later ones read of it in buffers that stay in the
first-level cache.  Each number is computed as it would be without stages.

A loop that reads a mask does as many elements at a time as a vector has bytes.  An accumulator of it has so many parts, which are
put together one by one, for each row.  So what reads the mask is a stage of its own.
"""
from __future__ import annotations

from typing import Dict, Iterator, List, NamedTuple, Sequence, Set, Tuple

import numpy as np

from ...ir.dims import Size, is_known
from ...ir.graph import Value
from ..loops.ir import Accumulate, Address, Apply, Define, Expression, Kept, Load, Local, Recall, Statement, Sweep
from ..loops.schedule import reads_bytes

#: Elementwise ops that are long chains of instructions.
_LONG = frozenset("exp exp2 expm1 log log1p log2 tanh sigmoid sin cos tan softplus elu power cbrt special".split())

#: Elements of a strip: no more than so many, and than have so many bytes in all buffers; no fewer than the least.
_MOST, _BYTES, _LEAST = 512, 16384, 64

#: Elements of a vector, and of a line of the cache.
_VECTOR, _GRAIN = 8, 16


class Stages(NamedTuple):
    """A loop in stages.

    bodies: what each stage does for an element.  buffers: values that have a buffer of a strip.  strip: elements of a strip, the
    last of which may be shorter.
    """

    bodies: Tuple[Tuple[Statement, ...], ...]
    buffers: Tuple[Value, ...]
    strip: int


def distribute(sweep: Sweep, size: Size, place: str) -> Stages:
    """The stages of a sweep whose innermost loop has ``size`` turns; a single one where there is nothing to gain.

    place: the variable that counts the elements of a strip.
    """
    level = _levels(sweep.body)
    alone = Stages((sweep.body,), (), 0)
    if not any(level) or is_known(size) and size < _LEAST:
        return alone
    bodies: List[List[Statement]] = [[] for _ in range(max(level) + 1)]
    at, buffers = Address(0, ((place, 1),)), []
    read_in: Dict[Value, Set[int]] = {}
    for statement, stage in zip(sweep.body, level):
        for value in _read(statement):
            read_in.setdefault(value, set()).add(stage)
    for statement, stage in zip(sweep.body, level):
        readers = set() if isinstance(statement, Accumulate) else read_in.get(statement.value, set())
        if isinstance(statement, Recall) and not isinstance(statement.expression, Apply):
            for k in readers:                               # it is in memory already
                bodies[k].append(statement)
            continue
        store, keep = (statement.store, statement.keep) if isinstance(statement, Define) else (None, None)
        if isinstance(statement, Accumulate) or not stage or readers <= {stage} and store is None:
            bodies[stage].append(statement)
            continue
        value = statement.value
        if keep is None:
            buffers.append(value)
        bodies[stage].append(Define(value, statement.expression, keep=keep or at))
        for k in range(stage):
            if k == 0 and store is not None:                # arrays are written when all has been read
                bodies[k].append(Define(value, Kept(value, keep or at), store))
            elif k in readers:
                bodies[k].append(Recall(value, Kept(value, keep or at)))
    most = min(_MOST, _BYTES // max(1, sum(value.dtype.itemsize for value in buffers))) // _GRAIN * _GRAIN
    if most < _LEAST:
        return alone
    return Stages(tuple(map(tuple, reversed(bodies))), tuple(buffers), _strip(size, most))


def _strip(size: Size, most: int) -> int:
    """The elements of a strip: if possible, so that all strips are as long, and whole vectors."""
    if is_known(size):
        for count in range(-(-size // most), size // _LEAST + 1):
            if size % (count * _VECTOR) == 0:
                return size // count
    return most


def _levels(body: Sequence[Statement]) -> List[int]:
    """For each statement, the stages that follow its own: after a long function, as many as there are long functions one after the
    other that read its result; after one that reads bytes, that of sums.  Other statements belong to the earliest stage that reads
    them, and sums to the last.
    """
    level = [0] * len(body)
    reduces = any(isinstance(statement, Accumulate) for statement in body)
    after: Dict[Value, int] = {}                            # long functions one after the other that read a value
    stage: Dict[Value, int] = {}                            # of the earliest statement that reads it
    for number in range(len(body) - 1, -1, -1):
        statement, followers = body[number], 0
        if not isinstance(statement, Accumulate):
            long = _is_long(statement.expression)
            least = int(reduces and reads_bytes(statement.value, _loaded(statement.expression)))
            level[number] = max(least, (after if long else stage).get(statement.value, 0), stage.get(statement.value, 0))
            followers = after.get(statement.value, 0) + long
        for read in _read(statement):
            after[read] = max(after.get(read, 0), followers)
            stage[read] = max(stage.get(read, 0), level[number])
    return level


def _read(statement: Statement) -> Set[Value]:
    return set(_locals(statement.operand if isinstance(statement, Accumulate) else statement.expression))


def _locals(expression: Expression) -> Iterator[Value]:
    if isinstance(expression, Local):
        yield expression.value
    elif isinstance(expression, Apply):
        for operand in expression.operands:
            yield from _locals(operand)


def _loaded(expression: Expression) -> Iterator[Value]:
    if isinstance(expression, Load):
        yield expression.array
    elif isinstance(expression, Apply):
        for operand in expression.operands:
            yield from _loaded(operand)


def types_of(body: Sequence[Statement]) -> Set[np.dtype]:
    """The dtypes of all elements that these statements read or make."""
    found: Set[np.dtype] = set()
    for statement in body:
        made = isinstance(statement, Accumulate)
        expression = statement.operand if made else statement.expression
        found.update(array.dtype for array in _loaded(expression))
        found.add((statement.reduction if made else statement).value.dtype)
    return found


def _is_long(expression: Expression) -> bool:
    return isinstance(expression, Apply) and (expression.node.op.name in _LONG or any(map(_is_long, expression.operands)))

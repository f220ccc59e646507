"""From a group of nodes to a loop nest: which axes run together, what is kept for later sweeps, what threads share."""
from __future__ import annotations

import math
from typing import Callable, Iterable, List, Optional, Sequence, Set, Tuple, Union

from ...ir.dims import Size, is_known
from ...ir.graph import Node, Value
from ...ir.size_bounds import may_exceed
from .groups import REDUCTIONS, Group, total_place
from .ir import (
    Accumulate,
    Address,
    Apply,
    Axis,
    Define,
    Expression,
    Kept,
    Load,
    Local,
    LoopNest,
    Part,
    Recall,
    Reduction,
    Statement,
    Sweep,
)
from .layout import Place, broadcast, compact_strides, merged_axes, place_of
from .order import ordered
from .parallelize import Level, Share, cut, image_by_image

#: Longer sums of floats are made of sums of so many elements, which are added up in double precision.
BLOCK = 4096

#: The work of one element, in operations, up to which it is computed again in a later sweep instead of being kept.
_CHEAP = 4
_DEAR = frozenset("exp exp2 log tanh sigmoid sin cos tan log1p expm1 power cbrt softplus sqrt div elu".split())

#: Nanoseconds for one element: a byte of memory, an operation, one that is dear.  They decide what threads share.
_BYTE, _OPERATION, _DEAR_OPERATION = 0.05, 0.03, 0.3

#: Bytes of rows that a function may have on its own stack.
OWN_BYTES = 32768


def is_dear(expression: Expression) -> bool:
    """Whether an op in it takes much longer than a load, and is a long text in C."""
    return isinstance(expression, Apply) and (expression.node.op.name in _DEAR or any(map(is_dear, expression.operands)))


def reads_bytes(value: Value, arrays: Iterable[Value]) -> bool:
    """Whether some of these arrays, of which elements of ``value`` are computed, have elements of a byte, and it has not."""
    return value.dtype.itemsize >= 4 and any(array.dtype.itemsize == 1 for array in arrays)


def schedule(group: Group, place: Callable[[Value], Place], stored: Callable[[Value], bool], images: int = 0, apart: int = 0,
             keeps: bool = True, vectors: bool = True, target: Callable[[Value], Place] = place_of,
             reorders: bool = False) -> LoopNest:
    """The loop nest of a group.

    place: where the elements of a value are.  stored: whether a value must be in memory.  images: of what comes one after the
    other; if given, the outermost loop is shared image by image, however little work that is.  apart: so many axes have loops of
    their own, in a group without rows.  keeps: whether elements of a row that are not cheap have a row buffer; without, each sweep
    that reads them computes them again.  vectors: whether the innermost loop takes as many elements at a time as a vector has of
    the narrowest type, so that what reads bytes is not cheap.  target: where the elements of a value that the group makes are put.
    reorders: whether the loops of a group without reductions may be in another order than its axes.

    Linear in nodes times the sweeps that need them again.
    """
    return _Schedule(group, place, stored, apart, keeps, vectors, target, reorders).nest(images)


class _Schedule:
    """The decisions for one group."""

    def __init__(self, group: Group, place: Callable[[Value], Place], stored: Callable[[Value], bool], apart: int, keeps: bool,
                 vectors: bool, target: Callable[[Value], Place], reorders: bool):
        self.group, self.place, self.stored, self.keeps, self.target = group, place, stored, keeps, target
        self.makers = {node.outputs[0]: node for node in group.nodes}
        self.places = self._places()
        split = group.split or 0
        axes = range(len(group.shape))
        self.outer = self._loops("i", axes[:split])
        self.inner = self._loops("i", axes[split:apart]) + self._loops("j", axes[max(split, apart):])
        if reorders and group.split is None and not group.totals and group.sweeps == 1:
            self.inner = self._ordered(self.inner)
        self.kept = self._kept(vectors)
        self.here: Set[Value] = set()                       # elements that the sweep at hand has made
        self.body: List[Statement] = []

    def nest(self, images: int) -> LoopNest:
        sweeps = tuple(map(self._sweep, range(self.group.sweeps)))
        reductions = {r.value: r for sweep in sweeps for r in sweep.reductions if r.is_total}
        totals = tuple(reductions[v] for node in self.group.nodes for v in node.outputs if v in reductions)
        return LoopNest(self.group.shape, self.group.split, self.outer, self.inner, sweeps, totals,
                        self._row_nodes(self.group.sweeps), self.kept, self._cut(images))

    # What is where

    def _places(self) -> List[Place]:
        """Every place that is read or written element by element."""
        group, found = self.group, []
        for node in group.nodes:
            for value in node.inputs:
                place = self.place(value)
                if not group.makes(place.base) and math.prod(value.shape) == math.prod(group.shape):
                    found.append(broadcast(place, group.shape))
            (value,) = node.outputs
            if value in group.totals:
                found.append(total_place(node, value))
            elif value in group.elements and self.stored(value):
                found.append(self.target(value))
        return [place for place in found if len(place.shape) == len(group.shape)]

    def _loops(self, letter: str, axes: Sequence[int]) -> Tuple[Axis, ...]:
        """Loops over these axes, those in one over which all places go in one stride."""
        shape = self.group.shape
        return tuple(Axis(f"{letter}{k}", math.prod(shape[a] for a in part), tuple(part))
                     for k, part in enumerate(merged_axes(shape, self.places, axes)))

    def _ordered(self, loops: Tuple[Axis, ...]) -> Tuple[Axis, ...]:
        """These loops, whose turns may come in any order, so that what lies the other way round can be turned."""
        if len(loops) < 3:
            return loops
        read = [place for place in dict.fromkeys(self.places) if place.base not in self.group.elements]
        order = ordered([loop.size for loop in loops], [loop.axes[-1] for loop in loops], read)
        return tuple([loops[k] for k in order])

    def _row_size(self) -> Size:
        return math.prod(axis.size for axis in self.inner)

    def _element(self, place: Place) -> Address:
        """Where the loops are in a place of the shape of the group."""
        strides = ((axis.name, place.strides[axis.axes[-1]]) for axis in (*self.outer, *self.inner))
        return _address(place, *((name, stride) for name, stride in strides if stride))

    def _row(self) -> Address:
        """Where the rows are in an array with one element for each."""
        return Address(0, tuple(zip((a.name for a in self.outer), compact_strides([a.size for a in self.outer]))))

    def _in_row(self) -> Address:
        """Where the sweep is in a row."""
        return Address(0, tuple(zip((a.name for a in self.inner), compact_strides([a.size for a in self.inner]))))

    # Shares of threads

    def _cut(self, images: int) -> Optional[Share]:
        """The loop that threads share, if any."""
        group = self.group
        elements = math.prod(group.shape)
        if not elements or not is_known(elements) or self._row_size() * sum(v.dtype.itemsize for v in self.kept) > OWN_BYTES:
            return None
        totals = [total_place(node, v) for node in group.nodes for v in node.outputs if v in group.totals]
        levels = []
        for axis in (*self.outer, *(() if group.split is not None else self.inner)):
            apart = all(place.strides[axis.axes[-1]] for place in totals)
            summed = 0 if apart else sum(math.prod(place.base.shape) for place in totals)
            levels.append(Level(axis.name, axis.size, axis is self.inner[-1] if self.inner else False, summed))
        if images:
            return image_by_image(levels[0], images, elements) if levels else None
        return cut(levels, elements, elements * self._nanoseconds())

    def _nanoseconds(self) -> float:
        """What one element takes, about."""
        moved = {(place.base, place.strides): place.base.dtype.itemsize for place in self.places if any(place.strides)}
        wide = max(node.inputs[0].dtype.itemsize for node in self.group.nodes if node.inputs) / 4
        return _BYTE * sum(moved.values()) + wide * sum(
            _DEAR_OPERATION if node.op.name in _DEAR else _OPERATION for node in self.group.nodes)

    # Later sweeps

    def _kept(self, vectors: bool) -> Tuple[Value, ...]:
        """Elements that have a row buffer: those that read bytes only where there is room."""
        kept, dear = (tuple(dict.fromkeys(self._wanted_later(with_bytes))) for with_bytes in (vectors, False))
        size = self._row_size()
        return kept if is_known(size) and size * sum(value.dtype.itemsize for value in kept) <= OWN_BYTES else dear

    def _wanted_later(self, with_bytes: bool) -> List[Value]:
        """Elements that a later sweep reads, which are neither in memory nor cheap to compute again.  with_bytes: what reads bytes
        is not cheap.
        """
        found: List[Value] = []
        for node in self.group.nodes:
            sweep = self._sweep_of(node)
            if sweep is not None:
                for operand in node.inputs:
                    found += self._dear_before(self.place(operand).base, sweep, with_bytes)
        return found

    def _dear_before(self, value: Value, sweep: int, with_bytes: bool) -> List[Value]:
        group = self.group
        if value not in group.elements or group.sweep[value] >= sweep or self.stored(value):
            return []
        if self.keeps and (self._work(value) > _CHEAP or with_bytes and reads_bytes(value, self._arrays(value))):
            return [value]
        return [item for v in self.makers[value].inputs for item in self._dear_before(self.place(v).base, sweep, with_bytes)]

    def _arrays(self, value: Value) -> List[Value]:
        """The arrays from which the node of an element reads one for each."""
        places = [self.place(v) for v in self.makers[value].inputs]
        return [place.base for place in places if place.base.ndim and not self.group.makes(place.base)]

    def _work(self, value: Value) -> int:
        node = self.makers[value]
        if node.op.name in _DEAR:
            return _CHEAP + 1
        return 1 + sum(self._work(base) for base in (self.place(v).base for v in node.inputs)
                       if base in self.group.elements and not self.stored(base))

    def _sweep_of(self, node: Node) -> Optional[int]:
        """The sweep in which a node runs; None for one between sweeps."""
        (value,) = node.outputs
        if value in self.group.rows:
            return self.group.sweep[value] - 1 if node.op.name in REDUCTIONS else None
        return self.group.sweep[value]

    # Between sweeps

    def _row_nodes(self, sweep: int) -> Tuple[Define, ...]:
        """What is computed once for each row in front of a sweep."""
        return tuple(
            Define(value, Apply(node, tuple(self._row_operand(v, value) for v in node.inputs)),
                   self._row() if self.stored(value) else None)
            for node in self.group.nodes for value in node.outputs
            if value in self.group.rows and node.op.name not in REDUCTIONS and self.group.sweep[value] == sweep)

    def _row_operand(self, operand: Value, result: Value) -> Expression:
        place = self.place(operand)
        if place.base in self.group.rows or place.base.ndim == 0:
            return Local(place.base)
        place = place if operand.shape == result.shape else broadcast(place, result.shape)
        axes = [a for a, n in enumerate(self.group.row_shape) if n != 1]
        strides = dict(zip(axes, (s for s, n in zip(place.strides, result.shape) if n != 1)))
        return Load(place.base, _address(place, *((self._along(a), s) for a, s in strides.items() if s)))

    def _along(self, axis: int) -> Part:
        """The index along one axis of the shape, from the variable of its loop."""
        (loop,) = [loop for loop in (*self.outer, *self.inner) if axis in loop.axes]
        after = math.prod(self.group.shape[a] for a in loop.axes if a > axis)
        return Part(loop.name, after, None if axis == loop.axes[0] else self.group.shape[axis])

    # One sweep

    def _sweep(self, sweep: int) -> Sweep:
        nodes = [node for node in self.group.nodes if self._sweep_of(node) == sweep]
        reductions = {node: self._reduction(node) for node in nodes if node.op.name in REDUCTIONS}
        self.here, self.body = set(), []
        for node in nodes:
            operands = tuple(self._operand(v) for v in node.inputs)
            if node in reductions:
                self.body.append(Accumulate(reductions[node], operands[0]))
                continue
            (value,) = node.outputs
            self.body.append(Define(value, Apply(node, operands), self._element(self.target(value)) if self.stored(value) else None,
                                    self._in_row() if value in self.kept else None))
            self.here.add(value)
        blocked = bool(self.inner) and may_exceed(self.inner[-1].size, BLOCK) and any(
            not r.is_total and r.op == "sum" and r.value.dtype.kind == "f" for r in reductions.values())
        return Sweep(self._row_nodes(sweep), tuple(self.body), tuple(reductions.values()), BLOCK if blocked else 0)

    def _reduction(self, node: Node) -> Reduction:
        (value,) = node.outputs
        if value not in self.group.totals:
            return Reduction(node, self._row(), False, True, self.stored(value))
        place = total_place(node, value)
        near = not self.inner or not place.strides[self.inner[-1].axes[-1]]
        return Reduction(node, self._element(place), True, near, self.stored(value))

    def _operand(self, value: Value) -> Expression:
        place = self.place(value)
        base = place.base
        if base in self.group.elements:
            return self._made(base)
        if base in self.group.rows or base.ndim == 0:
            return Local(base)
        return Load(base, self._element(broadcast(place, self.group.shape)))

    def _made(self, value: Value) -> Expression:
        """An element of this group: made in this sweep, kept by an earlier one, or computed again."""
        if value not in self.here:
            if self.stored(value):
                source: Expression = Load(value, self._element(self.target(value)))
            elif value in self.kept:
                source = Kept(value, self._in_row())
            else:
                node = self.makers[value]
                source = Apply(node, tuple(self._operand(v) for v in node.inputs))
            self.body.append(Recall(value, source))
            self.here.add(value)
        return Local(value)


def _address(place: Place, *terms: Tuple[Union[str, Part], Size]) -> Address:
    """The address of an element, from what the loops add to that of the first."""
    return Address(place.offset, (*((name, stride) for name, stride in place.terms if stride), *terms))

"""Sizes of the caller's arrays that differ from call to call: one program serves them all."""
from __future__ import annotations

from typing import Any, Collection, Dict, List, Mapping, Sequence, Set, Tuple

from ..input_spec import Axis
from ..ir.dims import FREE, Dim, Size

#: So many different sizes of one axis have programs of their own; with the next one it becomes free.
_MOST_SIZES = 2

#: The capture that is being made, among the others.
_NOW = -1

#: So many captures are remembered.
_MOST_CAPTURES = 16


class SizeHistory:
    """Of one function: the shapes of the arrays in its calls, capture by capture.

    refused: axes that cannot be free, because something needs their number.  raised: those that can be if they are not small.
    """

    def __init__(self) -> None:
        self.captures: List[Mapping[Tuple, Tuple[int, ...]]] = []
        self.refused: Set[Axis] = set()
        self.raised: Set[Axis] = set()

    def add(self, sizes: "FreeSizes", fixed: Set[Axis], raised: Set[Axis]) -> None:
        """What a capture met, and the axes that it could not have free, or only from a size on."""
        self.captures = [*self.captures, sizes.seen][-_MOST_CAPTURES:]
        self.refused |= fixed
        self.raised |= raised - fixed

    def clear(self) -> None:
        """Forget everything."""
        self.captures, self.refused, self.raised = [], set(), set()


class FreeSizes:
    """Of one capture: which sizes are symbols.

    seen: the shape of every array met, by its path.  free: the axes that are free, and their symbols.  fixed: axes that are not.
    wanted: those that are as soon as there is a call; dynamic: whether others are when their sizes have differed.
    raised: those that are as large as those seen, nearly, in all calls to come.
    Axes whose sizes were equal whenever both were met share a symbol, and later calls are guarded to have them equal.
    """

    def __init__(self, history: SizeHistory, fixed: Collection[Axis] = (), dynamic: bool = True, wanted: Collection[Axis] = (),
                 raised: Collection[Axis] = ()):
        self.history, self.fixed, self.dynamic, self.wanted = history, history.refused.union(fixed), dynamic, wanted
        self.raised = history.raised.union(raised)
        self.seen: Dict[Tuple, Tuple[int, ...]] = {}
        self.free: Dict[Axis, Dim] = {}
        self._symbols: Dict[Dim, Dict[int, int]] = {}       # their sizes, capture by capture

    def shape(self, source: Any, shape: Tuple[int, ...], is_fixed: bool = False) -> Tuple[Size, ...]:
        """The shape of an array of the caller's as the graph has it.  is_fixed: it has no free sizes."""
        if is_fixed:
            return shape
        path = source.path()
        self.seen[path] = shape
        if not (self.dynamic or self.wanted):
            return shape
        before = {i: shapes[path] for i, shapes in enumerate(self.history.captures)
                  if path in shapes and len(shapes[path]) == len(shape)}
        return tuple([self._size(path, axis, {**{i: other[axis] for i, other in before.items()}, _NOW: n})
                      for axis, n in enumerate(shape)])

    def _size(self, path: Tuple, axis: int, sizes: Dict[int, int]) -> Size:
        free = self.dynamic and len(set(sizes.values())) > _MOST_SIZES or (path, axis) in self.wanted
        if not free or sizes[_NOW] < 2 or (path, axis) in self.fixed:
            return sizes[_NOW]
        alike = (size for size, others in self._symbols.items() if all(others.get(i, n) == n for i, n in sizes.items()))
        # a power of two, so that sizes that get smaller and smaller do not make a program each
        least = 1 << min(sizes.values()).bit_length() - 1 if (path, axis) in self.raised else 2
        symbol = next(alike, Dim(f"{FREE}{len(self._symbols)}" + f"_from{least}" * (least > 2)))
        self._symbols.setdefault(symbol, {}).update(sizes)
        self.free[path, axis] = symbol
        return symbol

    def can_be_raised(self, axes: Set[Axis]) -> bool:
        """Whether one of these free axes would be no other size than it is if it were raised."""
        return any(axis not in self.raised and min(self._symbols[self.free[axis]].values()) > 3 for axis in axes)

    def needed(self, symbols: Sequence[str]) -> Set[Axis]:
        """The free axes that these symbols stand for; all of them if they stand for none."""
        return {axis for axis, size in self.free.items() if not set(size.symbols).isdisjoint(symbols)} or set(self.free)

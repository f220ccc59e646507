"""Sizes of the caller's arrays that differ from call to call: one program serves them all."""
from __future__ import annotations

from typing import Any, Collection, Dict, List, Mapping, Optional, Sequence, Set, Tuple

from ..input_spec import Axis
from ..ir.dims import FREE, Dim, Size
from .ragged_lists import Member

#: So many different sizes of one axis have programs of their own; with the next one it becomes free.
_MOST_SIZES = 2

#: The capture that is being made, among the others.
_NOW = -1

#: So many captures are remembered.
_MOST_CAPTURES = 16


class SizeHistory:
    """Of one function: the shapes of the arrays in its calls, capture by capture.

    refused: axes that cannot be free, because something needs their number.  raised: those that can be if they are not small.
    families: the paths (`Member.family`) of lists whose sequences had different lengths in one call, with the least length.
    has_orders: whether something was put into an order by sizes.  leaves_orders: captures stop there.
    """

    def __init__(self) -> None:
        self.captures: List[Mapping[Tuple, Tuple[int, ...]]] = []
        self.refused: Set[Axis] = set()
        self.raised: Set[Axis] = set()
        self.families: Dict[Tuple, int] = {}
        self.has_orders = self.leaves_orders = False

    def add(self, sizes: "FreeSizes", fixed: Set[Axis], raised: Set[Axis]) -> None:
        """What a capture met, and the axes that it could not have free, or only from a size on."""
        self.captures = [*self.captures, sizes.seen][-_MOST_CAPTURES:]
        for family, *lengths in {(member.family, *member.lengths) for member in sizes.members.values()}:
            if family in self.families or len(set(lengths)) > 1:
                self.families[family] = min(*lengths, self.families.get(family, lengths[0]))
        self.refused |= fixed
        self.raised |= raised - fixed

    def clear(self) -> None:
        """Forget everything."""
        self.captures, self.refused, self.raised, self.families = [], set(), set(), {}
        self.has_orders = self.leaves_orders = False

    def leave_orders(self) -> bool:
        """Leave it to Python to put items into an order by sizes; False if there is none, or that is so already."""
        if not self.has_orders or self.leaves_orders:
            return False
        self.clear()
        self.leaves_orders = True
        return True


class FreeSizes:
    """Of one capture: which sizes are symbols.

    seen: the shape of every array met, by its path.  free: the axes that are free, and their symbols.  fixed: axes that are not.
    wanted: those that are as soon as there is a call; dynamic: whether others are when their sizes have differed.
    raised: those that are as large as those seen, nearly, in all calls to come.
    members: the sequences in lists, by their paths (`sequences_in`): that their lengths differ from one another shows that they
    will differ from call to call.
    Axes whose sizes were equal whenever both were met share a symbol, and later calls are guarded to have them equal.  Sequences of
    one list never do, and those of two lists only where all lengths are the same.
    """

    def __init__(self, history: SizeHistory, fixed: Collection[Axis] = (), dynamic: bool = True, wanted: Collection[Axis] = (),
                 raised: Collection[Axis] = (), members: Optional[Mapping[Tuple, Member]] = None):
        self.history, self.fixed, self.dynamic, self.wanted = history, history.refused.union(fixed), dynamic, wanted
        self.raised = history.raised.union(raised)
        self.seen: Dict[Tuple, Tuple[int, ...]] = {}
        self.free: Dict[Axis, Dim] = {}
        self.members = members or {}
        self._symbols: Dict[Dim, Dict[int, int]] = {}       # their sizes, capture by capture
        self._lists: Dict[Dim, Any] = {}                    # of which sequence of lists they are the length

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
        member = self._member(path, axis)
        varies = len(set(sizes.values())) > _MOST_SIZES or member is not None
        least = 2 if member is None else max(min(2, *member.lengths, self.history.families.get(member.family, 2)), 1)
        if not (self.dynamic and varies or (path, axis) in self.wanted) or sizes[_NOW] < least or (path, axis) in self.fixed:
            return sizes[_NOW]
        of_list = None if member is None else (member.lengths, member.place)
        alike = (size for size, others in self._symbols.items()
                 if self._lists[size] == of_list and all(others.get(i, n) == n for i, n in sizes.items()))
        # a power of two, so that sizes that get smaller and smaller do not make a program each
        least = 1 << max(min(sizes.values()), 1).bit_length() - 1 if (path, axis) in self.raised else least
        symbol = next(alike, Dim(f"{FREE}{len(self._symbols)}" + f"_from{least}" * (least != 2)))
        self._symbols.setdefault(symbol, {}).update(sizes)
        self._lists[symbol] = of_list
        self.free[path, axis] = symbol
        return symbol

    def _member(self, path: Tuple, axis: int) -> Optional[Member]:
        """The sequence of a list whose lengths vary that has this axis as its first."""
        member = self.members.get(path) if axis == 0 else None
        return member if member is not None and (len(set(member.lengths)) > 1 or member.family in self.history.families) else None

    def can_be_raised(self, axes: Set[Axis]) -> bool:
        """Whether one of these free axes would be no other size than it is if it were raised."""
        return any(axis not in self.raised and min(self._symbols[self.free[axis]].values()) > 3 for axis in axes)

    def needed(self, symbols: Sequence[str]) -> Set[Axis]:
        """The free axes that these symbols stand for; all of them if they stand for none."""
        return {axis for axis, size in self.free.items() if not set(size.symbols).isdisjoint(symbols)} or set(self.free)

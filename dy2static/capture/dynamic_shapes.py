"""Sizes of the caller's arrays that differ from call to call: one program serves them all."""
from __future__ import annotations

import collections
import enum
import math
from dataclasses import dataclass, field
from typing import Any, Collection, Dict, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple, Union

from ..input_spec import Axis
from ..ir.dims import Dim, Size, as_multiple
from ..ir.size_symbols import FREE, rest_of
from ..record.paths import is_of_size
from .ragged_lists import Member

#: So many different sizes of one axis have programs of their own; with the next one it becomes free.
_MOST_SIZES = 2

#: The capture that is being made, among the others.
_NOW = -1

#: So many captures are remembered.
_MOST_CAPTURES = 16

#: When so many sequences of one list are in the way, all of them are taken to be.
_SEVERAL = 3

#: No axis gets a limit that is below this one: sizes that captures are tried with have to differ.
_LEAST_LIMIT = 16

#: Sizes are taken to be multiples of no higher power of two: networks halve images so often.
_HIGHEST_FACTOR = 128


@dataclass
class Restrictions:
    """Axes for which the captured function does something else, or cannot be captured, for some sizes.

    raised: those that are as large as those seen, nearly, in all calls to come.  exact: those that are as large, no less.
    multiples: those that are also multiples of what all seen are multiples of.
    fixed: those that are not free.  limits: those that are never above a number: where a table has so many rows.
    steps: those that loops go over in steps of so many: there is a program for multiples of it, one for other sizes above it, and
    one for sizes up to it.  apart: those of them of which the last step has two or more, where there is a part of one.
    counted: those of them of which the number of steps must be known, so that there is a program for each number, and what the last
    step has at least.
    """

    raised: Set[Axis] = field(default_factory=set)
    exact: Set[Axis] = field(default_factory=set)
    multiples: Set[Axis] = field(default_factory=set)
    fixed: Set[Axis] = field(default_factory=set)
    limits: Mapping[Axis, int] = field(default_factory=dict)
    steps: Mapping[Axis, int] = field(default_factory=dict)
    apart: Set[Axis] = field(default_factory=set)
    counted: Mapping[Axis, int] = field(default_factory=dict)

    def joined(self, other: "Restrictions") -> "Restrictions":
        """These and those of the other one."""
        return Restrictions(self.raised | other.raised, self.exact | other.exact, self.multiples | other.multiples,
                            self.fixed | other.fixed, {**self.limits, **other.limits}, {**self.steps, **other.steps},
                            self.apart | other.apart, {**self.counted, **other.counted})


class SizeHistory:
    """Of one function: the shapes of the arrays in its calls, capture by capture.

    restricted: axes that cannot have any size.
    families: the paths (`Member.family`) of lists whose sequences had different lengths in one call, with the least length.
    has_orders: whether something was put into an order by sizes.  leaves_orders: captures stop there.
    """

    def __init__(self) -> None:
        self.captures: List[Mapping[Tuple, Tuple[int, ...]]] = []
        self.restricted = Restrictions()
        self.families: Dict[Tuple, int] = {}
        self.has_orders = self.leaves_orders = False

    def add(self, sizes: "FreeSizes") -> None:
        """What a capture met, and the axes that it could not have free, or not for all sizes."""
        self.met(sizes)
        for family, *lengths in {(member.family, *member.lengths) for member in sizes.members.values()}:
            if family in self.families or len(set(lengths)) > 1:
                self.families[family] = min(*lengths, self.families.get(family, lengths[0]))
        self.restricted = sizes.restricted

    def met(self, sizes: "FreeSizes") -> None:
        """The shapes of a call; enough of one that is captured next time, when more is known of functions."""
        self.captures = [*self.captures, sizes.seen][-_MOST_CAPTURES:]

    def clear(self) -> None:
        """Forget everything."""
        self.captures, self.restricted, self.families = [], Restrictions(), {}
        self.has_orders = self.leaves_orders = False

    def learned(self) -> Dict[str, Any]:
        """What is known now, for `restore`."""
        return {**vars(self), "families": dict(self.families)}

    def restore(self, learned: Mapping[str, Any]) -> None:
        """Know again what was known then."""
        vars(self).update(learned)

    def leave_orders(self) -> bool:
        """Leave it to Python to put items into an order by sizes; False if there is none, or that is so already."""
        if not self.has_orders or self.leaves_orders:
            return False
        self.clear()
        self.leaves_orders = True
        return True


class FreeSizes:
    """Of one capture: which sizes are symbols.

    seen: the shape of every array met, by its path.  free: the axes that are free, and their sizes.
    restricted: axes that cannot have any size: those of the history, and of this capture.
    near: by symbol, a number above which something may fail that cannot fail otherwise.
    wanted: axes that are free as soon as there is a call; dynamic: whether others are when their sizes have differed.
    members: the sequences in lists, by their paths (`sequences_in`): that their lengths differ from one another shows that they
    will differ from call to call.
    Axes whose sizes were equal whenever both were met share a symbol, and later calls are guarded to have them equal.  Sequences of
    one list never do, and those of two lists only where all lengths are the same.
    """

    def __init__(self, history: SizeHistory, restricted: Optional[Restrictions] = None, dynamic: bool = True,
                 wanted: Collection[Axis] = (), members: Optional[Mapping[Tuple, Member]] = None):
        self.history, self.dynamic, self.wanted = history, dynamic, wanted
        self.restricted = history.restricted.joined(restricted or Restrictions())
        self.seen: Dict[Tuple, Tuple[int, ...]] = {}
        self.free: Dict[Axis, Any] = {}
        self.near: Dict[str, int] = {}
        self.members = members or {}
        self._symbols: Dict[Any, Dict[int, int]] = {}       # free sizes, and their numbers capture by capture
        self._lists: Dict[Any, Any] = {}                    # of which sequence of lists they are the length

    @property
    def numbers(self) -> Dict[str, int]:
        """The number that each symbol has in the call that is captured."""
        multiples = [(as_multiple(size), sizes[_NOW]) for size, sizes in self._symbols.items()]
        return {multiple[0]: n // multiple[1] for multiple, n in multiples if multiple is not None}

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

    def note_length(self, source: Any, length: int) -> None:
        """Note how many items a list of the caller's has that is read as it is; source: of its length."""
        self.seen[source.path()] = length,

    def _size(self, path: Tuple, axis: int, sizes: Dict[int, int]) -> Size:
        member = self._member(path, axis)
        varies = len(set(sizes.values())) > _MOST_SIZES or member is not None or is_of_size(path)
        least = 2 if member is None else max(min(2, *member.lengths, self.history.families.get(member.family, 2)), 1)
        is_free = (self.dynamic and varies or (path, axis) in self.wanted) and (path, axis) not in self.restricted.fixed
        if not is_free or not least <= sizes[_NOW] <= self.restricted.limits.get((path, axis), sizes[_NOW]):
            return sizes[_NOW]
        step, rest = self.restricted.steps.get((path, axis)), 2 if (path, axis) in self.restricted.apart else 1
        is_counted = (path, axis) in self.restricted.counted
        rest = self.restricted.counted.get((path, axis), rest)
        kind = _kind(sizes[_NOW], step, rest, is_counted)
        if kind is _Kind.OTHER:
            return sizes[_NOW]
        near = {i: n for i, n in sizes.items() if _kind(n, step, rest, is_counted) == kind}
        of_list = None if member is None else (member.lengths, member.place)
        alike = (size for size, others in self._symbols.items()
                 if self._lists[size] == of_list and all(others.get(i, n) == n for i, n in sizes.items()))
        factor = _common_factor(near) if (path, axis) in self.restricted.multiples and not is_counted else 1
        factor = step if kind is _Kind.WHOLE else factor                # type: ignore[assignment]
        least = -(-least // factor)
        if (path, axis) in self.restricted.raised and not is_counted:
            # a power of two, so that sizes that get smaller and smaller do not make a program each
            least = max(min(near.values()) // factor, 1)
            least = least if (path, axis) in self.restricted.exact else 1 << least.bit_length() - 1
        most = self.restricted.limits.get((path, axis))
        if is_counted:
            most = min(kind.most, kind.most if most is None else most)      # type: ignore[union-attr]
            least = max(least, kind.least)                                  # type: ignore[union-attr]
        elif step is not None:
            least = max(least, {_Kind.SMALL: least, _Kind.WHOLE: 2, _Kind.REST: step + 1}[kind])
            most = min(step, step if most is None else most) if kind is _Kind.SMALL else most
        name = f"{FREE}{len(self._symbols)}" + f"_from{least}" * (least != 2) + \
            ("" if most is None else f"_upto{most // factor}") + f"_rest{rest}of{step}" * (kind is _Kind.REST)
        size = next(alike, factor * Dim(name))
        self._symbols.setdefault(size, {}).update(sizes)
        self._lists[size] = of_list
        self.free[path, axis] = size
        return size

    def _member(self, path: Tuple, axis: int) -> Optional[Member]:
        """The sequence of a list whose lengths vary that has this length along this axis."""
        member = self.members.get(path)
        if member is None or axis not in member.axes:
            return None
        return member if len(set(member.lengths)) > 1 or member.family in self.history.families else None

    def restrict(self, error: BaseException, restricted: Restrictions, is_number_needed: bool) -> None:
        """Let free axes have fewer sizes in the next try: up to a limit, larger ones, multiples, at last only those of this call.

        error: why the capture ended.  restricted: what is changed.  is_number_needed: nothing but the number of a size will do.
        """
        steps = self._new_steps(getattr(error, "steps", {}))
        if steps:
            restricted.steps = {**restricted.steps, **steps}
            return
        axes = {axis for axis in self.needed(getattr(error, "sizes", ())) if _has_rest(self.free[axis]) and
                axis not in self.restricted.apart}
        if axes:
            restricted.apart |= axes
            return
        limits = self.new_limits({**self.near, **getattr(error, "limits", {})})
        if limits:
            restricted.limits = {**restricted.limits, **limits}
            return
        numbers = set() if getattr(error, "sizes", ()) else {axis for axis in self.free if is_of_size(axis[0])}
        if numbers:                                     # no other of these would do
            restricted.fixed |= numbers
            return
        axes = self.needed(getattr(error, "sizes", ()))
        is_number_needed |= not getattr(error, "sizes", ()) and not axes.isdisjoint(self.restricted.apart)
        restricted.raised |= axes
        axes = self._with_their_lists(axes, restricted.raised)
        restricted.raised |= axes
        counted = axes & set(self.restricted.counted)
        axes -= counted
        self._fix(counted, restricted)
        if is_number_needed:
            self._fix(axes, restricted)
        elif not any(axis not in self.restricted.raised and min(self._symbols[self.free[axis]].values()) > 3 for axis in axes):
            sizes = {axis: self._symbols[self.free[axis]] for axis in axes}
            rounded = axes - self.restricted.exact - self.restricted.multiples
            nearer = {axis for axis in rounded if _is_no_power(min(sizes[axis].values()))}
            can_be = {axis for axis in axes - self.restricted.multiples if _common_factor(sizes[axis]) > 1}
            restricted.exact = restricted.exact | nearer if nearer else restricted.exact - can_be
            restricted.multiples |= set() if nearer else can_be
            self._fix(set() if nearer or can_be else axes, restricted)

    def _fix(self, axes: Set[Axis], restricted: Restrictions) -> None:
        """Let axes have a program for each size; where loops go over them in steps, for each number of steps, if that does."""
        counted = self.restricted.counted
        in_steps = {axis: counted.get(axis, 0) + 1 for axis in axes if axis in self.restricted.steps and counted.get(axis, 0) < 2}
        restricted.counted = {**restricted.counted, **in_steps}
        restricted.fixed |= axes - set(in_steps)

    def _with_their_lists(self, axes: Set[Axis], raised: Set[Axis]) -> Set[Axis]:
        """These axes; with those of all sequences of a list of which several have been in the way: the others would be, too."""
        families = collections.Counter([self.members[path].family for path, axis in raised
                                        if self._is_of_member(path, axis)])
        return axes | {(path, axis) for path, axis in self.free if self._is_of_member(path, axis)
                       and families[self.members[path].family] >= _SEVERAL}

    def _is_of_member(self, path: Tuple, axis: int) -> bool:
        return path in self.members and axis in self.members[path].axes

    def new_limits(self, limits: Mapping[str, int]) -> Dict[Axis, int]:
        """The limits of axes for those of symbols, if they have none yet and no size seen is above it."""
        found: Dict[Axis, int] = {}
        for axis, size in self.free.items():
            symbol, factor = as_multiple(size) or ("", 1)
            most = limits.get(symbol, 0) * factor
            if axis not in self.restricted.limits and most >= max(_LEAST_LIMIT, *self._symbols[size].values()):
                found[axis] = most
        return found

    def _new_steps(self, steps: Mapping[str, int]) -> Dict[Axis, int]:
        """The steps of axes for those of symbols, for axes that have none yet; where steps are counted, one that divides both."""
        found = {axis: steps[symbol] for axis, size in self.free.items() for symbol in size.symbols
                 if symbol in steps and axis not in self.wanted}
        known = self.restricted.steps
        common = {axis: math.gcd(step, known[axis]) for axis, step in found.items() if axis in self.restricted.counted}
        return {**{axis: step for axis, step in found.items() if axis not in known},
                **{axis: step for axis, step in common.items() if 1 < step < known[axis]}}

    def needed(self, symbols: Sequence[str]) -> Set[Axis]:
        """The free axes that these symbols stand for; all of them if they stand for none."""
        return {axis for axis, size in self.free.items() if not set(size.symbols).isdisjoint(symbols)} or set(self.free)


class _Kind(enum.Enum):
    """What a size is to a loop that goes over it in steps: one step at the most, whole steps, or whole ones and a part of one."""

    ANY, SMALL, WHOLE, REST, OTHER = range(5)


class _Count(NamedTuple):
    """The sizes that make one number of steps."""

    least: int
    most: int


def _kind(size: int, step: Optional[int], least: int, is_counted: bool) -> Union[_Kind, _Count]:
    """least: of what such a part has."""
    if step is None:
        return _Kind.ANY
    if is_counted:
        before = (size - 1) // step * step
        return _Count(before + least, before + step) if size >= before + least else _Kind.OTHER
    kind = _Kind.REST if size % step >= least else _Kind.OTHER if size % step else _Kind.WHOLE
    return _Kind.SMALL if size <= step else kind


def _has_rest(size: Any) -> bool:
    return any(rest_of(symbol)[0] for symbol in size.symbols)


def _is_no_power(size: int) -> bool:
    """Whether a size is no power of two."""
    return size & (size - 1) != 0


def _common_factor(sizes: Mapping[int, int]) -> int:
    """What these sizes are multiples of: a power of two if there is one, since few networks need another."""
    common = math.gcd(*sizes.values())
    return min(common & -common, _HIGHEST_FACTOR) if common % 2 == 0 else common

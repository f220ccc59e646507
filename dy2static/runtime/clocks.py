"""Clocks in generated code: how often each part of a function ran, and how long that took."""
from __future__ import annotations

import ctypes
import time
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Protocol, Sequence, Tuple

from ..errors import Location

_now = time.perf_counter_ns


class Part(NamedTuple):
    """What ran between two readings of a clock.

    operations: the names of its ops.  places: the user's lines they come from, each once.  native: whether it is C code.
    """

    operations: Tuple[str, ...]
    places: Tuple[Location, ...]
    native: bool


class Stamps(Protocol):
    """Points in the order in which a device does what has been called; nothing waits for the device when they are made."""

    def stamp(self) -> Any:
        """A point behind what has been called."""

    def between(self, first: Any, second: Any) -> int:
        """The nanoseconds from one point to another.  Waits for the second."""


#: So many points of a run wait at most for the device.
_MOST_POINTS = 1024


class Clock:
    """The clock of one generated function: each run begins with ``start()`` and calls ``tick(k)`` behind its k-th part.

    What a look at the clock takes is left out, as far as that can be.  Calls of native code may have another clock inside.
    stamps: takes the times of what is not done when calls return; they are read when `settle` is called.
    libraries: what computes parts that are no native code, and those that are.
    """

    def __init__(self, direction: str):
        self.direction = direction
        self.runs = 0
        self.inside: Optional[NativeClock] = None
        self.stamps: Optional[Stamps] = None
        self._points: List[Tuple[int, Any]] = []        # of this run, each with the part that it ends
        self.libraries = "NumPy", "C"
        self._parts: List[Part] = []
        self._calls: List[int] = []                     # the parts that are calls of native code
        self._times: List[int] = []
        self._counts: List[int] = []
        self._last = 0

    def part(self, nodes: Sequence[Any], native_call: bool = False, native: bool = False) -> int:
        """The number of a new part, made of these nodes.  native: whether it is one piece of native code."""
        self._calls += [len(self._parts)] if native_call else []
        return _add(nodes, native, self._parts, self._times, self._counts)

    def start(self) -> None:
        """Start a run."""
        self.runs += 1
        if self.stamps is not None:
            self.settle()
            self._points = [(-1, self.stamps.stamp())]
        self._last = _now()

    def tick(self, number: int) -> None:
        """End a part."""
        if self.stamps is not None:
            self._points.append((number, self.stamps.stamp()))
            if len(self._points) >= _MOST_POINTS:
                self.settle()
            return
        self._times[number] += _now() - self._last
        self._counts[number] += 1
        self._last = _now()

    def settle(self) -> None:
        """Wait for the device, and read what the parts took there since the last time."""
        for (_, before), (number, point) in zip(self._points, self._points[1:]):
            assert self.stamps is not None
            self._times[number] += self.stamps.between(before, point)
            self._counts[number] += 1
        self._points = self._points[-1:]

    def read(self) -> List[Tuple[Part, int, int]]:
        """Each part that ran, how often, and for how many nanoseconds, those of native code included."""
        self.settle()
        found = [(self._parts[k], self._counts[k], self._times[k]) for k in range(len(self._parts)) if k not in self._calls]
        if self._calls:
            known = [] if self.inside is None else self.inside.read()
            around = sum([self._times[k] for k in self._calls]) - sum([spent for _, _, spent in known])
            entering = Part((ENTERING,), (), False)
            found += [*known, (entering, sum([self._counts[k] for k in self._calls]), max(around, 0))]
        return [(part, count, spent) for part, count, spent in found if count]


#: What stands for what is between Python and native code: arguments in, results out.
ENTERING = "calls of native code"

#: What stands for native code that left its work to NumPy.
DECLINED = "left to NumPy by native code"


class NativeClock:
    """The clock in one C text: ``dy_tick(k)`` behind its k-th part."""

    def __init__(self) -> None:
        self._parts: List[Part] = []
        self._declined: Dict[Part, List[int]] = {}
        self._array: Any = ()
        self._before: List[int] = []

    def part(self, nodes: Sequence[Any]) -> int:
        """The number of a new part, made of these nodes."""
        self._parts.append(_part(nodes, True))
        return len(self._parts) - 1

    @property
    def header(self) -> str:
        """What the C text needs in front."""
        return f'#include "dy2static_clock.h"\nDY_CLOCK({max(len(self._parts), 1)})\n'

    def bind(self, library: Any) -> None:
        """Read what this library counts.  Another profile may have used it before: its counts do not begin with nought."""
        address = library.find("dy2static_clock")
        address.restype = ctypes.c_void_p
        self._array = (ctypes.c_int64 * (2 * len(self._parts))).from_address(address())
        self._before = list(self._array)

    def declining(self, function: Callable[..., Any], nodes: Sequence[Any]) -> Callable[..., Any]:
        """The function that answers what native code declines, with its time taken."""
        known = self._declined.setdefault(_part(nodes, False)._replace(operations=(DECLINED,)), [0, 0])

        def timed(*args: Any) -> Any:
            begin, inside = _now(), sum(self._array[::2])
            try:
                return function(*args)
            finally:
                known[0] += 1
                known[1] += _now() - begin - (sum(self._array[::2]) - inside)
        return timed

    def read(self) -> List[Tuple[Part, int, int]]:
        """As `Clock.read`."""
        spent = [now - before for now, before in zip(self._array, self._before)]
        return [(part, spent[2 * k + 1], spent[2 * k]) for k, part in enumerate(self._parts)] + [
            (part, count, time) for part, (count, time) in self._declined.items()]


def _add(nodes: Sequence[Any], native: bool, parts: List[Part], *columns: List[int]) -> int:
    parts.append(_part(nodes, native))
    for column in columns:
        column.append(0)
    return len(parts) - 1


def _part(nodes: Sequence[Any], native: bool) -> Part:
    places = {(node.loc.file, node.loc.line): node.loc for node in reversed(nodes) if node.loc is not None}
    return Part(tuple(dict.fromkeys(_name(node) for node in nodes)), tuple(sorted(places.values(), key=_by_line)), native)


def _by_line(place: Location) -> Tuple[str, int]:
    return place.file, place.line


def _name(node: Any) -> str:
    """What a node does, in a word: the function of Chainer or NumPy that a call makes."""
    name = getattr(node.attrs.get("call"), "name", None)
    return f"{name}" if isinstance(name, str) and name else node.op.name.rstrip("_")

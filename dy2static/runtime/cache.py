"""The programs of one function: which are kept, which go, and why calls found none."""
from __future__ import annotations

import collections
from typing import Any, Callable, Deque, Dict, List, NamedTuple, Optional, Tuple

from ..markup import cell, escaped, page_part, table
from ..threads.locks import lock
from .program import Program

#: How many misses are remembered, and how many signatures of evicted programs.
_MOST_REMEMBERED = 256

#: The most characters that a report shows of one guard.
_LONGEST = 200


class Miss(NamedTuple):
    """A call that no program could take.

    reason: what the nearest of the programs wanted otherwise.
    result: what became of it: ``was captured``, ``runs eagerly: …``, ``runs in parts: …`` or ``is captured next time: …``.
    call: the arguments, as far as they are arrays or numbers of the graph; "" where the capture stopped before that.
    """

    reason: str
    result: str
    call: str = ""

    def __str__(self) -> str:
        return f"{self.reason}: the call {self.result}{f' ({self.call})' if self.call else ''}"


class Misses(List[Miss]):
    """Misses in order; printed, a line for each."""

    def __str__(self) -> str:
        return "\n".join(map(str, self)) or "no misses"

    def _repr_html_(self) -> str:
        rows = [[cell(number), cell(escaped(miss.reason)), cell(escaped(miss.result)), cell(escaped(miss.call), "dim")]
                for number, miss in enumerate(self, 1)]
        return page_part(table(("", "reason", "the call", "its arguments"), rows))


class Recent(dict):
    """A dict that forgets what was put in first when there is too much."""

    most = 1024

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key, value)
        if len(self) > self.most:
            self.pop(next(iter(list(self)), None), None)


class _Stamp:
    """When a call was put, and used last, in the time of its `Cache`."""

    time = born = 0


class Cache:
    """At most ``limit`` programs of about ``limit_bytes`` bytes together; those used longest ago go first.

    programs, every: each program, and what to call for it, in the order in which they are tried, newest first, those with free
        sizes last, until they are used often (`prefer`).
    calls: what is tried: ``every``; while it is parked, nothing; or what is in front of them (`show`).
    last: the call used last.  evicted: how many programs had to go.  gone: is called with each program that is taken out.
    """

    def __init__(self, limit: int, limit_bytes: Optional[int] = None):
        self.limit, self.limit_bytes = limit, limit_bytes
        self.programs: List[Program] = []
        self.calls: List[Callable] = []
        self.every: List[Callable] = []
        self.front: Optional[Callable] = None
        self.last: Any = None
        self.evicted = self.clock = self.missed = 0
        self.gone: Callable[[Program], None] = lambda program: None
        self.misses: Deque[Miss] = collections.deque(maxlen=_MOST_REMEMBERED)
        self._stamps: Dict[Callable, _Stamp] = {}
        self._gone: Dict[str, None] = Recent()
        self._is_parked = False
        self._lock = lock()

    def park(self, parked: bool) -> None:
        """Hide all programs from calls, or show them again."""
        with self._lock:
            self._is_parked = parked
            self._show()

    def show(self, front: Optional[Callable]) -> None:
        """Have calls find this in front of the programs, or the programs themselves."""
        with self._lock:
            self.front = front
            self._show()

    def _show(self) -> None:
        self.calls[:] = [] if self._is_parked else self.every if self.front is None else [self.front]

    @property
    def behind(self) -> List[Callable]:
        """What to call for the programs, whatever is in front of them."""
        return [] if self._is_parked else self.every

    @property
    def nbytes(self) -> int:
        """About how many bytes the programs keep."""
        return sum([program.nbytes for program in list(self.programs)])

    def used(self, call: Callable) -> None:
        """Note that another call than ``last`` was used.  A race between threads loses one use at most."""
        self._stamp(self.last)
        self.last = call
        self._stamp(call)

    def _stamp(self, call: Any) -> None:
        stamp = self._stamps.get(call)
        if stamp is not None:                           # else it was replaced or evicted, or is in front
            stamp.time = self.clock = self.clock + 1

    @property
    def current(self) -> Optional[Program]:
        """The program used last; None before the first."""
        with self._lock:
            every = self.every
            return self.programs[every.index(self.last)] if self.last in every else next(iter(self.programs), None)

    def put(self, program: Program, call: Callable) -> bool:
        """Add a program: in front, or at the end if it serves arrays of many sizes, for which one of their own is better.

        Gives whether one like it was here before, and had to go.
        """
        with self._lock:
            place = len(self.programs) if program.has_free_sizes else 0
            self.programs.insert(place, program)
            self.every.insert(place, call)
            self._stamps[call] = stamp = _Stamp()
            self._show()
            self.used(call)
            stamp.born = self.clock
            was_here = program.signature in self._gone
            self.trim()
            return was_here

    def trim(self) -> None:
        """Evict programs until the rest keeps within the limits.  The newest stays."""
        with self._lock:
            self._stamp(self.last)
            sizes = [program.nbytes for program in self.programs] if self.limit_bytes is not None else []
            total = sum(sizes)
            while len(self.programs) > max(self.limit, 1) or sizes and total > (self.limit_bytes or 0) and len(sizes) > 1:
                oldest = min(range(len(self.programs)), key=lambda k: self._stamps[self.every[k]].time)
                self._gone[self.programs[oldest].signature] = None
                self.forget(self.programs[oldest])
                if sizes:
                    total -= sizes.pop(oldest)
                self.evicted += 1

    def call_of(self, program: Program) -> Callable:
        """What to call for a program, even if another thread has evicted it."""
        with self._lock:
            return self.every[self.programs.index(program)] if program in self.programs else program.call

    def replace(self, call: Callable, by: Callable) -> None:
        """Replace what is called for a program."""
        with self._lock:
            if call in self.every:
                self.every[self.every.index(call)] = by
                self._stamps[by] = self._stamps.pop(call)
                self.last = by if self.last is call else self.last
                self._show()

    def prefer(self, call: Callable) -> None:
        """Try a program with free sizes, which is used often, before those that nothing has used since it came."""
        with self._lock:
            place = self.every.index(call) if call in self.every else -1
            if place > 0 and self.programs[place].has_free_sizes:
                born = self._stamps[call].born
                order = sorted(range(place + 1), key=lambda k: (self._stamps[self.every[k]].time < born and k != place, k))
                self.programs[:place + 1] = [self.programs[k] for k in order]
                self.every[:place + 1] = [self.every[k] for k in order]
                self._show()

    def exchange(self, program: Program, by: Program) -> None:
        """Replace a program by another one for the same calls."""
        with self._lock:
            if program in self.programs:
                index = self.programs.index(program)
                self.replace(self.every[index], by.call)
                self.programs[index] = by
                program.retire()                        # its memory may wait for the garbage collector

    def forget(self, program: Program) -> None:
        """Remove one program."""
        with self._lock:
            if self.take_out(program):
                program.retire()
                self.gone(program)

    def take_out(self, program: Program) -> bool:
        """Remove one program, which may be put here again; False if it is not here."""
        with self._lock:
            if program not in self.programs:
                return False
            index = self.programs.index(program)
            del self._stamps[self.every[index]], self.programs[index], self.every[index]
            self._show()
            return True

    def note(self, miss: Miss) -> None:
        """Remember a miss."""
        self.missed += 1
        self.misses.append(miss)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            for program in self.programs:
                program.retire()
            self.programs.clear()
            self.every.clear()
            self._stamps.clear()
            self._show()
            self.misses.clear()
            self._gone.clear()
            self.last = None


def nearest(failed: List[Tuple[Program, List[int]]]) -> Tuple[Optional[Program], List[int]]:
    """The program that fits best, and its guards that do not hold.  failed: programs with the indexes of such guards."""
    # guards are in the order of the function: the program whose first failure comes later is nearer
    return max(failed, key=lambda pair: (-1 not in pair[1], -len(pair[1]), max(pair[1], default=0)), default=(None, []))


def reason_of(failed: List[Tuple[Program, List[int]]]) -> str:
    """Why no program fitted, from the guards of the one that fits best."""
    program, indexes = nearest(failed)
    if program is None:
        return "there was no program yet"
    wanted = [program.guards[i].describe()[:_LONGEST] for i in indexes if i >= 0]
    if -1 in indexes:
        wanted.append("something that is not there any more")
    return "no longer " + "; ".join(wanted)

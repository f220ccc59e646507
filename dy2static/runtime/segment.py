"""What a finished program is made of: segments (one FunctionNode each), backward programs, and pools of arenas."""
from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import Any, Callable, ContextManager, Dict, Hashable, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

from ..errors import Location
from ..threads.alive import Alive
from ..threads.locks import lock
from .ledger import Bill
from .workspace import MOST_LITTLE, SizedArena

#: Where an operand of a backward program comes from: ("held", k) of the node, ("given", i) output gradient, or
#: ("extra", k): what the backward program returned after its gradients.
Origin = Tuple[str, int]

#: A shape and a dtype; the text of a size stands for any number, the same in all arrays of a call.
Expected = Tuple[Tuple[Union[int, str], ...], str]


class Watched(NamedTuple):
    """Something that a node holds, and that has to be as expected when a backward reads it.

    index: of what is held.  expected: its shape and dtype.  is_free: whether the shape has sizes that only the run knows; else
    only what Variables hold can have been replaced.
    sizes, dtype: the same for native code: the lengths of the axes as int64.  A text is -1 - (64 * k + axis), for the axis and the
    number among the watched where that text is first.
    """

    index: int
    expected: Expected
    is_free: bool
    sizes: bytes
    dtype: np.dtype


class Footprint(NamedTuple):
    """The bytes of arrays of known sizes that one run of a function needs.

    arena: what may be kept until the backward is over.  working: what only the run needs.  results: what leaves it.
    """

    arena: int = 0
    working: int = 0
    results: int = 0


_pools: "Alive[ArenaPool]" = Alive()


def release_arenas() -> None:
    """Let go of all arenas that wait, of all programs: memory is short.  Later calls make new ones."""
    for pool in _pools.all():
        pool.free.clear()


class ArenaPool:
    """Arenas (tuples of working arrays) that wait for the next call.

    A call takes one and its FunctionNode gives it back when backward can no longer run, so that calls which are
    alive at the same time never share memory.  At most ``keep`` wait; more are dropped.
    """

    __slots__ = ("make", "free", "keep", "arena_bytes", "__weakref__")

    def __init__(self, make: Callable[[], Any], keep: int = 4, arena_bytes: int = 0):
        self.make, self.keep, self.arena_bytes = make, keep, arena_bytes
        self.free: List[Any] = []
        _pools.add(self)

    @property
    def nbytes(self) -> int:
        """The bytes of the arenas that wait."""
        return len(self.free) * self.arena_bytes

    def take(self) -> Any:
        """An arena that no call uses: one from the pool, or a new one."""
        try:
            return self.free.pop()
        except IndexError:
            return self.make()

    def give(self, arena: Any) -> None:
        """Return an arena."""
        if len(self.free) < self.keep:
            self.free.append(arena)

    def retire(self) -> None:
        """Keep no arenas from now on: the program has been replaced.  Calls of it that still run, or come, make their own."""
        self.keep = 0
        self.free.clear()


class SizedArenaPool(ArenaPool):
    """Arenas that become larger and smaller with the arrays; those that many calls on end have not needed are dropped."""

    __slots__ = ("_least", "_given")

    def __init__(self) -> None:
        super().__init__(SizedArena)
        self._least = self._given = 0                   # how many have waited all the time, and for how many calls

    @property
    def nbytes(self) -> int:
        """The bytes of the arenas that wait."""
        return sum([arena.nbytes for arena in list(self.free)])

    def take(self) -> Any:
        """As `ArenaPool.take`."""
        free = self.free
        try:
            arena = free.pop()
        except IndexError:
            arena = SizedArena()
        if len(free) < self._least:
            self._least = len(free)
        return arena

    def give(self, arena: Any) -> None:
        """As `ArenaPool.give`."""
        if len(self.free) < self.keep:
            self.free.append(arena)
        self._given += 1
        if self._given >= MOST_LITTLE:
            del self.free[:self._least]
            self._given, self._least = 0, len(self.free)


class PlacedArenaPool(ArenaPool):
    """Arenas of which each is used again only where it was used before: on one stream of a GPU, whose order keeps calls apart.

    place: tells where a call runs.  ``free`` holds pairs of a place and an arena.
    """

    __slots__ = ("place", "_taken", "_lock")

    def __init__(self, make: Callable[[], Any], place: Callable[[], Hashable], arena_bytes: int = 0):
        super().__init__(make, arena_bytes=arena_bytes)
        self.place, self._lock = place, lock()
        self._taken: Dict[int, Hashable] = {}

    def take(self) -> Any:
        """As `ArenaPool.take`, for a call that runs here."""
        here = self.place()
        with self._lock:
            at = len(self.free) - 1
            while at >= 0 and self.free[at][0] != here:
                at -= 1
            arena = self.free.pop(at)[1] if at >= 0 else None
        if arena is None:
            arena = self.make()
        self._taken[id(arena)] = here
        return arena

    def give(self, arena: Any) -> None:
        """As `ArenaPool.give`."""
        super().give((self._taken.pop(id(arena)), arena))


def pool_of(make: Optional[Callable[[], Any]], arena_bytes: int, place: Optional[Callable[[], Hashable]] = None
            ) -> Optional[ArenaPool]:
    """A pool of arenas; None if there is nothing that makes one.  place: where a call runs, if that matters."""
    if make is None:
        return None
    if make is SizedArena:
        return SizedArenaPool()
    return ArenaPool(make, arena_bytes=arena_bytes) if place is None else PlacedArenaPool(make, place, arena_bytes)


class ArenaLease:
    """One arena in use; goes back to its pool when the last holder lets go of the lease."""

    __slots__ = ("pool", "arena")

    def __init__(self, pool: ArenaPool):
        self.pool, self.arena = pool, pool.take()

    def __del__(self) -> None:
        if hasattr(self, "arena"):                      # else there was no memory for one, or the user has interrupted
            self.pool.give(self.arena)


def _watched(indexes: Sequence[int], expected: Sequence[Expected]) -> Tuple[Watched, ...]:
    first: Dict[str, int] = {}
    found = []
    for k, (index, (shape, dtype)) in enumerate(zip(indexes, expected)):
        lengths = [first.setdefault(n, -1 - (64 * k + axis)) if isinstance(n, str) else n for axis, n in enumerate(shape)]
        sizes = np.array(lengths, np.int64)
        found.append(Watched(index, (shape, dtype), bool((sizes < 0).any()), sizes.tobytes(), np.dtype(dtype)))
    return tuple(found)


@dataclass(eq=False)
class BackwardProgram:
    """The gradients of one segment for one set of targets and given output gradients.

    run: ``run(arena, *operands) -> (gradients of the connected targets..., bools..., extras...)``, arrays.
    operands: the origin of each operand.
    expected: the shape and dtype of each operand; None where it is no array on the CPU, or has free sizes.
    connected: per target, whether a gradient exists at all (None otherwise, as in eager).
    pool: where its arenas come from; None when it needs none.
    again: the segment that this program is itself, for gradients of the gradients; None where not wanted.
    held: what a node of ``again`` holds, as origins.
    origins: the user's place (of the forward) for each line of ``source``.
    conditions: (target, index of a result): the gradient exists only if that result is true.  bools: how many results
        there are for this, between the gradients and the extras.
    depends: per gradient, the inputs of the node and the given gradients that it is computed from.  Where a run has to
        tell: ``depends_in_run(*facts)``, of what the node holds at the indexes ``facts``, as ints, bools and tuples of
        these; it also gives, per target, whether what is given depends on it (else its gradient is None).
    is_plain: it gives every target a gradient, whatever happens, and nothing else.
    watched: what the node holds that has a shape to be compared.
    takes: per operand, the index of what the node holds, or -1 for the first output gradient.
    """

    run: Callable[..., Tuple]
    operands: Tuple[Origin, ...]
    expected: Tuple[Optional[Expected], ...]
    connected: Tuple[bool, ...]
    pool: Optional[ArenaPool] = None
    again: Optional["Segment"] = None
    held: Tuple[Origin, ...] = ()
    source: str = ""
    origins: Mapping[int, Location] = field(default_factory=dict)
    conditions: Tuple[Tuple[int, int], ...] = ()
    bools: int = 0
    depends: Tuple[Tuple[Tuple[int, ...], Tuple[int, ...]], ...] = ()
    facts: Tuple[int, ...] = ()
    depends_in_run: Optional[Callable[..., Tuple]] = None
    footprint: Footprint = Footprint()
    is_plain: bool = field(init=False)
    watched: Tuple[Watched, ...] = field(init=False)
    takes: Tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        pairs = [(k, known) for (kind, k), known in zip(self.operands, self.expected) if kind == "held" and known is not None]
        self.watched = _watched([k for k, _ in pairs], [known for _, known in pairs])
        self.takes = tuple([k if kind == "held" else -1 for kind, k in self.operands])
        self.is_plain = (self.again is None and self.depends_in_run is None and not self.conditions and not self.bools
                         and all(self.connected) and all([kind == "held" or k == 0 for kind, k in self.operands]))


@dataclass(eq=False)
class Segment:
    """The part of a program that becomes one FunctionNode.

    name: shown as the node's label.
    planned, target: what `hooks.compile_backward` needs: what is differentiated, or a function that gives it, and what for; the run
    time does not look inside.
    key: where its backward programs are kept on disk; "" if they are not.
    backward: the programs made so far, by (targets, given, again).
    bill: counts what making them takes; None if nothing does.
    """

    name: str
    planned: Any
    target: Any = None
    key: str = ""
    backward: Dict[Tuple, BackwardProgram] = field(default_factory=dict)
    bill: Optional[Bill] = None

    @property
    def counted(self) -> ContextManager[None]:
        """Counts what is done in the block for one of its backward programs."""
        return contextlib.nullcontext() if self.bill is None else self.bill.more()

    @property
    def plan(self) -> Any:
        """What is differentiated."""
        planned = self.planned                      # read once: another thread may have put the plan there since
        if callable(planned):
            planned = self.planned = planned()
        return planned

    @property
    def footprints(self) -> List[Footprint]:
        """Those of its backward programs made so far, of any order."""
        return [found for program in list(self.backward.values()) for found in (
            program.footprint, *(() if program.again is None else program.again.footprints))]

    def retire(self) -> None:
        """Keep no arenas for its backward programs, of any order; see `ArenaPool.retire`."""
        for program in list(self.backward.values()):
            if program.pool is not None:
                program.pool.retire()
            if program.again is not None:
                program.again.retire()

    @property
    def nbytes(self) -> int:
        """The bytes of the arenas that wait for its backward programs, of any order."""
        programs = list(self.backward.values())
        return sum([(0 if program.pool is None else program.pool.nbytes)
                    + (0 if program.again is None else program.again.nbytes) for program in programs])

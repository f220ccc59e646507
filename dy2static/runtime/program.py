"""A finished program: what one signature compiled to."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Mapping, NamedTuple, Optional, Sequence, Tuple

from .segment import ArenaPool, Footprint, Segment

#: What `Program.call` gives when its guards do not hold.
MISS = object()

#: Measured: what a node of the graph takes, its backward and the generated code included, and a guard.
_BYTES_PER_NODE, _BYTES_PER_GUARD = 3000, 650

#: What may go wrong while guards follow paths that are not there any more.
GUARD_ERRORS = (KeyError, IndexError, AttributeError, TypeError, ValueError, ArithmeticError)


class Memory(NamedTuple):
    """What `Program.memory` gives: bytes of arrays of known sizes, by what they are for.

    kept: working memory that is held from the call until its backward is over.  forward: what the forward needs besides
    while it runs.  results: arrays that leave it.  backward: working memory of the backward.  gradients: what it gives; both of
    the largest backward made so far, of any order.  Not counted: what went in, stacks of loops on array values, what
    calls of NumPy and functions that stay whole take for themselves.
    """

    kept: int = 0
    forward: int = 0
    results: int = 0
    backward: int = 0
    gradients: int = 0

    @property
    def peak(self) -> int:
        """The most that one call and its backward hold at a time."""
        return self.kept + self.results + max(self.forward, self.backward + self.gradients)


@dataclass(eq=False)
class Program:
    """One compiled signature.

    call: ``call(args, kwargs)`` checks the guards and runs; `MISS` if they do not hold.
    diagnose: ``diagnose(args, kwargs)`` gives the indexes of the guards that do not hold.
    source: the generated forward function as text; entry: the text around it (guards, binding, results).
    constant_bytes: of the arrays that its graph holds.  returned: one like it was there before, and had to go.
    hot: ``hot(program, wait)`` makes the same program as native code, in steps; None where it is that, or shall not be.
    with_clocks: makes the same program, native if this one is or becomes that, with the clocks of a profile in it.
    profiled: makes the profile of its calls.
    outcome: the `world.outcome.Outcome` that it was made of; the run time does not look inside.
    native_code: the C text of its forward, "" where there is none.  readable: then gives the text of the same in NumPy.
    """

    call: Callable[[Tuple, Mapping], Any]
    diagnose: Callable[[Tuple, Mapping], Sequence[int]]
    source: str
    entry: str
    graph: Any
    guards: Tuple[Any, ...]
    segments: Tuple[Segment, ...]
    pool: Optional[ArenaPool]
    counts: Dict[str, int] = field(default_factory=dict)
    events: Tuple[Any, ...] = ()
    signature: str = ""
    constant_bytes: int = 0
    returned: bool = False
    hot: Optional[Callable[["Program", bool], Optional["Program"]]] = None
    with_clocks: Optional[Callable[[Any], "Program"]] = None
    profiled: Optional[Callable[["Program"], Any]] = None
    native_code: str = ""
    readable: Optional[Callable[[], str]] = None
    footprint: Footprint = Footprint()
    outcome: Any = None

    def __repr__(self) -> str:
        return f"<program for ({self.signature}): {self.counts.get('nodes', 0)} nodes, {len(self.guards)} guards>"

    @property
    def nbytes(self) -> int:
        """About how many bytes the program keeps: working memory that waits for the next call, constants, and, by their
        number, graph nodes and guards with all the code that was made of them."""
        waiting = 0 if self.pool is None else self.pool.nbytes
        return (waiting + sum([segment.nbytes for segment in self.segments]) + self.constant_bytes
                + _BYTES_PER_NODE * self.counts.get("nodes", 0) + _BYTES_PER_GUARD * len(self.guards))

    @property
    def memory(self) -> Memory:
        """How many bytes one call and its backward need; see `Memory`."""
        backward = max([found for segment in self.segments for found in segment.footprints], key=sum, default=Footprint())
        return Memory(*self.footprint, backward.arena + backward.working, backward.results)

    @property
    def peak_bytes(self) -> int:
        """The most bytes that one call and its backward hold at a time: `Memory.peak`."""
        return self.memory.peak

    @property
    def has_free_sizes(self) -> bool:
        """Whether it serves arrays of many sizes."""
        return any(not isinstance(n, int) for value in self.graph.inputs for n in getattr(value.type, "shape", ()))

    def profile(self) -> Any:
        """As `StaticFunction.profile`, for the calls that this program serves."""
        if self.profiled is None:
            raise RuntimeError("this program belongs to no function: no call is served by it")
        return self.profiled(self)

    @property
    def code(self) -> str:
        """The generated Python function of this signature; of a native one, the calls of NumPy that do the same."""
        return self.source if self.readable is None else self.readable()

"""A finished program: the compiled form of one signature."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Mapping, NamedTuple, Optional, Protocol, Sequence, Tuple

from ..markup import folded, heading, page_part, preformatted
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


class Recipe(Protocol):
    """What a program was made of, and can be made of again: `program.recipe.Recipe`."""

    @property
    def outcome(self) -> Any:
        """The record of the call, a `record.outcome.Outcome`."""

    @property
    def target(self) -> Any:
        """What the program was made for: a backend, and perhaps a profile."""

    @property
    def graph(self) -> Any:
        """The graph of the forward; made again where code from the disk did without it."""

    def made_for(self, target: Any) -> Any:
        """The recipe of the same program for another target."""

    def readable(self) -> str:
        """The text of the forward in calls of NumPy."""


@dataclass(frozen=True, eq=False)
class Program:
    """A compiled program for one kind of call.

    call: ``call(args, kwargs)`` checks the guards and runs; `MISS` if they do not hold.
    diagnose: ``diagnose(args, kwargs)`` gives the indexes of the guards that do not hold.
    source: the generated forward function as text; entry: the text around it (guards, binding, results).
    recipe: makes the program again, for another backend or with a profile; ``recipe.outcome`` is the record of the call.
    constant_bytes: of the arrays that its graph holds.  native_text: gives `native_code`.
    profiler: makes the profile of its calls; None if no function calls it.
    """

    call: Callable[[Tuple, Mapping], Any]
    diagnose: Callable[[Tuple, Mapping], Sequence[int]]
    source: str
    entry: str
    guards: Tuple[Any, ...]
    segments: Tuple[Segment, ...]
    pool: Optional[ArenaPool]
    recipe: Recipe
    counts: Dict[str, int] = field(default_factory=dict)
    events: Tuple[Any, ...] = ()
    signature: str = ""
    constant_bytes: int = 0
    native_text: Callable[[], str] = str
    footprint: Footprint = Footprint()
    profiler: Optional[Callable[["Program"], Any]] = None

    @property
    def native_code(self) -> str:
        """The C text of its forward; "" where there is none."""
        return self.native_text()

    @property
    def graph(self) -> Any:
        """The graph of the forward."""
        return self.recipe.graph

    def __repr__(self) -> str:
        return f"<program for ({self.signature}): {self.counts.get('nodes', 0)} nodes, {len(self.guards)} guards>"

    def _repr_html_(self) -> str:
        texts = {"graph": str(self.graph), "guards": "\n".join([guard.describe() for guard in self.guards]),
                 "generated Python": self.code, "around it": self.entry, "C": self.native_code}
        return page_part(heading(repr(self)), *[folded(title, preformatted(text)) for title, text in texts.items() if text])

    @property
    def nbytes(self) -> int:
        """About how many bytes the program keeps.

        Counted are working memory that waits for the next call, constants, and, by their number, graph nodes and guards with
        the code that was made of them.
        """
        waiting = 0 if self.pool is None else self.pool.nbytes
        return (waiting + sum([segment.nbytes for segment in self.segments]) + self.constant_bytes
                + _BYTES_PER_NODE * self.counts.get("nodes", 0) + _BYTES_PER_GUARD * len(self.guards))

    def retire(self) -> None:
        """Give back the working memory that waits for calls: no more are to come.  Calls that do come make it anew."""
        if self.pool is not None:
            self.pool.retire()
        for segment in self.segments:
            segment.retire()

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
        return any(not isinstance(n, int) for value in self.recipe.outcome.graph.inputs for n in getattr(value.type, "shape", ()))

    def profile(self) -> Any:
        """As `StaticFunction.profile`, for the calls that this program serves."""
        if self.profiler is None:
            raise RuntimeError("this program belongs to no function: no call is served by it")
        return self.profiler(self)

    @property
    def code(self) -> str:
        """The generated Python function of this signature; of a native one, the calls of NumPy that do the same."""
        return self.recipe.readable() if self.native_code else self.source

"""A finished program: what one signature compiled to."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Mapping, Optional, Sequence, Tuple

from .segment import ArenaPool, Segment

#: What `Program.call` gives when its guards do not hold.
MISS = object()

#: What may go wrong while guards follow paths that are not there any more.
GUARD_ERRORS = (KeyError, IndexError, AttributeError, TypeError, ValueError, ArithmeticError)


@dataclass(eq=False)
class Program:
    """One compiled signature.

    call: ``call(args, kwargs)`` checks the guards and runs; `MISS` if they do not hold.
    diagnose: ``diagnose(args, kwargs)`` gives the indexes of the guards that do not hold.
    source: the generated forward function as text; entry: the text around it (guards, binding, results).
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
    arena_bytes: int = 0

    def __repr__(self) -> str:
        return f"<program for ({self.signature}): {self.counts.get('nodes', 0)} nodes, {len(self.guards)} guards>"

    @property
    def code(self) -> str:
        """The generated Python function of this signature."""
        return self.source

"""Which loops are done several turns at a time, so that totals in memory are read and written less often."""
from __future__ import annotations

from ..loops.ir import Accumulate, LoopNest, Sweep
from ..loops.schedule import is_dear
from .addresses import loops_of

#: Bodies of at most so many statements are written several times.
_SMALL = 8


def may_jam(nest: LoopNest, sweep: Sweep) -> bool:
    """Whether several turns of the loop around the innermost one may be done together.

    All that the sweep reduces are totals that grow in memory, and stay where they are from one of these turns to the next.  Its
    body is small enough to be written several times, and is not much slower than memory.
    """
    if nest.split is not None or len(nest.inner) < 2 or sweep.block or not sweep.reductions or len(sweep.body) > _SMALL:
        return False
    if any(is_dear(s.operand if isinstance(s, Accumulate) else s.expression) for s in sweep.body):
        return False
    axis, inner = nest.inner[-2:]
    return all(r.is_total and not r.in_register and r.op in ("sum", "prod") and inner.name in loops_of(r.address)
               and axis.name not in loops_of(r.address) for r in sweep.reductions)

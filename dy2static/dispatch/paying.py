"""Whether compiled functions that are called between lines of Python do enough to pay for their calls."""
from __future__ import annotations

import weakref
from typing import Any, NamedTuple, Optional, Sequence

from .. import config
from ..ir.graph import Graph, Node
from ..ir.types import Tensor
from ..runtime.program import Program
from .entry import Entry
from .pace import Pace

#: So many operations of NumPy on a few numbers take as long as the call of a part (`benchmarks/small_parts.py`); where a part
#: has no function of Chainer's, which alone takes longer than that, fewer do not pay.  With native code, and with NumPy alone.
LEAST, LEAST_OF_NUMPY = 16, 64

#: For so many times a loop on array values counts.
_TRIPS = 8

#: Operations that NumPy carries out one by one in programs, too.
_CALLS = frozenset(("numpy_call", "checked_call", "sized_call", "host_call"))

#: A function with such operations, and without any of Chainer's, is measured after so many calls.
_BEFORE = 24


class _Work(NamedTuple):
    """What a graph does.  operations: how many give arrays.

    has_functions: whether some are of Chainer's.  decides: whether there are decisions on values that only the run knows.
    """

    operations: int
    has_functions: bool
    decides: bool


#: What is known of graphs.
_KNOWN: "weakref.WeakKeyDictionary[Graph, _Work]" = weakref.WeakKeyDictionary()


class CompiledPart(Entry):
    """A compiled function that is called between lines that Python carries out.

    is_settled: whether `is_worth_it` gives what it will give later.
    """

    def __init__(self, dispatcher: Any):
        super().__init__(dispatcher)
        self._start()

    def _start(self) -> None:
        self.is_settled, self._pace, self._left = False, Pace(), _BEFORE

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.is_settled:
            return super().__call__(*args, **kwargs)
        if self._left or self.dispatcher.tiers.is_coming:
            self._left -= bool(self._left)
        elif config.PACE.value and not self.is_divided and all(map(_may_be_slow, self.dispatcher.programs)):
            result = self._pace.call(super().__call__, self.dispatcher.function, args, kwargs)
            self.is_settled = self._pace.is_slow is not None
            return result
        else:
            self.is_settled = True
        return super().__call__(*args, **kwargs)

    @property
    def is_divided(self) -> bool:
        """Whether it runs in parts itself."""
        return bool(self.dispatcher.in_parts.is_used)

    def begin_again(self) -> None:
        """Forget that its programs, or its parts, do too little."""
        dispatcher, is_slow = self.dispatcher, self._pace.is_slow
        self._start()
        if self.is_divided:
            dispatcher.in_parts.divided.begin_again()
        elif not is_slow:                               # it may be with others; the programs will do
            dispatcher.cache.clear()
            dispatcher.budget.clear()

    def is_worth_it(self) -> Optional[bool]:
        """Whether its programs do enough to pay for its calls; None before there is one."""
        dispatcher = self.dispatcher
        if self.is_divided:
            return dispatcher.in_parts.divided.is_worth_it()
        if not dispatcher.programs:
            return False if dispatcher.fallback.refused else None
        if self._pace.is_slow:
            return False
        least = LEAST_OF_NUMPY if dispatcher.options.backend_now == "numpy" else LEAST
        return any(_pays(program, least) for program in dispatcher.programs)


def _pays(program: Program, least: int) -> bool:
    """Whether a program has a function of Chainer's, or so many operations that give arrays; those of numbers take no time."""
    work = _work_of(program)
    return work.has_functions or work.decides or work.operations >= least


def _may_be_slow(program: Program) -> bool:
    """Whether a program has no function of Chainer's, and operations that are no faster in it."""
    work = _work_of(program)
    return not work.has_functions and (work.decides or any(program.counts.get(name) for name in _CALLS))


def has_functions(program: Program) -> bool:
    """Whether a program has a function of Chainer's."""
    return _work_of(program).has_functions


def _work_of(program: Program) -> _Work:
    known = _KNOWN.get(program.graph)
    if known is None:
        work = _Work(_operations(program.graph.nodes), any(event.is_function for event in program.events),
                     any(event.is_decision for event in program.events))
        known = _KNOWN[program.graph] = work
    return known


def _operations(nodes: Sequence[Node]) -> int:
    """How many operations give arrays; those in a loop count several times."""
    found = 0
    for node in nodes:
        inside = sum(_operations(region.nodes) for region in node.regions)
        found += inside * (_TRIPS if node.op.name in ("while_", "scan") else 1)
        found += any(isinstance(value.type, Tensor) and value.type.shape for value in node.outputs)
    return found

"""The updates of a program as the last steps of its last region: a training step is one launch, and one CUDA graph.

A region that ends a program is not launched where the program calls it, but where the updates are called (`Ending.update`),
together with them.  What the entry does in between reads no array.  If no update comes, `Ending.settle` launches the region alone.
"""
from __future__ import annotations

import itertools
import math
import re
import threading
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Set, Union

from ....ir.graph import Graph, Node, Value
from ....ir.types import Extent, Scalar
from ....native.launcher import MOST_WORDS, Counts, Operand, Place
from ....passes.in_place import Update
from ...compiled_calls import is_native
from ...cupy.memory import Retrying
from ...host.function import NumpyFunction
from ..program.steps import DeviceFunction, Launch, Table
from .launching import InC, Known, known_words
from .region import Device
from .updates import STORE, THREADS, UpdateRegion, blocks_of, head_of

_ONE = r"\w+(?:\.T|\[[\d:, .-]*\]|\.(?:reshape|transpose)\([\d, ()-]*\))?"

#: Lines that make views.
_VIEW = re.compile(rf"\w+(?:, \w+)* = {_ONE}(?:, {_ONE})*")


class _Waiting(NamedTuple):
    """A region that is to be launched.  operands: scratch memory is the last one.  held: their arrays, which live until then."""

    operands: Sequence[Operand]
    held: Sequence[Any]
    place: Place


class Ending:
    """The last region of a program, and its updates.

    graph: that of the region.  updates: all of the program, of known sizes.  regions: the kernels of some of them.
    """

    def __init__(self, graph: Graph, updates: Sequence[Update], regions: Sequence[UpdateRegion]):
        self.graph, self._regions = graph, regions
        self._rows = [[value for k in region.members for value in updates[k].graph.inputs] for region in regions]
        self._heads = [head_of([math.prod(updates[k].graph.outputs[0].shape) for k in region.members]) for region in regions]
        first: Dict[Value, int] = {}
        for position, value in enumerate(itertools.chain(*self._rows)):
            first.setdefault(value, position)
        self._numbers = {value: number for number, value in enumerate(first)}
        # the different operands: where each is among all of them, and whether it is a number
        self._operands = [(position, isinstance(value.type, Scalar)) for value, position in first.items()]
        self._local = threading.local()

    @property
    def tables(self) -> List[int]:
        """How many bytes the table of each region of updates has."""
        return [8 * (len(head) + len(row)) for head, row in zip(self._heads, self._rows)]

    def join(self, device: Device, function: DeviceFunction, last: InC, separate: Sequence[Callable[..., None]]) -> None:
        """Let the updates be launched together with the region.

        last: launches the last steps of the region; its module has all kernels.  separate: what launches the updates of each region
        of them alone.
        """
        self._last, self._separate, self._device = last, separate, device
        more = len(self._operands)
        steps = [(step, found.behind(function.arrays, more)) for step, found in last.steps]
        self._first = len(steps)                            # that updates something
        steps += self._steps(last, function.arrays, function.arrays + more + len(function.pieces) - len(self._regions))
        self._whole = InC(function.arrays + more, function.pieces, device, last.launcher, last.module, steps,
                           origins=last.origins)

    @property
    def counts(self) -> Counts:
        """How often region and updates have been launched together."""
        return self._whole.region.counts

    def _steps(self, last: InC, given: int, table: int) -> List[Known]:
        """The steps of the updates.  given: the number of the first operand.  table: the number of the first table."""
        steps: List[Union[Launch, Table]] = []
        for number, (region, head, row) in enumerate(zip(self._regions, self._heads, self._rows), start=table):
            if blocks_of(head):
                steps += _stored(number, head, [given + self._numbers[value] for value in row])
                steps.append(Launch(region.kernel.name, blocks_of(head), THREADS, (number,)))
        return [(step, known_words(step, last.device, last.module)) for step in steps]

    # A call

    def defer(self, operands: Sequence[Operand], held: Sequence[Any]) -> None:
        """Take the last steps of the region, to be launched soon.  held: the arrays of the operands."""
        self.settle()                                       # a call inside of a call: what a destructor of the user's may do
        self._local.waiting = _Waiting(operands, held, self._device.place(self._last.needs_products))

    def settle(self) -> None:
        """Launch what waits, if anything does."""
        waiting: Optional[_Waiting] = getattr(self._local, "waiting", None)
        if waiting is not None:
            self._local.waiting = None
            with self._device.current():
                Retrying(self._alone)(waiting)

    def update(self, *operands: Any) -> None:
        """Launch what waits, and all updates.  operands: those of all updates, one after the other."""
        waiting: Optional[_Waiting] = getattr(self._local, "waiting", None)
        if waiting is None or not self._together(waiting, operands):
            self.settle()
            begin = 0
            for call, row in zip(self._separate, self._rows):
                call(*operands[begin:begin + len(row)])
                begin += len(row)

    def _together(self, waiting: _Waiting, operands: Sequence[Any]) -> bool:
        """Launch all at once; whether that was done: not where an array is not contiguous, nor if it fails before an update."""
        more = [float(operands[k]) if is_number else operands[k] for k, is_number in self._operands]
        *arrays, scratch = waiting.operands
        with self._device.current():
            failure = self._whole.region(waiting.place, [*arrays, *more, scratch])
        if failure is not None and failure.step < self._first:
            return False
        self._local.waiting = None
        if failure is not None:
            raise self._whole.error(failure)
        return True

    def _alone(self, waiting: _Waiting) -> None:
        failure = self._last.region(waiting.place, waiting.operands)
        if failure is not None:
            raise self._last.error(failure)


def ending_of(graph: Graph, updates: Sequence[Update], regions: Sequence[UpdateRegion]) -> Optional[Ending]:
    """The ending of a divided graph; None where it has no region, where sizes are not known, and without kernels of updates."""
    last = next((node for node in reversed(graph.nodes) if is_native(node)), None)
    sizes = [n for region in regions for k in region.members for n in updates[k].graph.outputs[0].shape]
    if last is None or not regions or not all(isinstance(n, int) for n in sizes) or _is_open(last):
        return None
    return Ending(last.attrs["region"], updates, regions)


def _is_open(region: Node) -> bool:
    """Whether a region has sizes that only the run knows: its steps are others in each call."""
    return any(isinstance(value.type, Extent) for value in region.inputs)


def ends_with(function: NumpyFunction, graph: Graph, call: Any) -> bool:
    """Whether nothing behind a call of compiled code reads an array: there is nothing, or there are views.

    graph: what the function is made of.
    """
    lines = [line.lstrip() for line, _ in function.lines]
    name = next((name for name, found in function.compiled.items() if found is call), "")
    at = next((k for k, line in enumerate(lines) if name and line.startswith(f"{name}(")), None)
    return at is not None and all(map(_VIEW.fullmatch, lines[at + 1:])) and not _copies(graph, call)


def _copies(graph: Graph, call: Any) -> bool:
    """Whether a `reshape` may be a copy of what a call of compiled code gives: a view of that may not be contiguous."""
    contiguous: Set[Value] = set()
    views: Set[Value] = set()
    for node in graph.nodes:
        if node.attrs.get("call") is call or node.op.name == "reshape" and not contiguous.isdisjoint(node.inputs):
            contiguous.update(node.outputs)
        elif node.op.name == "reshape" and not views.isdisjoint(node.inputs):
            return True
        elif not contiguous.isdisjoint(node.inputs) or not views.isdisjoint(node.inputs):
            views.update(node.outputs)
    return False


def _stored(table: int, constants: Sequence[int], given: Sequence[int]) -> List[Table]:
    """The steps that store a table.  constants, given: its words, and then the numbers of those that a run is given."""
    found = []
    for begin in range(0, len(constants) + len(given), MOST_WORDS):
        part = constants[begin:begin + MOST_WORDS]
        first = max(begin - len(constants), 0)
        found.append(Table(STORE.name, table, begin, tuple(part), tuple(given[first:first + MOST_WORDS - len(part)])))
    return found

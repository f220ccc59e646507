"""Results whose backward would read arrays that have been written since, and what gradients inside the function went through."""
from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence, Set, Tuple

from ..capture_context import CaptureContext
from ..errors import Location
from ..heap.locations import user_location
from ..ir.building import Builder
from ..ir.graph import Node, Value
from .applications import Application
from .values import SymbolicArray

_HINT = "compute a new array instead"


class Overwritten:
    """Of one capture, as far as it has come.

    spent: where arrays were written that gradients of results would read, once `check_end` has found that.
    read_by_spent: the values whose gradients would read them.
    """

    def __init__(self, capture: CaptureContext):
        self.capture = capture
        self.spent: Optional[Location] = None
        self.read_by_spent: Set[Value] = set()
        self._relied: Set[Value] = set()                # results that were computed from Variables after a write into these
        self._before: List[Optional[Location]] = []     # the lines that wrote them
        self._found: Dict[Value, Application] = {}      # results whose backward would read what was written since
        self._depths: Dict[Value, int] = {}             # how deep the write was
        self._lost: Set[Value] = set()                  # results whose backward would read another array by now
        self._passed: Set[Value] = set()                # what gradients inside the function went through
        self._at: Optional[Location] = None             # the line that wrote it
        self._wrote_own = False                         # whether an array was written that is not the caller's
        self._lost_inside = False                       # whether there are lost ones inside of regions
        self._readers: Dict[int, List[Application]] = {}

    def state(self) -> Tuple:
        """How far it has come, for `go_back`."""
        return (set(self._relied), list(self._before), dict(self._found), dict(self._depths), set(self._lost), set(self._passed),
                {key: list(found) for key, found in self._readers.items()}, self._at, self._wrote_own, self._lost_inside)

    def go_back(self, state: Tuple) -> None:
        """As it was: what has been captured since is not part of the graph."""
        relied, before, found, depths, lost, passed, readers, self._at, self._wrote_own, self._lost_inside = state
        self._relied, self._before, self._found, self._depths = set(relied), list(before), dict(found), dict(depths)
        self._lost, self._passed = set(lost), set(passed)
        self._readers = {key: list(found) for key, found in readers.items()}

    # --- what happens ---------------------------------------------------------------------------------------------------

    def read(self, array: SymbolicArray, application: Application) -> None:
        """A function got an array: its backward may read it."""
        self._readers.setdefault(id(array), []).append(application)

    def relied(self, outputs: Sequence[Value], before: Sequence[Optional[Location]]) -> None:
        """Note results that were computed from Variables of the user's whose arrays were written before, by these lines."""
        self._relied.update(outputs)
        self._before += before
        self._at = self._at or user_location()

    def write(self, arrays: Sequence[SymbolicArray], is_own: bool) -> None:
        """These, which share their memory, are written.  is_own: no array of the caller's is."""
        for array in arrays:
            for application in self._readers.pop(id(array), ()):
                if application.forgets(array):
                    continue
                array.shared = None
                self._found.update(dict.fromkeys(application.outputs, application))
                self._depths.update(dict.fromkeys(application.outputs, self.capture.staging.depth))
                self._at = self._at or user_location()
                self._wrote_own = self._wrote_own or is_own

    def rebound(self, array: SymbolicArray) -> None:
        """A Variable gets another array than this: a backward of what has read it would read that one."""
        for application in self._readers.get(id(array), ()):
            self._lost.update(application.outputs)
            self._at = self._at or user_location()
            self._lost_inside = self._lost_inside or application.builder is not self.capture.builder

    # --- what may be differentiated -----------------------------------------------------------------------------------------

    def read_again(self, nodes: Sequence[Node], through: Set[Value]) -> List[Application]:
        """The applications whose operands were written since, among those that a backward goes through.

        nodes, through: what it goes through.  Stops where it is not known what their backward reads.
        """
        here = {value for value in self._found if value in through}
        found = {id(self._found[value]): self._found[value] for value in here}
        inside = any(node.regions for node in nodes) and any(not self._is_around(a.builder) for a in self._found.values())
        if inside or self._lost_inside or not self._lost.isdisjoint(through) or \
                any(self._depths[value] > self.capture.staging.depth for value in here) or \
                not all(a.reads_again for a in found.values()):
            self.capture.abort("an array is changed in place that a backward reads", hint=_HINT, whole=True)
        self._passed |= through
        self._passed.update(v for node in nodes if node.regions for inner in node.walk() for v in inner.outputs)
        return list(found.values())

    def _is_around(self, builder: Builder) -> bool:
        """Whether a builder is the present one, or that of a region around it."""
        here: Any = self.capture.builder
        while here is not None and here is not builder:
            here = here.outer
        return here is not None

    def check_end(self, out_of_reach: Set[Value]) -> None:
        """Stop if the caller may yet differentiate what reads the arrays that were written.

        out_of_reach: values through which no gradient goes that the caller can ask for.
        What the function has differentiated itself counts as spent: its nodes say so when they are asked for gradients that go
        through it.
        A part that reads an array of the caller's has it by reference, and its backward reads what is written behind the part.  So
        lines may run between parts that wrote what was read afterwards only, or what the part before them differentiates itself.
        """
        reading = {*self._found, *self._relied, *self._lost} - out_of_reach
        if not (reading or self._lost_inside):
            return
        open_yet = reading - self._passed
        if self._lost_inside or open_yet:
            is_before = not self._lost_inside and None not in self._before and \
                (reading if self._wrote_own else open_yet).isdisjoint((*self._found, *self._lost))
            self.capture.abort("a `backward` after the call may read an array that is changed in place or replaced",
                               at=self._before[0] if is_before else self._at,
                               hint="call `backward` inside the compiled function, before the change, or compute a new array",
                               whole=not is_before and (bool(self._relied) or self._wrote_own))
        self.spent = self._at
        self.read_by_spent |= reading
